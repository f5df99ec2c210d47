"""A program in a container that stays after the program's end, so that its files can be had; and how it is ended.

Only a container that runs can hand out its files, and nothing else stands beside this one in its pod.
"""

from __future__ import annotations

from pathlib import Path

from lab.engines.kubernetes.kubectl import Kubectl, KubectlFailed

# How long a container stays after its program has ended, where nobody says that it may go.
HOLD_S = 600
_FILES_S = 600

# The program's number, its exit code and the number of this shell are for those who come by `kubectl exec`. A shell
# that has just forked may lose any other signal than KILL before it becomes the program.
_RUN = f"""\
echo "$$" >/tmp/connlab.holder
trap 'kill -s KILL "$pid"; exit 0' TERM
"$@" & pid=$!
echo "$pid" >/tmp/connlab.pid
wait "$pid"; code=$?
echo "$code" >/tmp/connlab.exit
[ "$code" = 0 ] || exit "$code"
sleep {HOLD_S} & pid=$!
wait "$pid"
"""
_END = (
    'read -r pid </tmp/connlab.pid; kill -s "$1" "$pid"; n=0; '
    'while [ ! -s /tmp/connlab.exit ] && [ "$n" -lt "$2" ]; do sleep 0.1; n=$((n + 1)); done; [ -s /tmp/connlab.exit ]'
)
# A little later: what ends the container would end this command too.
_RELEASE = 'read -r holder </tmp/connlab.holder || exit; (sleep 0.3; kill "$holder") >/dev/null 2>&1 &'


def holding_command(*program: str, before: str = "") -> list[str]:
    """Return the command of a container that runs a program and stays; if the program fails, it ends with its code.

    Kubernetes takes two dollars there for one. `before` are lines of shell that come first.
    """
    return [part.replace("$", "$$") for part in ("sh", "-c", f"{before}{_RUN}", "sh", *program)]


def end_program(kubectl: Kubectl, pod: str, container: str, signal: str, grace_s: int) -> None:
    """End the program, by force if it has not ended after the grace; its container stays.

    Raises:
        KubectlFailed: it does not end, or its container does not run.
    """
    for sent in (signal, "KILL"):
        asked = ("sh", "-c", _END, "sh", sent, str(10 * grace_s))
        try:
            kubectl("exec", pod, "--container", container, "--", *asked, timeout_s=grace_s + 30)
        except KubectlFailed:
            if sent == "KILL":
                raise
        else:
            return


def fetch_folder(kubectl: Kubectl, pod: str, container: str, folder: str, target: Path) -> None:
    """Bring the files of a folder out, by tar in the container; raises KubectlFailed."""
    kubectl("cp", "--container", container, "--retries", "3", f"{pod}:{folder}", str(target), timeout_s=_FILES_S)


def release_container(kubectl: Kubectl, pod: str, container: str) -> None:
    """Let a container end, and its program with it; raises KubectlFailed."""
    kubectl("exec", pod, "--container", container, "--", "sh", "-c", _RELEASE)
