"""What all figures share: the colors of their curves, their style, and how they are written."""

import io
from pathlib import Path
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlnet.atomic import write_atomically

SUFFIXES = (".png", ".pdf", ".svg")
"""Of the files that figures are written to."""

COLORS = ("#1f6fb4", "#d9541e", "#2a9d5c", "#8a4fb5", "#b8860b", "#5a5a5a")
"""Of curves, in this order."""

SMALL_TEXT: dict[str, Any] = {"fontsize": 8, "color": "#707070", "va": "bottom"}
"""The style of notes within a panel."""

_DPI = 160


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure, in the format that the suffix names, whole or not at all."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=_DPI)
    write_atomically(path, buffer.getvalue())


def style_panel(panel: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Draw a light grid, and no frame above and on the right."""
    panel.grid(axis=grid, color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
