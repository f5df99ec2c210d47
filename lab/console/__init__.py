"""What the commands list and print: scenarios, verdicts, ledgers, comparisons, estimates, advice.

In: folders of runs and series, and what the analysis says of them. Out: text for a terminal.
It must not start a run.
"""
