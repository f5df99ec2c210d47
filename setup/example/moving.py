"""Makes a moving picture of still ones: `python -m setup.example.moving <frames> <picture> <source>`, in .venv-docs."""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image

_FRAME_MS = 160
_LAST_MS = 4000
_COLOURS = 64


def write(frames: list[Path], picture: Path, source: str) -> None:
    """Write the frames as one GIF, which says in its comment what it shows."""
    first, *others = [Image.open(frame).convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE) for frame in frames]
    first.save(
        picture,
        save_all=True,
        append_images=others,
        duration=[_FRAME_MS] * len(others) + [_LAST_MS],
        loop=0,
        optimize=True,
        comment=source.encode(),
    )


if __name__ == "__main__":
    write(sorted(Path(sys.argv[1]).glob("*.png")), Path(sys.argv[2]), sys.argv[3])
