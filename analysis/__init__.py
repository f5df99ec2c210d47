"""From a run's folder to its verdict.

In: a run's folder, with manifest.json and raw/. Out: derived/, and pages; missing or damaged evidence never raises, it
makes what rests on it unknown.
It must not know the lab or an engine: a run copied from another machine is analysed as well.
"""
