"""The live display of a run: redrawn in a terminal; elsewhere a plain line when something changes, or after 10 s."""

import time
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from analysis.formatting import format_count
from lab.runs.gauges import SECONDS_KEPT, ClientGauge, Gauges, ServerGauge, bars

# Meanings of the k6 error codes that the lab's experiments provoke (k6's own are in lib/netext/httpext/error_codes.go).
_ERRORS = {
    "1000": "closed without answer",
    "1050": "request timeout",
    "1210": "no connection",
    "1211": "connect timeout",
    "1212": "connection refused",
    "1220": "connection reset",
}
_PLAIN_PERIOD_S = 1.0
# Also while nothing changes a reader sees that the run goes on.
_UNCHANGED_PERIOD_S = 10.0
# A phase is longer than expected from this on: the end of the clients is noticed some seconds late.
_LONG = 1.25
# What k6 says of itself comes two or three seconds late.
_NOT_YET = "-"
_BAR_WIDTH = 24
# What the columns before the history take.
_BESIDES_HISTORY = 11 + 9 + 3 * 2 + 1
_MEANING, _MEANING_NARROW = 34, 27
_WIDE = 100
_FEWEST_SECONDS = 5
_ERRORS_SHOWN = 3
_STATUS_OFFSET = 1000
_STATUSES = range(400, 600)


class Display:
    """Shows the phase a run is in, how far it is, and its gauges."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._phase = ""
        self._phase_began = time.monotonic()
        self._expected_s: float | None = None
        self._gauges: Gauges | None = None
        self._last_plain = 0.0
        self._last_print, self._last_said = 0.0, ""
        # Between two looks at the gauges the clock goes on, also while a phase keeps this thread busy.
        self._shown: RenderableType = ""
        self._live = (
            Live(console=console, refresh_per_second=4, transient=True, get_renderable=self._drawn)
            if console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def phase(self, name: str, expected_s: float | None = None) -> None:
        """Show that a phase begins; `expected_s` is how long it will take, as far as is known."""
        self._phase, self._phase_began, self._expected_s = name, time.monotonic(), expected_s
        self._last_plain, self._last_said = 0.0, ""
        self.refresh()

    def watch(self, gauges: Gauges | None) -> None:
        """Show these gauges from now on, or none."""
        self._gauges = gauges

    def refresh(self) -> None:
        """Read the gauges and draw, if it is time to."""
        now = time.monotonic()
        if not self._live and now - self._last_plain < _PLAIN_PERIOD_S:
            return
        self._last_plain = now
        if self._gauges:
            self._gauges.refresh()
        if self._live:
            self._shown = _table(self._gauges, self._console.width) if self._gauges else ""
            self._live.refresh()
        else:
            self._say(now)

    def _say(self, now: float) -> None:
        """Print a plain line, unless it says what the last one said a moment ago."""
        said = self._said()
        if said == self._last_said and now - self._last_print < _UNCHANGED_PERIOD_S:
            return
        self._last_print, self._last_said = now, said
        line = f"{self._title}: {self._phase} {self._elapsed()}{said}"
        self._console.print(line, highlight=False, soft_wrap=True)

    def _elapsed(self) -> str:
        elapsed_s = time.monotonic() - self._phase_began
        if self._expected_s is None:
            return f"{elapsed_s:.0f} s"
        return f"{elapsed_s:.0f} of about {self._expected_s:.0f} s"

    def _said(self) -> str:
        """Return what a plain line says after its phase and time."""
        if not self._gauges:
            return ""
        kernels = [f"{name}: {_kernel(gauge)}" for name, gauge in self._gauges.kernels.items()]
        return "".join(f" · {part}" for part in (_client(self._gauges.client), *kernels))

    def _drawn(self) -> RenderableType:
        whole = Table.grid()
        whole.add_row(Text.assemble((self._title, "bold"), f"  {self._phase}  ", *self._progress()))
        whole.add_row(self._shown)
        return whole

    def _progress(self) -> list[str | tuple[str, str]]:
        elapsed_s, expected_s = time.monotonic() - self._phase_began, self._expected_s
        if not expected_s:
            return [f"{elapsed_s:.0f} s"]
        done = min(_BAR_WIDTH, int(_BAR_WIDTH * elapsed_s / expected_s))
        left_s = expected_s - elapsed_s
        if left_s >= 0.5:  # noqa: PLR2004  rounds to 1
            left = f"about {left_s:.0f} s left"
        else:
            left = "soon over" if elapsed_s < _LONG * expected_s else "longer than expected"
        return [("━" * done, "green"), ("━" * (_BAR_WIDTH - done), "dim"), f"  {elapsed_s:.0f} s, {left}"]


def _client(gauge: ClientGauge) -> str:
    if not gauge.is_known:
        return f"{_NOT_YET} users active, {_NOT_YET} requests"
    users, requests = format_count(gauge.users, "user"), format_count(gauge.requests, "request")
    text = f"{users} active, {requests} ({gauge.asking.per_second:,.0f}/s), {gauge.failed:,} failed"
    if gauge.errors:
        text += f": {', '.join(kinds(gauge))}"
    return text + (f", {format_count(gauge.dropped, 'iteration')} dropped" if gauge.dropped else "")


def kinds(gauge: ClientGauge) -> list[str]:
    """Return the most frequent failures, each with k6's code; those of a status are that and 1000."""
    named = []
    for code, count in gauge.errors.most_common(_ERRORS_SHOWN):
        status = int(code) - _STATUS_OFFSET if code.isdecimal() else 0
        what = f"answered {status}" if status in _STATUSES else f"{_ERRORS.get(code, 'failed')} ({code})"
        named.append(f"{count:,} {what}")
    return named


def _kernel(gauge: ServerGauge) -> str:
    parts = []
    if gauge.limit is not None:
        full = ", full" if gauge.is_full else ""
        parts = [
            f"queue {gauge.depth} of {format_count(gauge.limit + gauge.queues, 'place')}{full}",
            format_count(gauge.overflows, "overflow"),
        ]
    return ", ".join([*parts, f"{gauge.time_wait} TIME_WAIT"])


def _table(gauges: Gauges, width: int) -> Table:
    """Return a row for each figure: name, value, meaning, and its last seconds."""
    meaning = _MEANING if width >= _WIDE else _MEANING_NARROW
    seconds = max(_FEWEST_SECONDS, min(SECONDS_KEPT, width - meaning - _BESIDES_HISTORY))
    client, kernels = gauges.client, gauges.kernels
    until = max(client.asking.newest, *(gauge.waiting.newest for gauge in kernels.values()))
    table = Table.grid(padding=(0, 2))
    table.add_column(min_width=11)
    table.add_column(justify="right", min_width=9)
    table.add_column(width=meaning, no_wrap=True, overflow="ellipsis")
    table.add_column(no_wrap=True)
    table.add_row("", "", "", Text(f"the last {seconds} s".rjust(seconds), "dim"))
    table.add_row("users", _known(client, client.users))
    rate = f"{client.asking.per_second:,.0f}/s"
    table.add_row(
        "requests",
        _known(client, client.requests),
        rate if client.is_known else "",
        _scaled(client.asking.last(seconds, until), "blue"),
    )
    failed = Text(_known(client, client.failed), "bold red" if client.failed else "")
    named = kinds(client)
    table.add_row("failed", failed, next(iter(named), ""), _scaled(client.failing.last(seconds, until), "red"))
    for kind in named[1:]:
        table.add_row("", "", kind)
    if client.dropped:
        table.add_row("dropped", Text(f"{client.dropped:,}", "bold red"), "iterations never started")
    for name, gauge in kernels.items():
        table.add_row(Text(name, "bold"))
        if gauge.limit is not None:
            _add_queue(table, gauge, gauge.limit, seconds, until)
        history = _scaled(gauge.waiting.last(seconds, until), "magenta")
        table.add_row("  TIME_WAIT", f"{gauge.time_wait:,}", "", history)
    return table


def _known(client: ClientGauge, count: int) -> str:
    return f"{count:,}" if client.is_known else _NOT_YET


def _add_queue(table: Table, gauge: ServerGauge, limit: int, seconds: int, until: int) -> None:
    drawn, places = Text(), limit + gauge.queues
    for value in gauge.filling.last(seconds, until):
        drawn.append(bars([value], places), "red" if value is not None and value >= places else "green")
    state = "full: drops new SYNs" if gauge.is_full else f"of {places:,} (limit {limit:,} + {gauge.queues})"
    table.add_row("  queue", f"{gauge.depth:,}", Text(state, "bold red" if gauge.is_full else ""), drawn)
    rate = gauge.overflowing.per_second
    table.add_row(
        "  overflows",
        Text(f"{gauge.overflows:,}", "bold red" if gauge.overflows else ""),
        f"+{rate:,.0f} in a second" if rate else "",
        _scaled(gauge.overflowing.last(seconds, until), "red"),
    )


def _scaled(values: list[float | None], style: str) -> Text:
    """Return values as bars, the highest being the greatest of them."""
    most = max([value or 0 for value in values], default=0)
    return Text(bars(values, most), style if most else "dim")
