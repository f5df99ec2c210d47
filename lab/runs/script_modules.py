"""Fetches a script's remote modules before the run, outside the lab's network: from https:// alone, each once."""

import urllib.error
import urllib.request

from formats.sanitize import visible
from lab.scenarios.own_script import OwnScript

_TIMEOUT_S = 10
_BYTES_MAX = 8 << 20
# A module's modules are known when it is here.
_ROUNDS_MAX = 16


def fetch_modules(script: OwnScript) -> tuple[dict[str, str], str]:
    """Fetch what is missing, with what that imports.

    Returns:
        The modules that are still missing, each with the place that imports it; and why the first of them is.
    """
    for _ in range(_ROUNDS_MAX):
        missing = script.missing_modules()
        if not missing:
            break
        for url in missing:
            try:
                content = _fetch(url)
            except (OSError, ValueError) as error:
                return missing, visible(str(getattr(error, "reason", error)))
            file = script.modules.kept(url)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return {}, ""


def _fetch(url: str) -> bytes:
    # k6 itself takes modules from nowhere but https.
    if not url.startswith("https://"):
        raise ValueError(url)
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310  https alone
        content: bytes = answer.read(_BYTES_MAX + 1)
    if len(content) > _BYTES_MAX:
        raise ValueError(f"{url} has more than {_BYTES_MAX >> 20} MiB")
    return content
