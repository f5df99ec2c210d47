"""Two things that start no process: an engine in memory, on which all goes as asked, and a Docker that plays by rules.

`InMemoryEngine` is for tests of runs and series; `InMemoryDocker` stands behind `lab.engines.compose`'s own door.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, Self

from formats.role import TRAFFIC_PORT
from lab.engines.cpu_stat import CpuStat
from lab.engines.programs import CompletedCommand, StreamingCommand
from lab.engines.protocol import STOP_GRACE_S, Cleaned, Container, Finding, Parts, Watch
from lab.errors import ConfigurationRefused, EngineFailed, Problem, ScriptRefused
from lab.roles.declared_roles import ROLES
from lab.scenarios import sysctls
from lab.scenarios.overrides import Override
from lab.scenarios.own_configuration import OwnConfiguration
from lab.scenarios.own_script import OwnScript
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology, collector_of

# Far more than any wait of a test takes, on a busy machine too.
_LIMIT_S = 300


@dataclass(frozen=True)
class Rule:
    """What is answered to commands whose arguments match a pattern, `*` being anything."""

    pattern: str
    answer: CompletedCommand
    after: str = ""
    once_told: bool = False
    stays: bool = False
    once: bool = False


_NOTHING = Rule("*", CompletedCommand(0))


class Told:
    """What a command that is followed tells; one that stays goes on until it is ended."""

    def __init__(self, lines: Sequence[str], *, stays: bool) -> None:
        self._lines = lines
        self._stays = stays
        self.heard: list[str] = []
        self._ended = threading.Event()
        self.taken = threading.Event()

    def __iter__(self) -> Iterator[str]:
        yield from self._lines
        self.taken.set()
        if self._stays:
            self._ended.wait()

    @property
    def goes_on(self) -> bool:
        return self._stays and not self._ended.is_set()

    def say(self, line: str) -> None:
        self.heard.append(line)

    def end(self) -> None:
        self._ended.set()


class InMemoryDocker:
    """Answers by rules, the earlier ones first; what no rule answers succeeds and says nothing.

    What was removed is listed no more, until Compose makes it again.

    Attributes:
        calls: every command's arguments, in order.
        revives: whether somebody makes again at once what is removed.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.revives = False
        self._gone: set[str] = set()
        self._rules: list[Rule] = []
        self._told: list[Told] = []

    @property
    def heard(self) -> list[str]:
        """What the commands that are followed were told."""
        return [line for one in self._told for line in one.heard]

    def says(
        self,
        pattern: str,
        stdout: str = "",
        *,
        stderr: str = "",
        exit_code: int = 0,
        after: str = "",
        once_told: bool = False,
        once: bool = False,
    ) -> None:
        """Answer commands that match a pattern.

        Args:
            pattern: as Rule has it.
            stdout: what is said, as stderr is.
            stderr: what is said of an error.
            exit_code: how it ends.
            after: only once there was a call with this text in it; before, nothing is said.
            once_told: not before all that is followed has been taken in.
            once: the rule is forgotten with its first answer.
        """
        self._rules.append(Rule(pattern, CompletedCommand(exit_code, stdout, stderr), after, once_told, once=once))

    def stays(self, pattern: str, stdout: str = "") -> None:
        """Say this and go on until ended, as the command does that tells of events."""
        self._rules.append(Rule(pattern, CompletedCommand(0, stdout), stays=True))

    def forget(self) -> None:
        """Have no rules any more."""
        self._rules.clear()

    def run(
        self,
        arguments: Sequence[str],
        *,
        timeout_s: float,
        stdin: str | None = None,
        into: IO[bytes] | None = None,
        unless: Callable[[], object] | None = None,
    ) -> CompletedCommand:
        """Answer a command, as lab.engines.programs.ProgramClient does; one that stays ends by `unless` alone."""
        assert timeout_s > 0
        assert stdin is None or into is None
        rule = self._rule_for(arguments)
        if rule.stays:
            assert unless, "nobody ends it"
            assert unless(), "nobody ends it"
            return CompletedCommand(-9)
        if rule.once_told:
            assert all(told.taken.wait(_LIMIT_S) for told in self._told)
        if into is None:
            return self._without_removed(arguments, rule.answer)
        into.write((rule.answer.stdout + rule.answer.stderr).encode())
        return CompletedCommand(rule.answer.exit_code)

    def _without_removed(self, arguments: Sequence[str], answer: CompletedCommand) -> CompletedCommand:
        verb = " ".join(arguments)
        if verb.startswith("compose "):
            self._gone.clear()
        elif verb.startswith(("rm ", "network rm ")) and answer.exit_code == 0 and not self.revives:
            self._gone.update(arguments)
        elif verb.startswith(("ps ", "network ls ")):
            kept = [line for line in answer.stdout.splitlines(keepends=True) if line.strip() not in self._gone]
            return replace(answer, stdout="".join(kept))
        return answer

    def follow(self, arguments: Sequence[str], *, talks: bool = False) -> StreamingCommand:  # noqa: ARG002
        """Tell what the rule says, line by line, as lab.engines.programs.ProgramClient does."""
        rule = self._rule_for(arguments)
        self._told.append(Told(rule.answer.stdout.splitlines(keepends=True), stays=rule.stays))
        return self._told[-1]

    def _rule_for(self, arguments: Sequence[str]) -> Rule:
        command = " ".join(arguments)
        self.calls.append(command)
        rule = next((one for one in self._rules if fnmatchcase(command, one.pattern)), _NOTHING)
        if not any(rule.after in call for call in self.calls):
            return _NOTHING
        if rule.once:
            self._rules.remove(rule)
        return rule


class InMemoryWatch(Watch):
    """The ends of a run's parts, as the engine says them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def check(self) -> None:
        pass


class InMemorySidecar:
    """A collector that has all it should have, until it is removed."""

    def __init__(self, name: str, of: InMemorySidecars) -> None:
        self.name = name
        self._of = of

    def ask(self, *arguments: str) -> str:
        if self._of.last_words is not None:
            raise EngineFailed(f"{self.name} has ended")
        if arguments[1] == "inspect":
            return json.dumps({"sysctls": sysctls.IN_A_NEW_NAMESPACE, "addresses": ["192.0.2.1"], "listeners": []})
        return ""

    def image(self) -> str:
        return "sha256:collector"

    def ended(self) -> str | None:
        return self._of.last_words

    def stop(self) -> None:
        self._of.did.append(f"stop {self.name}")
        self.remove()

    def remove(self) -> None:
        self._of.did.append(f"remove {self.name}")


class InMemorySidecars:
    """One container runs, with the name that is asked for.

    Attributes:
        did: each verb that changed something, with the name of the collector.
        last_words: what each collector says as it ends, at once; None if they stay.
    """

    def __init__(self, *, last_words: str | None = None, runs_for: int | None = None) -> None:
        """Make the verbs; the container runs for so many looks, or as long as anybody looks."""
        self.did: list[str] = []
        self.last_words = last_words
        self._left = runs_for

    def find_container(self, name: str) -> Container:
        return Container(id=name, name=name, image="acme/shop:1", pid=4711, on_host=False, words="node shop.js")

    def find_project_containers(self, project: str, service: str | None) -> list[Container]:
        return [self.find_container(f"{project}-{service or 'web'}-1")]

    def find_process_container(self, pid: int) -> Container | None:
        assert pid
        return None

    def is_running(self, container_id: str) -> bool:
        assert container_id
        if self._left is not None:
            self._left -= 1
        return self._left is None or self._left >= 0

    def start(
        self, name: str, environment: Mapping[str, str], folder: Path, *, target: str | int, processes: bool
    ) -> InMemorySidecar:
        assert environment["CONNLAB_OBSERVING"] == "1"
        assert folder.is_dir()
        assert isinstance(target, str) == processes
        self.did.append(f"start {name}")
        return InMemorySidecar(name, self)


class InMemoryEngine:
    """Instances are names here: each setting takes, and the clients end as soon as the load may.

    Attributes:
        did: each verb that changed something, with what it was about, in order.
        running: the instances and collectors that run.
    """

    def __init__(
        self,
        *,
        exits: Mapping[str, int] | None = None,
        load_ends_after: str = "",
        fails: str = "",
        found: Mapping[str, object] | None = None,
        script_options: str | None = None,
        script_refused: str = "",
        configuration: str | None = None,
        configuration_refused: str = "",
        sidecars: InMemorySidecars | None = None,
        machines: Mapping[str, str] | None = None,
        at: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Make an engine.

        Args:
            exits: how clients end that do not end well.
            load_ends_after: what is done before the clients end, as `did` has it; else they end when they are let go.
            fails: the verb that fails, as `did` has it.
            found: knobs that servers say another value of than was asked.
            script_options: what k6 says of a scenario's own script.
            script_refused: why k6 does not take it.
            configuration: a scenario's own one, as its role's program read it.
            configuration_refused: why that does not take it.
            sidecars: what puts collectors beside containers that run already.
            machines: where instances run, if not here.
            at: called as each verb begins that a run asks for once, with the verb.
        """
        self._begun = at
        self._machines = machines or {}
        self._sidecars = sidecars or InMemorySidecars()
        self._script_options = script_options
        self._script_refused = script_refused
        self._configuration = configuration
        self._configuration_refused = configuration_refused
        self.did: list[str] = []
        self.running: set[str] = set()
        self._exits = exits or {}
        self._load_ends_after = load_ends_after
        self._fails = fails
        self._found = found or {}
        self._watch = InMemoryWatch()
        self._parts: Parts | None = None
        self._let_go: set[str] = set()
        self._codes: dict[str, int] = {}

    on_this_machine = True
    metrics: int | None = None

    def cannot(self, resolved: ResolvedScenario, topology: Topology) -> Iterator[Problem]:
        assert list(resolved.scenario.path) == list(topology.instances)
        return iter(())

    def found(self, resolved: ResolvedScenario) -> list[Override]:  # noqa: ARG002
        return []

    def examine(self) -> Iterable[Finding]:
        return [Finding("memory of this process", "ok", "enough")]

    def versions(self) -> Mapping[str, str]:
        self._begun("versions")
        return {}

    def open_files_cap(self) -> int | None:
        return None

    def sidecars(self) -> InMemorySidecars:
        return self._sidecars

    def examine_script(self, script: OwnScript) -> str | None:
        assert script.file.is_file()
        if self._script_refused:
            raise ScriptRefused(self._script_refused)
        return self._script_options

    def examine_configuration(self, own: OwnConfiguration) -> str | None:
        assert own.file.is_file()
        if self._configuration_refused:
            raise ConfigurationRefused(self._configuration_refused)
        return self._configuration

    def images(self, names: Iterable[str]) -> dict[str, str]:
        return {name: f"sha256:{name}" for name in names}

    def service_images(self, resolved: ResolvedScenario) -> dict[str, str]:
        return {name: f"sha256:{name}" for name in resolved.registry.services}

    def start(self, parts: Parts, watch: Watch) -> None:
        assert watch is self._watch
        self._parts = parts
        self._do("start")
        for role in parts.resolved.scenario.configurations:
            left = ROLES[role].read_back
            parts.places.role(role, str(left and left.file)).write_text(self._configuration or "")
        self.running = {service for one in parts.topology.all for service in (one, collector_of(one))}

    def machines(self, topology: Topology) -> Mapping[str, str]:
        assert set(self._machines) <= set(topology.all)
        return self._machines

    def watch(self, run_id: str) -> InMemoryWatch:
        assert run_id
        self._watch = InMemoryWatch()
        return self._watch

    def ask(self, instance: str, *arguments: str, timeout_s: float = 20) -> str:
        assert timeout_s > 0
        assert collector_of(instance) in self.running
        match arguments:
            case ("collector", "inspect", *_):
                return json.dumps(self._namespace(instance))
            case ("collector", "http", "--method", method, *_, url) if "/v1/status" in url:
                return self._status(instance, lets_go=method == "PATCH")
            case ("collector", "http", "--method", _, url) if url.endswith("/api/wait"):
                return json.dumps({"token": "of the warm-up"})
            case ("collector", "http", *_):
                return json.dumps({"settings": self._settings(instance)})
            case ("collector", "ready", *_):
                assert instance in self.running
                return ""
            case ("date", "+%s%6N"):
                return f"{time.time_ns() // 1000}\n"
        raise EngineFailed(f"no program {arguments}")

    def pause(self, instance: str) -> None:
        self._do(f"pause {instance}")

    def resume(self, instance: str) -> None:
        self._do(f"resume {instance}")

    def stop(self, instances: Iterable[str], grace_s: int = STOP_GRACE_S) -> None:
        assert grace_s > 0
        for instance in instances:
            self._do(f"stop {instance}")
            self._end(instance, 143)

    def signal(self, instance: str, signal: str) -> None:
        self._do(f"{signal} to {instance}")

    def limit_cpus(self, instance: str, cpus: float | None) -> CpuStat | None:
        self._do(f"{instance} has {cpus} processors")
        return None

    def start_again(self, instance: str) -> None:
        self.running.add(instance)
        self._do(f"start {instance}")

    def stop_along_the_path(self, topology: Topology, grace_s: int = STOP_GRACE_S) -> None:
        assert grace_s > 0
        self._do("stop along the path")
        for service in (*topology.all, *map(collector_of, topology.all)):
            self._end(service, 0)

    def exit_codes(self, topology: Topology) -> dict[str, int | None]:
        self._begun("exit codes")
        return {instance: self._codes.get(instance) for instance in topology.all}

    def keep_logs(self, topology: Topology, raw: Path) -> None:
        self._begun("keep logs")
        for instance in topology.all:
            (raw / instance / "container.log").write_text(f"{instance} was here\n")

    def last_words(self, service: str) -> str:
        return f"\n  last words of {service}"

    def remove(self) -> list[str]:
        self._do("remove")
        left, self.running = sorted(self.running), set()
        return left

    def clean(self) -> Cleaned:
        return Cleaned(containers=self.remove())

    def _do(self, what: str) -> None:
        self.did.append(what)
        self._begun(what)
        if what == self._fails:
            raise EngineFailed(f"the engine could not {what}")
        if what == self._load_ends_after:
            for client in sorted(self._let_go):
                self._end(client, self._exits.get(client, 0))

    def end(self, service: str, code: int) -> None:
        """Let a part end by itself."""
        self._end(service, code)

    def _end(self, service: str, code: int) -> None:
        if service in self.running:
            self.running.remove(service)
            self._codes[service] = code
            self._watch.end(service, code)

    def _status(self, client: str, *, lets_go: bool) -> str:
        if lets_go:
            self._begun("load")
            self._let_go.add(client)
            # An action at the start may be done before the clients are let go.
            if not self._load_ends_after or self._load_ends_after in self.did:
                self._end(client, self._exits.get(client, 0))
        # As k6 numbers them: started, or paused before the run.
        status = {"status": 5 if lets_go else 4, "paused": not lets_go}
        return json.dumps({"data": {"type": "status", "attributes": status}})

    def _namespace(self, instance: str) -> dict[str, Any]:
        parts = self._of_run
        name = parts.topology.role_of(instance)
        found = sysctls.IN_A_NEW_NAMESPACE | parts.resolved.scenario.knobs.kernel.get(name, {})
        backlog = ROLES[name].limits.backlog
        asked = backlog and parts.resolved.number(ROLES[name].knob(backlog))
        limits = [] if asked is None else [min(int(asked), int(found["net.core.somaxconn"]))]
        return {
            "sysctls": found,
            "addresses": ["192.0.2.1"],
            "listeners": [
                {"address": "192.0.2.1", "port": TRAFFIC_PORT, "depth": 0, "limit": limit, "drops": 0}
                for limit in limits
            ],
        }

    def _settings(self, instance: str) -> dict[str, object]:
        parts = self._of_run
        role = parts.resolved.roles[parts.topology.role_of(instance)]  # with the knobs of its variant
        values = {**parts.resolved.values, **self._found}
        named = {knob.read_back.name: role.knob(name) for name, knob in role.knobs.items() if knob.read_back}
        return {name: values[knob] for name, knob in named.items() if name}

    @property
    def _of_run(self) -> Parts:
        assert self._parts
        return self._parts
