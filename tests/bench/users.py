"""Finds how many users can poll on this machine with nobody failing, and all of it vouched for. One JSON line.

    .venv/bin/python -m tests.bench.users [FEWEST [STEP [MOST]]]

The arm `raised` of long-polling-at-scale, at its published size, with ever more users, until a run is not `reproduced`.
"""

import json
import sys

from lab.runs import run_results
from tests.bench.passing import passing_run

_SCENARIO = "long-polling-at-scale"


def main() -> int:
    """Try ever more users."""
    fewest, step, most = (int(text) for text in (*sys.argv[1:], *("6000", "2000", "16000")[len(sys.argv) - 1 :]))
    reached, ended = 0, "reproduced"
    for users in range(fewest, most + 1, step):
        ended = _verdict(users)
        if ended != "reproduced":
            break
        reached = users
    line = {"bench": "users", "users": reached, "most_tried": users, "ended": ended}
    sys.stdout.write(json.dumps(line) + "\n")
    return 0


def _verdict(users: int) -> str:
    settings = (f"load.users={users}", "backend.max_connections=20000")
    with passing_run(_SCENARIO, settings, "published") as folder:
        verdict = str(run_results.analyse_run(folder)["verdict"])
    sys.stderr.write(f"{users} users: {verdict}\n")
    return verdict


if __name__ == "__main__":
    sys.exit(main())
