import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import BadInput
from lab.reading.document import parse, read
from lab.scenarios.resolve import resolve
from tests.lab.support import MINIMAL, Write


def test_each_value_knows_its_line() -> None:
    parsed = parse(b"a: 1\nb:\n  - x: 2\n  - 3\nnet.ipv4.x: 4\n", "f")
    assert parsed.content == {"a": 1, "b": [{"x": 2}, 3], "net.ipv4.x": 4}
    assert [parsed.where(place) for place in [("a",), ("b", 0, "x"), ("b", 1), ("net.ipv4.x",)]] == [
        "f:1",
        "f:3",
        "f:4",
        "f:5",
    ]


def test_what_is_missing_is_cited_by_what_encloses_it() -> None:
    assert parse(b"a: 1\nb:\n  c: 1\n", "f").where(("b", "d", "e")) == "f:2"


def test_aliases_of_aliases_cannot_stand_for_more_than_a_file_may_hold() -> None:
    ten = b", ".join
    lines = [b"a: &a [" + ten([b"x"] * 10) + b"]"]
    lines += [b"%c: &%c [" % (each, each) + ten([b"*%c" % (each - 1)] * 10) + b"]" for each in b"bcdefgh"]
    with pytest.raises(BadInput, match=r"f:\d: the file holds more than 20,000 values; leave out what it repeats"):
        parse(b"\n".join(lines), "f")
    assert isinstance(parse(b"\n".join(lines[:3]), "f").content, dict)


@pytest.mark.parametrize(
    ("data", "content"),
    [
        (b"x: &x {a: 1}\ny: {<<: *x, b: 2}\n", {"x": {"a": 1}, "y": {"a": 1, "b": 2}}),
        (b"x: &x {a: 1}\ny: {<<: *x}\n", {"x": {"a": 1}, "y": {"a": 1}}),
        (b"x: &x {a: 1}\ny: {a: 2, <<: [*x, {a: 3, b: 4}]}\n", {"x": {"a": 1}, "y": {"a": 2, "b": 4}}),
        (b"x:\ny: {<<: [{a: 1}, {a: 2}]}\n", {"x": None, "y": {"a": 1}}),
    ],
)
def test_merged_keys_are_read_and_cited_by_what_encloses_them(data: bytes, content: object) -> None:
    parsed = parse(data, "f")
    assert parsed.content == content
    assert parsed.where(("y", "a")) == "f:2"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: 1\na: 2\n", "f:2: the key 'a' appears twice"),
        (b"1: a\n'1': b\n", "f:2: the key '1' appears twice"),
        (b"a: 'x\n", "f:2: broken YAML: found unexpected end of stream"),
        (b"a: 1\n\tb: 1\n", "f:2: broken YAML"),
        (b"a: *b\n", "f:1: broken YAML: found undefined alias"),
        (b"a: 1\n---\nb: 1\n", "f:2: the file holds a second document"),
        (b'a: 1\nx: !!python/object/apply:os.system ["true"]\n', "f:2: a tag ('!!python/object/apply:os.system')"),
        (b"a:\n  b: !x {c: 1}\n", "f:2: a tag ('!x') has no place here; leave it out"),
        (b"a: !!binary aGk=\n", "f:1: a tag ('!!binary')"),
        (b"a\xff", "f:1: the file is not UTF-8 text"),
        (b"[" * 5000, "f:1: nested too deeply"),
        (b"{a: " * 40 + b"1" + b"}" * 40, "f:1: nested too deeply"),
        (b"a: &a {<<: *a}\n", "f:1: the alias '*a' is inside what it repeats; leave it out"),
        (b"a: &a\n  b: &b {<<: *a}\n", "f:2: the alias '*a' is inside what it repeats"),
        (b"a: &a [*a]\n", "f:1: the alias '*a' is inside what it repeats"),
        (b"{a: 1, {b: 2}: 3}\n", "f:1: a list or a mapping cannot be a key"),
        (b"a: 1\n? [b, {c: 2}]\n: 3\n", "f:2: a list or a mapping cannot be a key"),
        (b"a: &a {b: 1}\nc:\n  ? *a\n  : 2\n", "f:3: a list or a mapping cannot be a key"),
        (rb'a: ["\ud800\udc00"]', r"f:1: '\ud800' is half a character"),
        (b'a: 1\nb: 2\n"\\udc00": 3\n', r"f:3: '\udc00' is half a character"),
        (rb'a: "b\0c"', r"f:1: '\0' ends a text for every program; leave it out"),
        (rb'{"b": 1, "\udc00": 2}', r"f:1: '\udc00' is half a character"),
        (b"a: 0o" + b"7" * 9000 + b"\n", "f:1: a number of more than 100 digits"),
        (b"b: 1\na: " + b"9" * 9000 + b"\n", "f:2: a number of more than 100 digits"),
        (b"a: [" + b"1," * 30_000 + b"1]\n", "f:1: the file holds more than 20,000 values"),
    ],
)
def test_broken_files_are_refused_with_their_line(data: bytes, message: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse(data, "f")
    assert str(refused.value).startswith(message)


def test_a_text_is_read_once_and_what_is_set_over_it_leaves_it_as_it_was(write_scenario: Write) -> None:
    write_scenario()
    first, second = resolve("one", ["load.users=9"]), resolve("one")
    assert first.document.content is second.document.content
    assert (first.values["load.users"], second.values["load.users"]) == (9, 3)

    write_scenario(MINIMAL.replace("users: 3", "users: 4"))
    assert resolve("one").values["load.users"] == 4


@given(st.binary() | st.text(alphabet="ab:-[]{}&*<!#'\"|> \n\t0.").map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(BadInput):
        assert parse(data, "f").file == "f"


def test_a_file_of_no_size_that_somebody_writes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    with file.open("wb") as opened:
        opened.truncate(1 << 40)
    with pytest.raises(BadInput, match=r"scenario\.yaml:1: the file has more than 4 MiB"):
        read(file)


def test_a_file_may_be_reached_by_a_link_and_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text("a: 1")
    (tmp_path / "link.yaml").symlink_to("scenario.yaml")
    assert read(tmp_path / "link.yaml").content == {"a": 1}
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(OSError, match="is a named pipe"):
        read(tmp_path / "pipe.yaml")
