"""Serves the pages that tests.pages.make made, with a run at work, while a command looks at them.

    python -m tests.pages.serve <folder> <command …>

The command finds the address in CONNLAB_SERVED, and in CONNLAB_ELSEWHERE a free port, to which a foreign report wants
to send its reader. Its exit code is this one's.
"""

import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from lab import paths
from lab.runs import lock
from lab.serve import server
from tests.pages.make import AT_WORK, SCENARIO

# Whatever a report of another machine may try, to be elsewhere with its reader's cookies, or to send a packet there.
_LEAVING = """<!doctype html>
<title>leaving</title>
<meta http-equiv="refresh" content="0;url=http://127.0.0.1:{port}/refresh">
<script>
const peer = new RTCPeerConnection({{ iceServers: [{{ urls: "stun:127.0.0.1:{port}" }}] }});
peer.createDataChannel("any");
peer.createOffer().then((offer) => peer.setLocalDescription(offer));
open("http://127.0.0.1:{port}/window");
fetch("http://127.0.0.1:{port}/fetch", {{ mode: "no-cors" }});
for (const each of [top, parent, window]) {{
  try {{
    each.location = "http://127.0.0.1:{port}/script";
  }} catch {{}}
}}
</script>
"""
_LEADING = """<!doctype html>
<title>leading</title>
<a id="link" href="http://127.0.0.1:{port}/link">here</a>
<a id="top" target="_top" href="http://127.0.0.1:{port}/top">in place of the whole page</a>
<a id="tab" target="_blank" href="http://127.0.0.1:{port}/tab">in a new one</a>
"""


def main(results: Path, command: list[str]) -> int:
    paths.RESULTS = results.resolve()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    os.environ["CONNLAB_ELSEWHERE"] = str(port)
    for name, text in (("leaving", _LEAVING), ("leading", _LEADING)):
        (paths.RESULTS / SCENARIO / f"{name}.html").write_text(text.format(port=port))
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
