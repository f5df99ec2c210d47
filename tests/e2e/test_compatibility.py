"""docs/compatibility.md is what the lab and the programs themselves say of each feature."""

from lab.engines.selection import selected_engine
from tools import compatibility


def test_the_page_is_what_the_lab_and_the_programs_say() -> None:
    assert compatibility.PAGE.read_text() == compatibility.write_page(compatibility.examine_all(selected_engine()))
