"""Figures are called by names that people use, and the names are of figures that exist."""

from __future__ import annotations

import pytest

from analysis.compare import figure_labels
from analysis.figures.catalogue import find


@pytest.mark.parametrize(
    ("figure", "name"),
    [
        ("client.latency_ms.p50", "median answer time"),
        ("client.latency_ms.p99", "99th percentile of the answer time"),
        ("client.dial_ms.max", "longest time to connect"),
        ("client.requests.ok_per_second", "throughput"),
        ("kernel.backend.TcpExt.ListenOverflows", None),
        ("client.latency_ms.list", None),
    ],
)
def test_a_figure_has_the_name_that_people_use(figure: str, name: str | None) -> None:
    assert figure_labels.label_for(figure) == name
    assert find(figure) is not None


def test_a_sentence_has_the_article_or_the_identifier() -> None:
    assert figure_labels.in_sentence("client.requests.failed", begins=True) == "The number of failed requests"
    assert figure_labels.in_sentence("client.requests.failed") == "the number of failed requests"
    assert figure_labels.in_sentence("listen.backend.depth.max", begins=True) == "listen.backend.depth.max"
