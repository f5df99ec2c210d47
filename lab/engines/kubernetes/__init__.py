"""The engine Kubernetes.

In: the verbs of lab.engines.protocol. Out: pods of a namespace, and their files, by the commands of kubectl.
It must not know scenarios, nor the phases of a run.
"""
