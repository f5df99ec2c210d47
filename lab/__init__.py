"""Drives a run of the lab: the scenario model, the engines, the phases of a run, and the command line."""
