"""The load generators that a scenario may name, each in one record: its options, and what the lab does about them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Options = frozenset[str]
_NONE: Options = frozenset()


@dataclass(frozen=True)
class Bound:
    """What an option counts, and its default."""

    counts: str
    options: Options
    default: int


@dataclass(frozen=True)
class GeneratorProgram:
    """A load generator by its command line.

    Attributes:
        has_image: whether the lab's own image has it; else the user names one.
        takes_url: whether it has to get a URL as an argument.
        results: options that name the file of each request; None if it writes no such file that the lab reads.
        lasts: options that say for how long it runs; a number alone is seconds.
        at_most: what it refuses: more of the first than of the second.
        unbounded: options with which it has no such bound.
        reads: options that name a file to read, which is beside the scenario.
        writes: options that name a file to write.
        pipelines: options with which it sends a request before the answer to the last, or speaks HTTP/2 without TLS.
        adds: what it needs here, by the options that a user's command may have already.
    """

    has_image: bool = False
    takes_url: bool = False
    results: Options | None = _NONE
    lasts: Options = _NONE
    at_most: tuple[Bound, Bound] | None = None
    unbounded: Options = _NONE
    reads: Options = _NONE
    writes: Options = _NONE
    pipelines: Options = _NONE
    adds: Mapping[tuple[str, ...], list[str]] = field(default_factory=dict)


def _options(*names: str) -> Options:
    return frozenset(names)


PROGRAMS: Mapping[str, GeneratorProgram] = {
    "wrk": GeneratorProgram(
        has_image=True,
        takes_url=True,
        results=None,
        lasts=_options("-d", "--duration"),
        at_most=(
            Bound("threads", _options("-t", "--threads"), 2),
            Bound("connections", _options("-c", "--connections"), 10),
        ),
        reads=_options("-s", "--script"),
        pipelines=_options("-s", "--script"),
    ),
    "ab": GeneratorProgram(
        has_image=True,
        takes_url=True,
        results=None,
        lasts=_options("-t"),
        at_most=(Bound("requests at once", _options("-c"), 1), Bound("requests in all", _options("-n"), 1)),
        unbounded=_options("-t"),
        reads=_options("-p", "-u"),
        writes=_options("-e", "-g"),
    ),
    "hey": GeneratorProgram(
        has_image=True,
        takes_url=True,
        results=None,
        lasts=_options("-z"),
        at_most=(Bound("requests at once", _options("-c"), 50), Bound("requests in all", _options("-n"), 200)),
        unbounded=_options("-z"),
        reads=_options("-D"),
    ),
    "jmeter": GeneratorProgram(
        has_image=True,
        results=_options("-l", "--logfile"),
        reads=_options("-t", "--testfile", "-p", "--propfile", "-q", "--addprop"),
        writes=_options("-l", "--logfile", "-j", "--jmeterlogfile", "-o", "--reportoutputfolder"),
        # No window, and a log where it may write.
        adds={("-n", "--nongui"): ["-n"], ("-j", "--jmeterlogfile"): ["-j", "/raw/jmeter.log"]},
    ),
    "vegeta": GeneratorProgram(
        lasts=_options("-duration", "--duration"),
        reads=_options("-targets", "-body"),
        writes=_options("-output"),
        pipelines=_options("-h2c", "--h2c"),
    ),
    "locust": GeneratorProgram(
        lasts=_options("-t", "--run-time"),
        reads=_options("-f", "--locustfile", "--config"),
        writes=_options("--csv", "--html", "--json-file", "--logfile"),
    ),
    "gatling": GeneratorProgram(writes=_options("-rf", "--results-folder")),
}
