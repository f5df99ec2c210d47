"""Prints docs/figures.md, the table of all figures: `python -m analysis.figures > docs/figures.md`."""

import json
import sys
from pathlib import Path

from ruamel.yaml import YAML

from analysis.diagnosis.causes import CAUSES
from analysis.diagnosis.health import Evidence
from analysis.evidence.jsonl import ERROR_KINDS
from analysis.expressions.values import FUNCTIONS, Kind
from analysis.figures import programs
from analysis.figures.catalogue import FIGURES
from analysis.figures.declaration import Figure
from analysis.figures.kernel import STATES
from analysis.figures.run import STATISTICS
from formats.role import Role

_HEADINGS = {
    "client": "The client",
    "link": "Distance and loss",
    "kernel": "The kernel's counters",
    "listen": "Accept queues",
    "inner": "Queues inside a container",
    "sockets": "Sockets by state",
    "sysctl": "The kernel's settings",
    "metrics": "The metrics ports",
    "process": "Processes",
    "access": "The proxy's logs",
    "gateway": "The gateway's connections",
    "flows": "Connections, by the captures",
    "events": "Connections, by the kernels themselves",
    "shutdown": "Orderly ends and reloads",
    "moved": "Names that moved",
    "ledger": "The ledger",
    "model": "The model",
}

_INTRODUCTION = """\
# Figures

<!-- Made by `python -m analysis.figures > docs/figures.md`; change the declarations in analysis/figures/ instead. -->

A prediction can use the figures below, and every knob by its own name, durations in ms (`load.users`,
`backend.keep_alive_timeout`). `connlab show <scenario>` lists a scenario's knobs.

[data-format.md](data-format.md) defines the *window* that counters cover. [Evidence](#evidence) says what makes a
figure unknown.

## Parameters

- `<role>`: a role of the path (`k6`, `nginx`, `haproxy`, `gateway`, `backend`, or a service of your own), or one
  instance with `_` for `-`, such as `backend_1`. A role's counts are sums over its instances; its maxima are the
  largest value of any one instance.
- `<backend>`: `backend` or one of its instances.
- `<server>`: a role or an instance that others connect to, that is, any except `k6`.
- `<proxy>`: the proxy on the path, such as `nginx`.
- `<Counter>`: a counter of /proc/net/netstat or /proc/net/snmp by the kernel's name, such as `TcpExt.ListenOverflows`.
"""

_TOLD = """\
## What programs say of themselves

`scrape` in a `role.yaml` declares these: pages that the collector reads once a second, and their values.

| figure | role | meaning | source |
|---|---|---|---|
"""

_LANGUAGE = """\
## Expressions

A prediction is a comparison, or several combined with `and`, `or` and `not`. It may use `+ - * / // %`,
`== != < <= > >=` (chained as in `0 < x <= 5`), `true`, `false`, parentheses, and the functions below. A knob that is
text is compared by `==` and `!=` with a text in quotes: `haproxy.http_reuse != "always"`.

| function | gives |
|---|---|
"""

_UNKNOWN = """
A figure without evidence is *unknown*, and so is everything computed from it, except in logic: `false and unknown` is
false, `true or unknown` is true. A division by zero is unknown, and so is `nth` of a list that is too short.
"""


_EVIDENCE = """\
## Evidence

A figure is unknown if its evidence is spoilt; `why` in the verdict gives the reason. A file of another version counts
as missing. Nothing else spoils evidence: late ticks carry their own time, and a gap between the edges of the window
does not change a counter's difference.

If the load is in doubt, a prediction is unknown, unless it uses only knobs, `sysctl`, `ledger.unexplained` and
`ledger.identities`. All other figures depend on the load.

| evidence | meaning | spoilt by |
|---|---|---|
"""


def render_markdown() -> str:
    """Return the content of docs/figures.md."""
    parts = [_INTRODUCTION + _parameters()]
    for group, heading in _HEADINGS.items():
        rows = [
            f"| `{figure.pattern}` | {_unit(figure)} | {figure.meaning} | {figure.source} |"
            for figure in FIGURES
            if figure.pattern.split(".")[0] == group
        ]
        parts.append("\n".join([f"## {heading}\n", "| figure | unit | meaning | source |", "|---|---|---|---|", *rows]))
    return "\n\n".join(part.strip() for part in [*parts, _told(), _language(), _evidence()]) + "\n"


def _told() -> str:
    """Return the figures of the lab's own roles: their declarations stand beside the analysis."""
    rows = [
        f"| `{figure.pattern}` | `{figure.of_role}` | {figure.meaning} | {figure.source} |"
        for figure in programs.page_figures(_declared())
    ]
    return _TOLD + "\n".join(rows)


def _declared() -> dict[str, Role]:
    yaml = YAML(typ="safe", pure=True)
    files = sorted(Path(__file__).parents[2].glob("*/role.yaml"))
    found = {file.parent.name: yaml.load(file.read_text("utf-8")) for file in files}
    # JSON has texts alone as keys, as the model does.
    return {name: Role.model_validate_json(json.dumps({"group": name} | declared)) for name, declared in found.items()}


def _unit(figure: Figure) -> str:
    return figure.unit or ("true or false" if figure.kind is Kind.TRUTH else "count")


def _parameters() -> str:
    states = [f"`{state}`" for state in (*STATES, "time_wait")]
    kinds = [f"`{kind.replace('-', '_')}`" for kind in ERROR_KINDS]
    statistics = [f"`{name}`" for name in STATISTICS]
    return (
        f"- `<state>`: {', '.join(states)}.\n"
        f"- `<kind>`: {', '.join(kinds)}.\n"
        f"- `<statistic>`: {', '.join(statistics)}.\n"
        f"- `<cause>`: {', '.join(f'`{cause.figure}`' for cause in CAUSES)}.\n"
        "- `<status>`: a status such as `404`, or a class such as `4xx`.\n"
        "- `<queue>`: a number from 1 on.\n"
        "- `<code>`: a number; one that did not occur counts 0.\n"
        "- `<check>`, `<request>`, `<group>`, `<threshold>`: the name in a script, in small letters, with `_` for all"
        " but letters and digits. In a threshold, `<` is `below`, `>` is `above`, `<=` is `at_most`, `>=` is"
        " `at_least`.\n"
    )


def _language() -> str:
    rows = [f"| `{function.usage}` | {function.meaning} |\n" for _, function in sorted(FUNCTIONS.items())]
    return _LANGUAGE + "".join(rows) + _UNKNOWN


def _evidence() -> str:
    return _EVIDENCE + "".join(f"| {each} | {each.meaning} | {each.spoilt_by} |\n" for each in Evidence)


if __name__ == "__main__":
    sys.stdout.write(render_markdown())
