"""The ledger of a system that the lab only watched: its connections, what became of each, and the cause that is proved.

In: captures and samples of the observed instances. Out: tables of one database in memory.
It must not know requests, nor how anything is shown.
"""

from __future__ import annotations

from analysis.diagnosis.observed.tables import Observation, observe

__all__ = ["Observation", "observe"]
