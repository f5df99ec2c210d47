"""The stories of single requests: explained one by one, and as the ladders that tell a run's story.

In: the joins of a run, and the packets of chosen connections. Out: timelines, text, and derived/ladders.json.
They must not know pages, nor how a ladder is drawn.
"""
