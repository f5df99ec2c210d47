"""Writes what the stack takes from the declarations of the roles.

The images' defaults (Dockerfile) and what their programs take (check-knobs), the variables of compose.yaml, and
.env.example: `python -m tools.stack`.
"""

import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

from formats.knob_types import format_duration
from formats.role import Boolean, Choice, DurationKnob, Integer, Knob, Role, Words
from lab import paths, terminal
from lab.roles.declared_roles import ROLES
from lab.scenarios.knobs import CATALOGUE, Knobs, environment

_SELF = "python -m tools.stack"
_EXAMPLE = paths.ROOT / ".env.example"
_CHECK = Path(__file__).with_name("check-knobs")
_CHECK_VARIANTS = Path(__file__).with_name("check-variants")
# The lab alone reads them: the stack's k6 is given its workload as an argument, and k6's own dashboard by k6's options.
# A run has a CA, and the stack has none.
_OF_RUNS = {"load.workload", "load.dashboard", "load.tls_resumption"} | {
    role.knob(name)
    for role in ROLES.values()
    for name in role.knobs
    if role.listener.tls and name.startswith(role.listener.tls)
}
# What a container gets besides its knobs.
_BESIDES = {
    "nginx": {"CONNLAB_UPSTREAMS": "backend:8080"},
    "haproxy": {"CONNLAB_UPSTREAMS": "backend:8080"},
    "gateway": {"CONNLAB_UPSTREAMS": "backend:8080"},
    "k6": {"CONNLAB_TARGETS": "${LOAD_TARGETS:-http://nginx:8080}"},
}
_COLLECTOR = {
    "CONNLAB_RATE_HZ": "sampler.rate_hz",
    "CONNLAB_CAPTURE": "capture.mode",
    "CONNLAB_CAPTURE_MAX_MB": "capture.max_mb",
}
# In a Dockerfile, and in a service of compose.yaml.
_ENV_BLOCK = re.compile(rf"(?<=# The knobs' defaults, as role\.yaml has them \({_SELF}\)\.\n)ENV (?:.*\\\n)*.*\n")
_ENVIRONMENT_BLOCK = re.compile(
    r"(?P<head>^  (?P<service>[a-z0-9-]+):\n(?:    .*\n)*?    environment: # made from role\.yaml\n)(?:      .*\n)*",
    re.MULTILINE,
)
_HEAD = f"""\
# The variables of the stack. Copy this file to .env, and change a line and take away its #. Or for one command:
#   BACKEND_ACCEPT_COUNT=1 docker compose up
# A duration is a whole number with ms, s, m or h. docs/stack.md has more. Made by: {_SELF}

# --- the stack itself

# Where the proxies are reached.
#NGINX_PUBLISHED=127.0.0.1:8080
#HAPROXY_PUBLISHED=127.0.0.1:8082
#GATEWAY_PUBLISHED=127.0.0.1:8083

# Whom k6 asks.
#LOAD_TARGETS=http://nginx:8080

# What the images are built on. `make setup` makes connlab/base, for a machine that reaches no image registry.
#CONNLAB_BASE=debian:trixie-slim

# A Maven mirror or proxy of your own, for the build of the backend.
#CONNLAB_MAVEN_SETTINGS=~/.m2/settings.xml
"""

_KNOBS_OF_TRAINING = """\
# Every knob, for running the server by itself, for its tests and for the training run of its AOT cache. In a run the
# lab sets them all, and uses none of these values.
"""


def variable(knob: str) -> str:
    """Return the stack's variable of a knob: BACKEND_ACCEPT_COUNT for backend.accept_count."""
    return knob.upper().replace(".", "_")


def knobs_of(role: Role) -> Iterator[tuple[str, str, Knob]]:
    """Yield the name, the container's variable and the declaration of each knob that the role's program reads."""
    for field, knob in role.knobs.items():
        name = role.knob(field)
        if (env := CATALOGUE[name].env) and name not in _OF_RUNS:
            yield name, env, knob


def _default(knob: Knob) -> str:
    return ("true" if knob.default else "false") if isinstance(knob, Boolean) else str(knob.default)


def stack_environment(service: str) -> dict[str, str]:
    """Return what compose.yaml gives a service of the stack; each setting with its variable and its default."""
    if service in ROLES:
        found = dict(_BESIDES.get(service, {}))
        for name, env, knob in knobs_of(ROLES[service]):
            # Only where no text is a value of its own is an empty variable like one that is not set.
            empty = "-" if isinstance(knob, Choice) and "" in knob.values else ":-"
            found[env] = f"${{{variable(name)}{empty}{_default(knob)}}}"
        return found
    role = ROLES[service.removeprefix("collector-")]
    return {
        "CONNLAB_ROLE": service.removeprefix("collector-"),
        "CONNLAB_READY_URL": str(role.ready),
        "CONNLAB_SCRAPE": _scrapes(role),
        "CONNLAB_METRICS": "0.0.0.0:9645",
        **{env: f"${{{variable(name)}:-{CATALOGUE[name].default}}}" for env, name in _COLLECTOR.items()},
    }


def _scrapes(role: Role) -> str:
    """Return the pages that a collector reads; those of a role with variants by the variable that chooses one."""
    read = {
        value: " ".join(f"{name}={page.url}" for name, page in role.with_variant(value).scrape.items())
        for value in variants_of(role)
    }
    if role.variants is None:
        return read[""]
    first = str(role.knobs[role.variants.knob].default)
    chosen = f"${{{variable(role.knob(role.variants.knob))}:-{first}}}"
    found = read[first].replace(first, chosen)
    if differs := [value for value, pages in read.items() if found.replace(chosen, value) != pages]:
        raise ValueError(f"{role.group}: Compose cannot derive the pages of {', '.join(differs)} from its name")
    return found


def variants_of(role: Role) -> tuple[str, ...]:
    """Return the values of the knob that chooses what a role's image runs; one empty text where none does."""
    if role.variants is None:
        return ("",)
    return (str(role.knobs[role.variants.knob].default), *role.variants.of)


def image_environment(image: str) -> dict[str, str]:
    """Return the defaults that an image has by itself, in the spelling in which a run sets them."""
    if image in ROLES:
        return environment(Knobs(), ROLES[image].group)
    return {env: str(CATALOGUE[name].default) for env, name in _COLLECTOR.items()}


def compose_with_variables(text: str) -> str:
    """Return compose.yaml with the environment of each service as the declarations have it."""

    def filled(found: re.Match[str]) -> str:
        lines = (f"      {env}: {_yaml(value)}\n" for env, value in stack_environment(found["service"]).items())
        return found["head"] + "".join(lines)

    return _ENVIRONMENT_BLOCK.sub(filled, text)


def _yaml(value: str) -> str:
    return value if value.startswith("${") or value.replace("-", "").isalpha() else f'"{value}"'


def dockerfile_with_defaults(text: str, image: str) -> str:
    """Return a Dockerfile with the defaults of its image as the declarations have them."""
    defaults = image_environment(image).items()
    words = (f'{name}="{value}"' if " " in value else f"{name}={value}" for name, value in defaults)
    block = "ENV " + " \\\n    ".join(words) + "\n"
    return _ENV_BLOCK.sub(lambda _: block, text)


def example_of_variables() -> str:
    """Return .env.example: each variable with its meaning, what it takes and its default."""
    parts = [_HEAD]
    for service, role in sorted(ROLES.items(), key=lambda item: item[1].kind == "client"):
        parts.append(f"\n# --- {service}: {role.description[0].lower() + role.description[1:].rstrip('.')}\n")
        for name, _, knob in knobs_of(role):
            unit = f"; {knob.unit}" if knob.unit else ""
            takes = _takes(knob)
            about = f"{knob.doc}{unit}. {takes[0].upper()}{takes[1:]}.{_where(role, knob)}"
            parts.append(_example(variable(name), about, _default(knob)))
    parts.append("\n# --- the collectors of the profile observe\n")
    for name in _COLLECTOR.values():
        known = CATALOGUE[name]
        parts.append(_example(variable(name), f"{known.description}.", str(known.default)))
    return "".join(parts)


def _where(role: Role, knob: Knob) -> str:
    """Return which variants have a knob, where others are without it."""
    if role.variants is None or not knob.variants:
        return ""
    return f" Only with {variable(role.knob(role.variants.knob))}={' or '.join(knob.variants)}."


def _example(name: str, about: str, default: str) -> str:
    lines = textwrap.wrap(about, 118, break_long_words=False, break_on_hyphens=False)
    shown = f'"{default}"' if " " in default else default
    return "\n" + "".join(f"# {line}\n" for line in lines) + f"#{name}={shown}\n"


def _takes(knob: Knob) -> str:
    match knob:
        case Integer():
            also = "".join(f", or {value}" for value in knob.also or ())
            return f"from {knob.minimum} to {knob.maximum}{also}"
        case DurationKnob():
            step = f", a multiple of {format_duration(knob.step)}" if knob.step > 1 else ""
            example = knob.default if knob.initial else "20s"
            return f"a duration of at least {format_duration(knob.minimum)}{step}, such as {example}"
        case Boolean():
            return "true or false"
        case Choice():
            named = ", ".join(value for value in knob.values if value)
            return f"one of: {named}{', or empty' if '' in knob.values else ''}"
        case Words():
            alone = f"; {knob.alone} stands alone" if knob.alone else ""
            return f"some of: {', '.join(knob.values)}{alone}"
        case _:
            return "begins with /, and holds letters, digits and . _ ~ - /"


def _checked(knob: Knob) -> list[str]:
    """Return the words by which check-knobs checks a knob."""
    match knob:
        case Integer():
            return ["number", str(knob.minimum), str(knob.maximum), *(knob.also or ())]
        case DurationKnob():
            return ["duration", str(knob.minimum), str(knob.maximum), str(knob.step)]
        case Boolean():
            return ["one_of", "true", "false"]
        case Choice():
            return ["one_of", *knob.values]
        case Words():
            return ["words", knob.alone or "", *knob.values]
        case _:
            return ["url_path"]


def check_of_knobs(role: str) -> str:
    """Return the program that checks the knobs of a role's container before the role's own begins."""
    rows = (
        shlex.join(["knob", env, variable(name), _takes(knob), *_checked(knob)])
        for name, env, knob in knobs_of(ROLES[role])
    )
    return _CHECK.read_text() + "\n".join([*rows, *_checks_of_variants(ROLES[role]), f'becomes {role} "$@"', ""])


def _checks_of_variants(role: Role) -> Iterator[str]:
    """Yield what refuses a knob that is set although the program that the image runs has no such setting."""
    if role.variants is None:
        return
    chooser = role.knob(role.variants.knob)
    yield "\n" + _CHECK_VARIANTS.read_text() + f"\nif [[ -z $refused ]]; then\n  chosen=${CATALOGUE[chooser].env}"
    for name, env, knob in knobs_of(role):
        if knob.variants:
            about = [env, variable(name), image_environment(role.group)[env], variable(chooser), *knob.variants]
            yield "  " + shlex.join(["of_variant", *about])
    yield "fi"


def generated() -> Mapping[Path, str]:
    """Return each file that has something from the declarations, as it has to be."""
    compose = paths.COMPOSE_FILE
    dockerfiles = {image: paths.ROOT / image / "Dockerfile" for image in (*ROLES, "collector")}
    return {
        _EXAMPLE: example_of_variables(),
        compose: compose_with_variables(compose.read_text()),
        **{file: dockerfile_with_defaults(file.read_text(), image) for image, file in dockerfiles.items()},
        **{paths.ROOT / role / "check-knobs": check_of_knobs(role) for role in ROLES},
        paths.ROOT / "backend/image/knobs.env": _KNOBS_OF_TRAINING
        + "".join(f"{name}={value}\n" for name, value in image_environment("backend").items()),
    }


if __name__ == "__main__":
    for file, text in generated().items():
        if not file.is_file() or file.read_text() != text:
            file.write_text(text)
            terminal.result([paths.shown(file)])
