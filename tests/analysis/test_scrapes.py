"""A declared value is found on a page of JSON, text or CSV; what the page lacks is left out."""

import pytest

from analysis.evidence.scrapes import values
from formats.role import Page, Value

CSV = "# pxname,svname,qcur,scur\nservers,backend-1,3,10\nservers,BACKEND,4,\n"


@pytest.mark.parametrize(
    ("form", "body", "at", "found"),
    [
        ("json", {"threads": {"busy": 3}}, "threads.busy", 3),
        ("json", {"threads": {"busy": "3"}}, "threads.busy", None),
        ("json", {"threads": 3}, "threads.busy", None),
        ("text", "Active connections: 5 \n", r"Active connections: (\d+)", 5),
        ("text", "Active connections: 5 \n", r"Waiting: (\d+)", None),
        ("text", "Active connections: \u0665\n", r"Active connections: (\d+)", None),
        # Python's own would look for the rest of our lives.
        ("text", f"{'a' * 99}!", "(?:a+)+(b)", None),
        ("csv", CSV, "servers/backend-1/scur", 10),
        ("csv", CSV, "servers/BACKEND/qcur", 4),
        ("csv", CSV, "servers/BACKEND/scur", None),
        ("csv", CSV, "servers/backend-2/scur", None),
        ("csv", CSV, "servers/backend-1/smax", None),
        ("csv", "", "servers/backend-1/smax", None),
    ],
)
def test_a_value_is_found_where_its_page_has_it(form: str, body: object, at: str, found: int | None) -> None:
    page = Page.model_validate({"url": "http://x", "format": form, "values": {"it": Value(at=at)}})
    assert values(page, [body]) == [{} if found is None else {"it": found}]
