"""A participant's kit: one archive with which another machine runs the lab without a network (docs/kit.md).

In: what setup/bundle.sh gathers; out: the pieces that setup/load.sh takes in, each checked. It runs before the lab's
own environment is there, so it needs Python's standard library alone. Whoever hands out an archive may have made
anything of it: only the pieces that the manifest names are taken, each at its own place below one new folder, or none.
"""
