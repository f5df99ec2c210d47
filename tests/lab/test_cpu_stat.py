"""What a kernel counts of a container that its processor limit holds is read from control groups of both versions."""

from pathlib import Path

import pytest

from lab.engines.cpu_stat import CpuStat, read_cpu_stat

ID = "b85bae01bf66ad5f"
V1 = "nr_periods 30\nnr_throttled 28\nthrottled_time 2500000000\n"
V2 = "usage_usec 1\nuser_usec 1\nsystem_usec 0\nnr_periods 30\nnr_throttled 28\nthrottled_usec 2500000\n"


@pytest.mark.parametrize(
    ("lines", "file", "stat"),
    [
        (f"2:cpuacct:/docker/{ID}\n1:cpu:/docker/{ID}\n0::/docker/{ID}\n", f"cpu/docker/{ID}", V1),
        (f"4:cpu,cpuacct:/docker/{ID}\n", f"cpu/docker/{ID}", V1),
        (f"0::/system.slice/docker-{ID}.scope\n", f"system.slice/docker-{ID}.scope", V2),
    ],
)
def test_both_versions_are_read(tmp_path: Path, lines: str, file: str, stat: str) -> None:
    _write(tmp_path, lines, file, stat)
    assert read_cpu_stat("7", ID, tmp_path) == CpuStat(28, 2_500_000)


@pytest.mark.parametrize(
    ("lines", "stat"),
    [
        # The engine counts its processes on another machine, where 7 is another one.
        ("1:cpu:/docker/another\n", V1),
        # A group without the controller.
        (f"0::/docker/{ID}\n", "usage_usec 1\n"),
        (f"1:cpu:/docker/{ID}\n", "nr_throttled\n"),
        ("nothing of the kind\n", V1),
    ],
)
def test_what_cannot_be_read_is_unknown(tmp_path: Path, lines: str, stat: str) -> None:
    _write(tmp_path, lines, f"cpu/docker/{ID}", stat)
    _write(tmp_path, lines, f"docker/{ID}", stat)
    assert read_cpu_stat("7", ID, tmp_path) is None


def test_a_container_that_is_gone_has_none(tmp_path: Path) -> None:
    assert read_cpu_stat("", "", tmp_path) is None


def _write(root: Path, lines: str, group: str, stat: str) -> None:
    for path, text in ((root / "proc/7/cgroup", lines), (root / "sys/fs/cgroup" / group / "cpu.stat", stat)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
