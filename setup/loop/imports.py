"""Draws who imports whom: each package of `lab` and `analysis` on its floor, and an arrow for each that it imports.

`python -m setup.loop.imports > docs/imports.svg`
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

from grimp import build_graph

ROOT = Path(__file__).resolve().parents[2]

_FLOOR, _WIDTH, _BOX, _HIGH = 46, 980, 132, 24
# Where the boxes of a floor stand, floor by floor, so that arrows pass beside the boxes between.
_PLACES = (0.5, 0.26, 0.74, 0.38, 0.62, 0.14, 0.86)


def floors() -> list[list[str]]:
    """The packages from top to bottom, as the contracts of import-linter have them: `lab` stands on `analysis`."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = {each["containers"][0]: each["layers"] for each in contracts if each["type"] == "layers"}
    return [[f"{root}.{name.strip()}" for name in floor.split("|")] for root in layers for floor in layers[root]]


def arrows(names: list[str]) -> Counter[tuple[str, str]]:
    """How many modules of one package import one of another; what a package itself says counts for it."""
    graph = build_graph(*dict.fromkeys(name.partition(".")[0] for name in names))

    def of(module: str) -> str:
        return ".".join(module.split(".")[:2])

    return Counter(
        (of(module), of(imported))
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if of(module) != of(imported) and {of(module), of(imported)} <= set(names)
    )


def drawing(standing: list[list[str]], drawn: Counter[tuple[str, str]]) -> str:
    """The drawing as SVG; an arrow that leads upwards is red."""
    at = {
        name: (_WIDTH * (_PLACES[floor % len(_PLACES)] if len(names) == 1 else (place + 0.5) / len(names)), floor)
        for floor, names in enumerate(standing)
        for place, name in enumerate(names)
    }
    up = [(one, other) for one, other in drawn if at[one][1] >= at[other][1]]
    lines = []
    for (one, other), count in sorted(drawn.items()):
        (x, floor), (to_x, to_floor) = at[one], at[other]
        y, to_y = 20 + floor * _FLOOR + _HIGH, 20 + to_floor * _FLOOR
        bend = (to_y - y) / 2
        kind = ' class="up"' if (one, other) in up else ""
        lines.append(
            f'<path{kind} d="M{x:.0f} {y}C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y}">'
            f"<title>{one} imports {other}: {count}</title></path>"
        )
    for name, (x, floor) in at.items():
        root = name.partition(".")[0]
        y = 20 + floor * _FLOOR
        lines.append(
            f'<rect class="{root}" x="{x - _BOX / 2:.0f}" y="{y}" width="{_BOX}" height="{_HIGH}" rx="5"/>'
            f'<text x="{x:.0f}" y="{y + 16}">{name}</text>'
        )
    body = "\n  ".join(lines)
    high = 20 + len(standing) * _FLOOR
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {high}" role="img" aria-labelledby="t d">
  <title id="t">Who imports whom</title>
  <desc id="d">{len(at)} packages of lab and analysis, and {len(drawn)} arrows between them, {len(up)} upwards.</desc>
  <style>
    text {{ font: 12px system-ui, sans-serif; text-anchor: middle; fill: #1f2328; }}
    path {{ fill: none; stroke: #57606a; opacity: .35; }} path.up {{ stroke: #cf222e; opacity: 1; }}
    .lab {{ fill: #ddf4ff; stroke: #0969da; }} .analysis {{ fill: #dafbe1; stroke: #1a7f37; }}
    @media (prefers-color-scheme: dark) {{
      text {{ fill: #e6edf3; }} path {{ stroke: #9da7b1; }}
      .lab {{ fill: #0c2d6b; }} .analysis {{ fill: #033a16; }}
    }}
  </style>
  {body}
</svg>
"""


def main() -> None:
    """Print the drawing."""
    standing = floors()
    sys.stdout.write(drawing(standing, arrows([name for floor in standing for name in floor])))


if __name__ == "__main__":
    main()
