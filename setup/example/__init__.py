"""`make example`: the run in docs/example, and what the documents show of it."""
