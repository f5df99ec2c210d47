"""`connlab explain`: what the user asks for, refused or understood, and the stories of those requests."""

from __future__ import annotations

import re
from pathlib import Path

from analysis.evidence.rawrun import RawRun
from analysis.reports.stories.explanation import explain_request, explain_worst
from analysis.reports.stories.selection import UnknownRequest
from analysis.reports.stories.timeline import Explanation
from formats import manifest
from lab.errors import BadInput, Problem

# More stories than this nobody reads; --request finds any other.
_WORST_MAX = 100


def of_run(folder: Path, request: str | None, worst: str | None) -> Explanation:
    """Explain a request of a run, or its worst ones.

    Args:
        folder: the run's.
        request: its name, such as `k6-1/17`; None for the worst.
        worst: how many of those; None for one request.

    Raises:
        BadInput: not exactly one of the two is given, there is no such request, or the manifest cannot be read.
    """
    if (request is None) == (worst is None):
        raise BadInput(
            Problem(
                "an explanation takes either a request or how many of the worst",
                way_on="give REQUEST=k6-1/17 (--request) or TOP=5 (--top)",
            )
        )
    number = 0 if worst is None else _number(worst)
    try:
        raw = RawRun(folder, manifest.load_manifest(folder))
        return explain_worst(raw, number) if request is None else explain_request(raw, request)
    except (manifest.ManifestError, UnknownRequest) as error:
        raise BadInput(Problem(str(error))) from None


def _number(written: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", written) or not 1 <= int(written) <= _WORST_MAX:
        fault = f"'{written}' is not a number of requests: give 1 to {_WORST_MAX}"
        raise BadInput(Problem(fault, "--top"))
    return int(written)
