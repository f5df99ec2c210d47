"""The engine Docker Compose.

In: the verbs of lab.engines.protocol. Out: containers, networks and files, by the commands of the Docker client.
It must not know scenarios, nor the phases of a run.
"""
