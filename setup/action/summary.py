"""What came of a CI's job, out of what `connlab run --json` and `connlab gate --json` printed (run.sh).

summary.py CODE [FILE …]      writes the outputs and the summary; CODE is the exit code of the last command
summary.py folders FILE …     prints the folders of runs
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGES = ("report.html", "derived/comparison.html")
CODES = {0: "reproduced", 1: "not reproduced", 2: "bad input", 3: "inconclusive", 4: "the lab or the machine failed"}


def load(files: list[str]) -> list[dict[str, Any]]:
    """Return what each command printed; one that failed printed nothing."""
    return [json.loads(text) for file in files if (text := Path(file).read_text(encoding="utf-8"))]


def describe(code: int, found: list[dict[str, Any]]) -> tuple[str, str]:
    """Return the verdict and the report's path, relative to the workspace; empty without a report."""
    if code not in (0, 1, 3) or not found:
        verdict = "error"
    else:
        verdict = str(found[-1].get("outcome") or found[-1]["verdict"]).replace("-", " ")
    folder = next((Path(one["folder"]) for one in reversed(found) if "folder" in one), None)
    page = next((folder / page for page in PAGES if (folder / page).is_file()), None) if folder else None
    return verdict, os.path.relpath(page) if page else ""


def summarize(code: int, found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a summary in Markdown."""
    verdict, report = describe(code, found)
    yield f"### connlab: {verdict if verdict != 'error' else CODES.get(code, f'exit code {code}')}"
    yield ""
    last = found[-1] if found else {}
    if verdict == "error":
        yield "The log of the step says why, and what to do."
    elif "figure" in last:
        counts = f"{last['runs_a']} runs of the baseline, {last['runs_b']} of this change"
        yield f"{_code(last['figure'])}: {_number(last['a'])} → {_number(last['b'])} ({counts})"
    for prediction in last.get("predictions", ()):
        yield f"- {prediction['status']}: {_text(prediction['description'])}"
    if report:
        yield from ("", f"Report: {_code(report)}, in the job's artifact")


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def _text(text: str) -> str:
    """Return text that Markdown and HTML show as it is."""
    return "".join(f"&#{ord(letter)};" if letter in "&<>*_`[]|\\#@\n\r" else letter for letter in text)


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"


def main(what: str, *files: str) -> None:
    """Do what run.sh asks for."""
    found = load([*files])
    if what == "folders":
        print(*(one["folder"] for one in found if "folder" in one), sep="\n")  # noqa: T201
        return
    code = int(what)
    verdict, report = describe(code, found)
    for variable, lines in (
        ("GITHUB_OUTPUT", (f"verdict={verdict}", f"exit-code={code}", f"report={report}")),
        ("GITHUB_STEP_SUMMARY", summarize(code, found)),
    ):
        if name := os.environ.get(variable):
            with Path(name).open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
    print(f"connlab: {verdict}{f': {report}' if report else ''}")  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
