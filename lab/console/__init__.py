"""Text that several commands and lessons print: verdicts and ledgers, lists of scenarios, advice, next steps.

In: folders of runs and series, and what the analysis says of them. Out: text for a terminal.
It must not start a run.
"""
