"""Reads the YAML that people write: documents with their lines, durations with units, and the name that was meant.

In: a file's text. Out: plain values, models, and problems with file and line.
It must not know what a scenario or a role is.
"""
