"""Serves the pages that tests.pages.make made, with slides and a run at work, while a command looks at them.

    python -m tests.pages.serve <folder> <command …>

The command finds the address in CONNLAB_SERVED; its exit code is this one's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from lab import paths
from lab.run import lock
from lab.serve import server
from lab.teach import slides
from tests.pages.make import AT_WORK


def main(results: Path, command: list[str]) -> int:
    paths.RESULTS = results.resolve()
    for name in slides.names():
        slides.write(name)
    with tempfile.TemporaryDirectory() as folder:
        file, note = Path(folder) / "connlab.lock", Path(folder) / "running.json"
        lock.lock_file = lambda: file
        lock.note_file = lambda: note
        with lock.machine_lock("the run of a test") as held:
            held.note(None, paths.RESULTS / AT_WORK)
            return _while_served(command)


def _while_served(command: list[str]) -> int:
    with server.listening(0) as served:
        # It ends with the process: only the main thread could end it in order.
        threading.Thread(target=served._server.run, daemon=True).start()  # noqa: SLF001 # as above
        return subprocess.run(command, env={**os.environ, "CONNLAB_SERVED": served.address}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
