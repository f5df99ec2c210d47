"""The whole catalogue, one scenario after the other; one that fails does not stop the rest, some in a row do."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from formats.series import FAILED_IN_A_ROW
from lab import paths
from lab.errors import ConnlabError, ExitCode, Interruption
from lab.outcomes.run_and_judge import Outcome, OutcomeSummary, run_scenario, summarize_outcome
from lab.runs import run_results
from lab.runs.lock import machine_lock
from lab.scenarios.resolved import ResolvedScenario
from lab.signals import Interrupted

# The worst first: what was not even run says least.
_WORST = (ExitCode.LAB_FAILED, ExitCode.BAD_INPUT, ExitCode.NOT_REPRODUCED, ExitCode.INCONCLUSIVE)


@dataclass(frozen=True)
class ScenarioEnd:
    """What became of one scenario; one that came to no verdict has no outcome, and says why."""

    scenario: str
    code: ExitCode
    took_s: float
    outcome: Outcome | None = None
    account: OutcomeSummary | None = None
    why: str | None = None

    @property
    def state(self) -> str:
        """Return the verdict, or what stands in its place."""
        if self.outcome is None:
            return "refused" if self.code is ExitCode.BAD_INPUT else "failed"
        return str(self.outcome.verdict["verdict"])

    def as_json(self) -> dict[str, Any]:
        """Return it as a program reads it."""
        return {
            "scenario": self.scenario,
            "state": self.state,
            "exit_code": int(self.code),
            "took_s": round(self.took_s),
            "folder": self.outcome and str(self.outcome.folder),
            "false": self.account.false if self.account else [],
            "unknown": self.account.unknown if self.account else [],
            "unexplained": self.account and self.account.unexplained,
            "why": self.why,
        }


def run_all(
    scenarios: Sequence[ResolvedScenario], arguments: Sequence[str], progress: Console, results: Console, *, new: bool
) -> list[ScenarioEnd]:
    """Run every scenario, or its series, and print each result as it comes.

    No other run of the lab comes between two of them. An interruption ends it, and so do failures in succession: what
    had not begun is missing from what is given, and a scenario that was interrupted failed.

    Raises:
        LabError: another run of the lab is in progress on this machine.
    """
    ended: list[ScenarioEnd] = []
    failed_in_a_row = 0
    with machine_lock("the run of all scenarios") as lock:
        for number, resolved in enumerate(scenarios, start=1):
            progress.print(Text(f"{number} of {len(scenarios)}: {resolved.slug}", "bold"), soft_wrap=True)
            began = time.monotonic()
            try:
                outcome = run_scenario(resolved, arguments, progress, lock, new=new)
            except (Exception, Interrupted) as error:  # noqa: BLE001 # whatever became of one, the others go on
                failed = ScenarioEnd(
                    resolved.slug, failure_code(error), time.monotonic() - began, why=failure_reason(error)
                )
                ended.append(failed)
                progress.print(Text(f"connlab: {failed.why}", "red"), soft_wrap=True)
                if isinstance(error, Interruption | Interrupted):
                    break
            else:
                took_s = time.monotonic() - began
                ended.append(
                    ScenarioEnd(resolved.slug, outcome.code, took_s, outcome, summarize_outcome(outcome, resolved))
                )
                outcome.print(results)
            failed_in_a_row = failed_in_a_row + 1 if ended[-1].code is ExitCode.LAB_FAILED else 0
            # They mean that the machine is at fault: a series stops then, and so does this.
            if failed_in_a_row == FAILED_IN_A_ROW:
                progress.print(Text(f"connlab: {explain_stop()}", "red"), soft_wrap=True)
                break
    return ended


def explain_stop() -> str:
    """Return why nothing more was begun."""
    return (
        f"{FAILED_IN_A_ROW} runs in a row failed, so the machine is probably at fault; no more were started:"
        " 'connlab doctor' checks it"
    )


def failure_reason(error: BaseException) -> str:
    """Return in one line why a scenario came to no verdict."""
    if isinstance(error, ConnlabError):
        return str(error).splitlines()[0]
    return str(error) if isinstance(error, Interrupted) else f"{type(error).__name__}: {error}"


def failure_code(error: BaseException) -> ExitCode:
    """Return the exit code of a scenario that came to no verdict."""
    return error.exit_code if isinstance(error, ConnlabError) else ExitCode.LAB_FAILED


def worst_code(ended: Iterable[ScenarioEnd]) -> ExitCode:
    """Return the worst of the exit codes."""
    codes = {one.code for one in ended}
    return next((code for code in _WORST if code in codes), ExitCode.REPRODUCED)


def print_summary(console: Console, ended: Iterable[ScenarioEnd]) -> None:
    """Print one line about each scenario."""
    columns = ("scenario", "verdict", "took", "unexplained", "not true, or why", "result")
    table = run_results.plain_table(*columns, whole=("scenario", "verdict"))
    for one in ended:
        verdict = Text(one.state, run_results.STYLES.get(one.state, "bold red"))
        table.add_row(one.scenario, verdict, f"{one.took_s:.0f} s", *_details(one))
    console.print(table)


def _details(one: ScenarioEnd) -> tuple[str, str, str]:
    if one.outcome is None or one.account is None:
        return "-", one.why or "", "-"
    wanting = [*(f"{name} false" for name in one.account.false), *(f"{name} unknown" for name in one.account.unknown)]
    return run_results.format_figure(one.account.unexplained), ", ".join(wanting), paths.shown(one.outcome.folder)
