"""The lab as static pages that can be published anywhere: documents, lessons, and reports of runs that are at hand.

In: the documents, the scenarios, what was recorded of them, and folders of results. Out: one folder of HTML.
It must not run, analyse or change anything.
"""
