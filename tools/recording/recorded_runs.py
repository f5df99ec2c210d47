"""docs/experiments.jsonl: one line for each recorded run of a scenario, or of the series of its arms."""

import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from formats import sanitize
from formats.predictions import Result, Truth
from lab import paths
from lab.errors import BadInput, Problem
from lab.scenarios.resolved import ResolvedScenario

FILE = paths.ROOT / "docs" / "experiments.jsonl"

# What a scenario says in words does not change what is measured; nor do other sizes of it, where it comes from, and
# which predictions speak of what was published, or of the control; nor under which other settings a prediction applies.
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("title", "experiment", "question", "presets", "published", "claim", "control"), True),
    "arms": {"figures"},
}
_SAYS = {"predictions": {"__all__": {"description", "when"}}}
# The keys of a service as they were when the first runs were recorded.
_KEYS_THEN = {"depends_on": "needs", "ignore": "without"}
# The same of figures: flows.<server>.healed and .syn_healed.
_FIGURE_NOW = re.compile(r"\b(flows\.\w+\.(?:syn_)?)recovered\b")


class RecordedRun(BaseModel):
    """One recorded run."""

    model_config = ConfigDict(title="connlab experiment", extra="forbid", frozen=True, validate_by_name=True)

    contract: Annotated[Literal["connlab.experiment/1"], Field(alias="schema")] = "connlab.experiment/1"
    scenario: str
    experiment: Annotated[str, Field(description="Which published experiment it reproduces, or workshop")]
    content: Annotated[
        str, Field(description="Digest of what the scenario sets and predicts; a line with another one does not count")
    ]
    run: Annotated[str, Field(description="<scenario>/<run-id>, or series/<series-id>")]
    when: Annotated[str, Field(description="When it began, UTC")]
    commit: Annotated[str | None, Field(description="The repository's commit")]
    kernel: str
    cpus: int
    verdict: Result
    false: Annotated[list[str], Field(description="Predictions that did not hold; of an arm's runs as <arm>/<id>")]
    unknown: Annotated[list[str], Field(description="Predictions that could not be decided")]
    unexplained: Annotated[int | None, Field(description="Requests without a known cause; null where not known")]
    identities: Annotated[dict[Truth, int], Field(description="How many hold, over all runs of a series")]
    here: Annotated[
        dict[str, int | float | None],
        Field(description="The figures beside what was published, by their expressions; null where unknown"),
    ]
    took_s: Annotated[int, Field(description="From the command to the verdict, all runs of a series together")]


def content(resolved: ResolvedScenario) -> str:
    """Return the digest of all that a scenario sets and predicts; neither its words nor a renamed key change it."""
    dumped = resolved.scenario.model_dump(mode="json", exclude={**_WORDS, **_SAYS}, exclude_defaults=True)
    for service in dumped.get("services", {}).values():
        for key in _KEYS_THEN.keys() & service.keys():
            service[_KEYS_THEN[key]] = service.pop(key)
    text = _FIGURE_NOW.sub(r"\1healed", json.dumps(dumped, sort_keys=True))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read(file: Path | None = None) -> list[RecordedRun]:
    """Read all lines, in the order of time; none where there is no file.

    Raises:
        BadInput: a line does not have the schema.
    """
    path = file or FILE
    lines = []
    for number, text in enumerate(path.read_text().splitlines() if path.is_file() else [], start=1):
        try:
            lines.append(RecordedRun.model_validate_json(text))
        except ValidationError as error:
            where, hint = f"{paths.shown(path)}:{number}", "bring the line back, or leave it out"
            raise BadInput(Problem(sanitize.format_validation_error(error), where, hint)) from None
    return sorted(lines, key=lambda line: (line.when, line.run))


def append(line: RecordedRun, file: Path | None = None) -> None:
    """Add a line; it is on the disk when this returns."""
    descriptor = os.open(file or FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, f"{line.model_dump_json(by_alias=True)}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def counting(resolved: ResolvedScenario, lines: Iterable[RecordedRun]) -> list[RecordedRun]:
    """Return the lines of a scenario as it now stands: those of another content measured something else."""
    now = content(resolved)
    return [line for line in lines if (line.scenario, line.content) == (resolved.slug, now)]
