"""The live display of a run: redrawn in a terminal, one plain line a second elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from lab.gauges import ClientGauge, Gauges, ServerGauge

# Meanings of the k6 error codes that the lab's experiments provoke (k6's own are in lib/netext/httpext/error_codes.go).
_ERRORS = {
    "1000": "closed without answer",
    "1050": "request time-out",
    "1211": "connect time-out",
    "1212": "connection refused",
    "1220": "connection reset",
}
_PLAIN_PERIOD_S = 1.0


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
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def phase(self, name: str, expected_s: float | None = None) -> None:
        """Show that a phase begins; `expected_s` is how long it will take, as far as is known."""
        self._phase, self._phase_began, self._expected_s = name, time.monotonic(), expected_s
        self._last_plain = 0.0
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
            self._live.update(self._table(), refresh=True)
        else:
            self._console.print(self._line(), highlight=False, soft_wrap=True)

    def _elapsed(self) -> str:
        elapsed_s = time.monotonic() - self._phase_began
        if self._expected_s is None:
            return f"{elapsed_s:.0f} s"
        return f"{elapsed_s:.0f} of about {self._expected_s:.0f} s"

    def _line(self) -> str:
        parts = [f"{self._title}: {self._phase} {self._elapsed()}"]
        if self._gauges:
            parts += [_client(self._gauges.client)]
            parts += [f"{name}: {_kernel(gauge)}" for name, gauge in self._gauges.kernels.items()]
        return " · ".join(parts)

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        table.add_row(f"[bold]{self._title}[/bold]", f"{self._phase} {self._elapsed()}{self._bar()}")
        if self._gauges:
            table.add_row("clients", _client(self._gauges.client))
            for name, gauge in self._gauges.kernels.items():
                table.add_row(name, _kernel(gauge))
        return table

    def _bar(self) -> str:
        if not self._expected_s:
            return ""
        width = 24
        done = min(width, int(width * (time.monotonic() - self._phase_began) / self._expected_s))
        return f"  [green]{'━' * done}[/green][dim]{'━' * (width - done)}[/dim]"


def _client(gauge: ClientGauge) -> str:
    text = f"{gauge.users} users, {gauge.requests} requests, {gauge.failed} failed"
    if gauge.errors:
        named = (f"{count} {_ERRORS.get(code, 'failed')} ({code})" for code, count in gauge.errors.most_common(3))
        text += f": {', '.join(named)}"
    return text + (f", {gauge.dropped} iterations dropped" if gauge.dropped else "")


def _kernel(gauge: ServerGauge) -> str:
    parts = [] if gauge.limit is None else [f"queue {gauge.depth}/{gauge.limit}", f"{gauge.overflows} overflows"]
    return ", ".join([*parts, f"{gauge.time_wait} TIME_WAIT"])
