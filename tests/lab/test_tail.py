from pathlib import Path

from lab.runs.gauges import Tail, last_tick_us


def test_only_what_is_new_and_whole_is_given(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    tail = Tail(file)
    assert tail.objects() == []
    file.write_text('{"a": 1}\n{"a": 2}\n{"a"')
    assert tail.objects() == [{"a": 1}, {"a": 2}]
    with file.open("a") as stream:
        stream.write(": 3}\n")
    assert tail.objects() == [{"a": 3}]
    assert tail.objects() == []


def test_what_is_no_object_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('[1]\nno json\n\n{"a": 1}\n')
    assert Tail(tmp_path / "x").objects() == [{"a": 1}]


def test_the_last_whole_tick_is_found_behind_other_lines(tmp_path: Path) -> None:
    file = tmp_path / "samples.jsonl"
    assert last_tick_us(file) == 0
    file.write_text('{"kind":"header","time_us":1}\n')
    assert last_tick_us(file) == 0
    with file.open("a") as stream:
        stream.write('{"kind":"tick","time_us":2}\n' * 50_000)
        stream.write('{"kind":"tick","time_us":3}\n{"kind":"self","time_us":4}\n{"kind":"tick","time_us":5}')
    assert last_tick_us(file) == 3
