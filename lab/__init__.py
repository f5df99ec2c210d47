"""Drives runs: scenarios, engines, the phases of a run, series, and the command line.

In: scenarios, overrides and the machine. Out: folders below results/.
It must not know what evidence means: it asks the analysis.
"""
