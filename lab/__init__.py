"""Drives a run of the lab: the scenario model, Docker Compose, the phases of a run, and the command line."""
