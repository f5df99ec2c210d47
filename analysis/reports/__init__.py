"""Reports: pages of a run, of comparisons and of all results, and the stories of single requests."""
