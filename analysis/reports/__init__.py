"""Reports: the pages of a run, of comparisons and of all results, and the stories of single requests.

In: manifests, derived/ and comparisons; for stories, a run's joins and packets. Out: HTML that needs no network, text,
and derived/ladders.json.
A page must not know raw files, nor work anything out that derived/ does not have.
"""
