"""What all figures share: the colors of their curves, their style, and how they are written."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlnet.atomic import write_atomically
from nlnet.errors import InputError

SUFFIXES = (".png", ".pdf", ".svg")
COLORS = ("#1f6fb4", "#d9541e", "#2a9d5c", "#8a4fb5", "#b8860b", "#5a5a5a")
"""Of curves, in this order."""

_DPI = 160


def check_suffix(path: Path) -> None:
    """Raise InputError unless the name ends like that of a figure."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"The figure {str(path)!r} must have one of the suffixes {', '.join(SUFFIXES)}."
        )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, in the format that the suffix names, whole or not at all."""
    check_suffix(path)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=_DPI)
    write_atomically(path, buffer.getvalue())


def style_panel(panel: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Draw a light grid, and no frame above and on the right."""
    panel.grid(axis=grid, color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
