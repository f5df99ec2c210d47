"""Scenarios as `connlab list`, `show` and `plan` print them."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from formats.knob_types import format_duration, format_knob_value
from lab.runs.capacity import Demand
from lab.runs.run_results import format_figure as show_measured
from lab.runs.run_results import plain_table
from lab.scenarios import forecast, own_configuration
from lab.scenarios.catalogue import Entry, source_of
from lab.scenarios.knobs import CATALOGUE
from lab.scenarios.resolve import resolve
from lab.scenarios.resolved import ResolvedScenario
from lab.series import arms

# Below this width the knobs' meanings would be columns of single words.
_WIDE = 120


def describe_paths(variants: Iterable[ResolvedScenario]) -> list[str]:
    """Return the path of a scenario, or those of its arms where they differ, as `k6 → nginx → backend`."""
    return list(dict.fromkeys(" → ".join(one.scenario.path) for one in variants))


def summarize(resolved: ResolvedScenario, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """Return the line of a scenario in `connlab list`.

    Args:
        resolved: the scenario with the user's overrides.
        overrides: these, as `knob=value`.

    Raises:
        BadInput: its arms cannot be planned.
    """
    scenario = resolved.scenario
    variants, repetitions = (
        arms.resolve_variants(resolved, overrides),
        scenario.arms.repetitions if scenario.arms else 1,
    )
    # The arms differ in how long their load takes.
    expected = [forecast.expected_load_s(one) for one in variants]
    return {
        "scenario": resolved.slug,
        "experiment": scenario.experiment,
        "title": scenario.title,
        "paths": describe_paths(variants),
        "script": scenario.own_load.script if scenario.own_load else None,
        "load_s": None if None in expected else repetitions * sum(filter(None, expected)),
        "load_s_min": repetitions * sum(forecast.minimum_load_s(one) for one in variants),
        "runs": repetitions * len(variants),
    }


def summarize_entry(subject: str, entry: Entry, *, whole: bool = True) -> dict[str, Any]:
    """Summarize a scenario of the catalogue, with what the catalogue says of it.

    If it need not be `whole`, what the catalogue says is enough: to read and resolve all scenarios takes seconds.

    Raises:
        BadInput: the scenario is wrong.
    """
    named = {"scenario": entry.slug, "subject": subject}
    of_catalogue = named | {"level": entry.level, "takes": entry.takes, "shows": entry.shows}
    return summarize(resolve(entry.slug)) | of_catalogue if whole or not entry.shows else of_catalogue


def print_list(console: Console, summaries: list[dict[str, Any]]) -> None:
    """Print the scenarios, which are in the order of the catalogue, by subject."""
    short = ("scenario", "level", "takes")
    table = plain_table(*short, "shows", whole=short)
    for subject, scenarios in groupby(summaries, key=lambda one: one["subject"]):
        table.add_section()
        table.add_row(Text(subject, "bold"))
        for one in scenarios:
            table.add_row(one["scenario"], str(one["level"] or ""), one["takes"], one["shows"] or one["title"])
    console.print(table)


def _load(one: dict[str, Any]) -> str:
    """Return how long a scenario's load takes, or at least takes, in all of its runs together."""
    runs = f" in {one['runs']} runs" if one["runs"] > 1 else ""
    if one["script"]:
        return f"by {one['script']}{runs}"
    if one["load_s"] is None and round(one["load_s_min"]) == 0:
        return f"as long as the answers take{runs}"
    seconds = f"at least {one['load_s_min']:.0f} s" if one["load_s"] is None else f"{one['load_s']:.0f} s"
    return seconds + runs


def describe(resolved: ResolvedScenario, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """Return everything about a scenario with its overrides, as `connlab show` prints it."""
    scenario, known = resolved.scenario, resolved.registry.knobs
    return summarize(resolved, overrides) | {
        "question": scenario.question,
        "warmup_requests": scenario.warmup.requests,
        "drain_ms": scenario.drain,
        "configurations": {role: own.config for role, own in scenario.configurations.items()},
        "changes": {
            role: [*map(str, found.adaptation.changes)] for role, found in own_configuration.find_all(resolved).items()
        },
        "slow_ms": scenario.slow,
        "knobs": {
            name: {
                "value": resolved.values[name],
                "unit": known[name].unit if name in known else None,
                "source": resolved.source(name),
                "meaning": known[name].description if name in known else None,
            }
            for name in _relevant_knobs(resolved)
        },
        "actions": [action.model_dump(by_alias=True) for action in scenario.actions],
        "preset": resolved.preset,
        "presets": {name: one.model_dump() for name, one in scenario.presets.items()},
        "published": scenario.published and scenario.published.model_dump(),
        "source": source.cited if (source := source_of(resolved)) else None,
        "arms": dict(scenario.arms.variants) if scenario.arms else {},
        "predictions": [
            {
                **prediction.model_dump(),
                # Each arm has values of its own.
                "known": {} if scenario.arms else forecast.known_before_run(resolved, forecast.names_of(prediction)),
            }
            for prediction in scenario.predictions
        ],
    }


def _relevant_knobs(resolved: ResolvedScenario) -> list[str]:
    """Return the knobs that have a say in this scenario: of the roles on its path, and of its workload."""
    workload = resolved.scenario.knobs.load.workload
    return [name for name in resolved.on_path if not _of_other_workload(name, workload)]


def _of_other_workload(name: str, workload: str) -> bool:
    readers = CATALOGUE[name].workloads if name in CATALOGUE else None
    return readers is not None and workload not in readers


def print_details(console: Console, shown: dict[str, Any]) -> None:
    """Print a scenario: question, resolved knobs and predictions with the values that are known before a run."""
    console.print(Text.assemble((shown["title"], "bold"), f" ({shown['experiment']}, {'; '.join(shown['paths'])})"))
    console.print(shown["question"])
    slow = "" if shown["slow_ms"] is None else f", slow above {format_duration(shown['slow_ms'])}"
    warmup, drain = shown["warmup_requests"], format_duration(shown["drain_ms"])
    about = "" if shown["load_s"] is None else "about "
    for role, file in shown["configurations"].items():
        console.print(f"{role} runs {file}, which says its knobs")
        for line in shown["changes"].get(role, ()):
            console.print(f"    {line}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"load {about}{_load(shown)}, warm-up {warmup} requests, drain {drain}{slow}")
    console.print(_knob_table(shown["knobs"], with_meaning=console.width >= _WIDE))
    print_actions(console, shown["actions"])
    print_arms(console, shown["arms"])
    for name, preset in shown["presets"].items():
        _print_preset(console, name, preset, in_force=name == shown["preset"])
    if shown["published"]:
        _print_published(console, shown["published"], shown["source"])
    for one in shown["predictions"]:
        of_arms = f" ({'arm' if len(one['arms']) == 1 else 'arms'} {', '.join(one['arms'])})" if one["arms"] else ""
        console.print(Text.assemble((one["id"], "bold"), f"{of_arms}: {one['description']}"))
        console.print(f"    {one['expression']}", soft_wrap=True)
        if one["when"]:
            console.print(f"    when {one['when']}", soft_wrap=True)
        for name, value in one["known"].items():
            console.print(f"    {name} = {show_measured(value)}", style="dim", soft_wrap=True)


def print_actions(console: Console, actions: list[dict[str, Any]]) -> None:
    """Print what the lab does to servers while the load runs."""
    for action in actions:
        lasts = "" if action["for"] is None else f" for {format_duration(action['for'])}"
        when = format_duration(action["at"])
        console.print(Text.assemble("action ", (f"{action['do']} {action['instance']}", "bold"), f" at {when}{lasts}"))


def print_arms(console: Console, arms: Mapping[str, Any]) -> None:
    """Print what each arm sets."""
    for name, settings in arms.items():
        differences = _settings(settings) or "the scenario as it stands"
        console.print(Text.assemble("arm ", (name, "bold"), f": {differences}"), soft_wrap=True)


def _print_preset(console: Console, name: str, preset: dict[str, Any], *, in_force: bool) -> None:
    knobs = _settings({knob: value for knob, value in preset.items() if knob not in ("description", "arms")})
    arms = [f"in the arm {arm} {_settings(values)}" for arm, values in preset["arms"].items()]
    differences = "; ".join(filter(None, (knobs, *arms)))
    mark = " (in force)" if in_force else ""
    console.print(Text.assemble("preset ", (name, "bold"), f"{mark}: {differences}"), soft_wrap=True)
    if preset["description"]:
        console.print(Text(f"    {preset['description']}", "dim"), soft_wrap=True)


def _settings(values: dict[str, Any]) -> str:
    return ", ".join(f"{knob} = {show_measured(value)}" for knob, value in values.items())


def _print_published(console: Console, published: dict[str, Any], source: str | None) -> None:
    """Print what was published and where, and what this lab puts beside it."""
    if published["description"]:
        where = f" in {source}" if source else ""
        console.print(Text.assemble(("published", "bold"), f"{where}: {published['description']}"), soft_wrap=True)
    for name, expression in published["here"].items():
        console.print(Text.assemble("    beside it ", (name, "bold"), f": {expression}"), soft_wrap=True)


def _knob_table(knobs: dict[str, Any], *, with_meaning: bool) -> Table:
    table = plain_table("knob", "value", "from", *(("meaning",) if with_meaning else ()))
    for name, knob in knobs.items():
        meaning = knob["meaning"] or "sysctl of the role's network namespace"
        cells = (
            name,
            format_knob_value(knob["value"], knob["unit"]),
            knob["source"],
            *((meaning,) if with_meaning else ()),
        )
        table.add_row(*cells, style="dim" if knob["source"] == "default" else "bold")
    return table


def print_demand(console: Console, demand: Demand) -> None:
    """Print a table with a row for each role, and what the run takes in all."""
    table = plain_table()
    table.add_column("role")
    for column in ("instances", "connections", "ports", "open files", "memory", "at most"):
        table.add_column(column, justify="right")
    for one in demand.roles:
        of = f" of {one.ports_max:,}" if one.ports_max else ""
        ports = "-" if one.ports is None else f"{one.ports:,}{of}"
        memory = (f"{one.memory_mb:,} MiB", f"{one.memory_max_mb:,} MiB")
        table.add_row(one.role, str(one.instances), f"{one.connections:,}", ports, f"{one.files:,}", *memory)
    console.print(table)
    records = "" if demand.records_mb is None else f", {demand.records_mb:,} MiB of records"
    instances = sum(one.instances for one in demand.roles)
    console.print(
        f"each row is of one instance; in all {instances} instances with {demand.memory_mb:,} MiB for"
        f" {demand.users:,} connections{records}, and at most {demand.captures_mb:,} MiB of captures",
        soft_wrap=True,
    )
