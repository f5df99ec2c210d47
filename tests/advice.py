"""`make test-advice`: runs scenarios, follows the advice on each run, and says how the run that followed it ended.

    .venv/bin/python -m tests.advice [SCENARIO …]

Of a scenario with arms each arm runs once. An advice is the command that `connlab advise` prints; it is carried out as
it is. A prediction that is false afterwards was written for other settings and does not say so: the exit code is 1.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from formats import manifest
from lab import paths
from lab.errors import BadInput, ExitCode
from lab.scenarios import places
from lab.scenarios.resolve import resolve
from tests.e2e.conftest import CONNLAB, HANG_S


def main(slugs: Sequence[str]) -> int:
    """Follow the advice of the scenarios named, or of all."""
    try:
        once = {slug: ["--repetitions", "1"] if resolve(slug).scenario.arms else [] for slug in slugs or places.slugs()}
    except BadInput as refused:
        sys.stderr.write(f"{refused}\n")
        return ExitCode.BAD_INPUT
    wrong = [said for slug, options in once.items() for said in _followed(slug, options)]
    for said in wrong:
        sys.stderr.write(f"wrong: {said}\n")
    return int(bool(wrong))


def _followed(slug: str, options: Sequence[str]) -> Iterator[str]:
    """Run a scenario and follow its runs' advice; give what went wrong."""
    before = _runs(slug)
    code, said = _call(CONNLAB, "run", slug, *options)
    sys.stdout.write(f"{slug}: {_end(said)}\n")
    if code not in (ExitCode.REPRODUCED, ExitCode.INCONCLUSIVE):
        yield f"{slug} ended with {code}: {said[-2000:]}"
    commands = dict.fromkeys(command for run in sorted(_runs(slug) - before) if (command := _advice(run)))
    for command in commands:
        _, said = _call("bash", "-c", command)
        end = _end(said)
        became = re.search(r"^.* → .*, as advised", said, re.MULTILINE)
        sys.stdout.write(f"  {command}: {end}{f'; {became[0]}' if became else ''}\n")
        sys.stdout.flush()
        if end not in ("reproduced", "inconclusive"):
            yield f"{command} ended {end}: {said[-2000:]}"


def _runs(slug: str) -> set[Path]:
    return {file.parent for file in (paths.RESULTS / slug).glob(f"*/{manifest.FILE}")}


def _advice(run: Path) -> str | None:
    code, said = _call(CONNLAB, "advise", str(run), "--json")
    found: str | None = json.loads(said)["command"] if code == 0 else None
    return found


def _call(*command: str | Path) -> tuple[int, str]:
    with subprocess.Popen(
        command, cwd=paths.ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as program:
        try:
            said, _ = program.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            program.terminate()
            program.communicate()
            raise
        except KeyboardInterrupt:
            # Ctrl-C reached the run, too: it removes its containers first.
            program.communicate()
            raise
    return program.returncode, said


def _end(said: str) -> str:
    verdicts = re.findall(r"^verdict: (\S+)", said, re.MULTILINE)
    return verdicts[-1] if verdicts else "without a verdict"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
