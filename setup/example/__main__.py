"""Makes docs/example, and what the documents show of it: `python -m setup.example [run]` (make example).

It records the run anew, or takes a recorded one: docs/example itself, to make only the pictures and the story again.
"""

import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.evidence.rawrun import RawRun
from analysis.reports.stories.explanation import explain_request, format_explanation
from formats.manifest import load_manifest
from lab import paths, terminal
from lab.console import run_lookup
from lab.errors import BadInput, ConnlabError, LabError, Problem
from lab.runs import machine, run_results

SCENARIO = "accept-queue-overflow"
EXAMPLE = paths.ROOT / "docs" / "example"
PICTURES = (paths.ROOT / "docs" / "report.png", paths.ROOT / "docs" / "report-player.png")
MOVING = paths.ROOT / "docs" / "report-player.gif"
STORY = paths.ROOT / "docs" / "explain.md"
REQUEST = "k6-1/71"
# What the containers said is for people, and k6's archive holds the lab's own workload.
_LEFT_OUT = ("archive.tar", "collector.log", "container.log")
_KEPT = ("manifest.json", "raw", "derived")
# A machine that is busier shows its own delays.
_IDLE_PERCENT_MIN = 50
_BEGIN, _END = "<!-- story: make example -->\n", "<!-- end of story -->"
_PNG_HEADER_BYTES = 8 + 25
_DRAWN_FROM = b"Source\0"


def main(run: str) -> int:
    """Do what the command line asks for."""
    try:
        folder = run_lookup.find_run(run) if run else _recorded()
        refuse_unfit(folder, quiet=not run)
        if folder.resolve() != EXAMPLE:
            _take(folder)
        run_results.analyse_run(EXAMPLE)
        STORY.write_text(with_story(STORY.read_text()))
        _draw()
    except ConnlabError as error:
        terminal.problem(f"example: {error}")
        return int(error.exit_code)
    terminal.result(["docs/example, its pictures and its story are made; next, read what changed: git diff docs"])
    return 0


def _recorded() -> Path:
    """Run the scenario, and give the run's folder."""
    if machine.git_state().dirty is not False:
        raise BadInput(Problem("the work tree differs from its commit, which the run names", hint="commit it first"))
    command = [str(paths.ROOT / ".venv" / "bin" / "connlab"), "run", SCENARIO]
    if subprocess.run(command, check=False).returncode not in (0, 1, 3):
        raise LabError("there is no new run to take")
    return run_lookup.find_run(SCENARIO)


def refuse_unfit(folder: Path, *, quiet: bool) -> None:
    """Refuse a run that the documents would be wrong about, or that a busy machine has drawn its own traces into.

    Raises:
        BadInput: it is another scenario's, or not what that predicts, or its machine was busy.
    """
    manifest, verdict = _json(folder / "manifest.json"), _json(folder / "derived" / "verdict.json")
    idle = verdict["health"]["host"]["figures"].get("cpu_idle_percent")
    shown = paths.shown(folder)
    if manifest["scenario"] != SCENARIO or any(knob["source"] == "set" for knob in manifest["knobs"].values()):
        raise BadInput(Problem(f"it is not {SCENARIO} as it stands", shown))
    if verdict["verdict"] != "reproduced" or verdict["problems"]:
        raise BadInput(
            Problem(f"it is {verdict['verdict']}, or its instruments were not healthy", shown, "run it again")
        )
    if quiet and (idle is None or idle < _IDLE_PERCENT_MIN):
        what = f"the processors were idle for {idle} % of the load, and at least {_IDLE_PERCENT_MIN} % are wanted"
        raise BadInput(Problem(what, shown, f"stop other programs; to take it as it is: make example RUN={shown}"))


def _take(folder: Path) -> None:
    """Put a run in the place of the example."""
    shutil.rmtree(EXAMPLE)
    EXAMPLE.mkdir()
    ignored = shutil.ignore_patterns(*_LEFT_OUT)
    for name in _KEPT:
        if (folder / name).is_dir():
            shutil.copytree(folder / name, EXAMPLE / name, ignore=ignored, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(folder / name, EXAMPLE / name)


def with_story(document: str) -> str:
    """Give the document with the story of one of the example's requests, which leaves out what repeats itself."""
    before, begin, rest = document.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise BadInput(Problem(f"the story stands between {_BEGIN.strip()} and {_END}", paths.shown(STORY)))
    told = list(format_explanation(explain_request(RawRun(EXAMPLE, load_manifest(EXAMPLE)), REQUEST)))
    lines = told[next(index for index, line in enumerate(told) if line.startswith("Request ")) :]
    third, gives_up = (
        next(index for index, line in enumerate(lines) if words in line) for words in ("SYN 3 of", "gives up the dial")
    )
    end_of_story = lines.index("", gives_up)
    story = [*lines[:third], "…", *lines[gives_up:end_of_story]]
    return before + "\n".join([begin + "```", *story, "```", end]) + after


def _draw() -> None:
    """Let a browser draw the pictures, and let each say which run it shows."""
    with tempfile.TemporaryDirectory() as frames:
        arguments = f"--env CONNLAB_PAGES=../../docs/example --volume {frames}:/frames"
        reads = os.environ | {"CONNLAB_READS": "docs", "CONNLAB_DOCKER_ARGUMENTS": arguments}
        command = ("bash", "-ec", "/repo/setup/node-modules.sh; node pictures.js ../../docs /frames")
        _must([str(paths.SETUP / "check.sh"), "--mend", "pages", "tests/pages", *command], reads)
        for picture in PICTURES:
            picture.write_bytes(signed(picture.read_bytes(), shown_run()))
        _must([str(paths.SETUP / "python.sh"), "docs"])
        made_by = (str(paths.ROOT / ".venv-docs" / "bin" / "python"), "-m", "setup.example.moving")
        _must([*made_by, frames, str(MOVING), shown_run()])


def _must(command: list[str], environment: Mapping[str, str] | None = None) -> None:
    if subprocess.run(command, cwd=paths.ROOT, env=environment, check=False).returncode != 0:
        raise LabError("the pictures were not drawn", hint="read what was printed above")


def shown_run() -> str:
    """Name the run of the example, as its pictures do."""
    manifest = _json(EXAMPLE / "manifest.json")
    return f"{manifest['scenario']}/{manifest['run']}"


def signed(png: bytes, source: str) -> bytes:
    """Give a picture that says in its own metadata what it shows."""
    content = b"tEXt" + _DRAWN_FROM + source.encode()
    chunk = struct.pack(">I", len(content) - 4) + content + struct.pack(">I", zlib.crc32(content))
    return png[:_PNG_HEADER_BYTES] + chunk + png[_PNG_HEADER_BYTES:]


def source_of(png: bytes) -> str | None:
    """Give what a picture says that it shows."""
    _, found, rest = png.partition(b"tEXt" + _DRAWN_FROM)
    length = int.from_bytes(png[_PNG_HEADER_BYTES : _PNG_HEADER_BYTES + 4], "big") - len(_DRAWN_FROM)
    return rest[:length].decode() if found else None


def _json(file: Path) -> Any:  # noqa: ANN401 # whatever it holds
    return json.loads(file.read_text())


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
