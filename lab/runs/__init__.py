"""One run from its folder to its verdict: context, lock, phases, actions, read-back, live display.

In: a ResolvedScenario. Out: results/<scenario>/<run-id> with manifest.json, raw/, derived/ and report.html.
It must not know of a series, nor how results are printed.
"""
