"""Why something is unknown, told once."""

import pytest

from lab.console.run_output import MissingEvidence

PROBLEMS = [
    {"instrument": "sampler/backend-1", "message": "no header", "spoils": []},
    {"instrument": "sampler/backend-1", "message": "no header of a version", "spoils": []},
    {"instrument": "capture/nginx", "message": "the kernel dropped 3 packets", "spoils": []},
]


@pytest.mark.parametrize(
    ("why", "short"),
    [
        ("sampler/backend-1: no header of a version", "sampler/backend-1 lacks evidence"),
        ("sampler/backend-1: no header; sampler/backend-1: no header of a version", "sampler/backend-1 lacks evidence"),
        (
            "sampler/backend-1: no header; capture/nginx: the kernel dropped 3 packets",
            "sampler/backend-1 lacks evidence; capture/nginx lacks evidence",
        ),
        (
            "accepted: sampler/backend-1: no header; sampler/backend-1: no header; opened: capture/nginx: lost",
            "accepted: sampler/backend-1 lacks evidence; opened: capture/nginx: lost",
        ),
        ("nth() asked for value 9 of a list of 3", "nth() asked for value 9 of a list of 3"),
    ],
)
def test_what_is_reported_as_evidence_is_named_elsewhere(why: str, short: str) -> None:
    assert MissingEvidence(PROBLEMS).short(why) == short
