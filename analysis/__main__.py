"""`python -m analysis <run-dir>`: derives a run's verdict again. Prints errors alone; the exit code tells the verdict.

0 reproduced, 1 not reproduced, 2 no run's folder, 3 inconclusive, 4 the analysis itself failed.
"""

import argparse
import os
import sys
import traceback
from pathlib import Path

from analysis.derivation import FlowsError, ManifestError, TooLargeError, analyse
from formats.sanitize import visible_lines

_EXIT = {"reproduced": 0, "not-reproduced": 1, "inconclusive": 3}
_BAD_INPUT = 2
_FAILED = 4


def main() -> int:
    """Analyse the run that the command line names; return the exit code."""
    os.umask(os.umask(0) | 0o022)  # what is derived is not for others to change
    parser = argparse.ArgumentParser(prog="python -m analysis", description=__doc__)
    parser.add_argument("run_dir", type=Path, metavar="run-dir", help="the folder with manifest.json and raw/")
    try:
        return _EXIT[analyse(parser.parse_args().run_dir).verdict]
    except ManifestError as error:
        _say(str(error))
        return _BAD_INPUT
    except (FlowsError, TooLargeError) as error:
        _say(str(error))
        return _FAILED
    except OSError as error:
        _say(f"{error.filename}: {error.strerror}")
        return _FAILED
    except Exception:  # noqa: BLE001  Python's own exit code for it, 1, would say `not reproduced`
        _say(traceback.format_exc())
        return _FAILED


def _say(problem: str) -> None:
    sys.stderr.write(f"{visible_lines(problem)}\n")


if __name__ == "__main__":
    sys.exit(main())
