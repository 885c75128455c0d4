"""PSNR over time, all methods: the picture for the README."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.frontier import SIGMA, Point

OURS, THEIRS = "tab:red", "tab:blue"


def plot_frontier(points: Sequence[Point], cpu: str, path: Path) -> None:
    """Draw PSNR over time, gray beside color; what was published is hollow."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
    for axis, kind in zip(axes, ("gray", "color"), strict=True):
        shown = [point for point in points if point.kind == kind and point.psnr is not None]
        for place, point in enumerate(sorted(shown, key=lambda point: point.seconds)):
            _draw(axis, point, above=place % 2 == 0)
        axis.set_xscale("log")
        axis.set_xlabel("seconds (log axis)")
        axis.set_title(f"{kind}, 481 x 321 pixels, 2 threads")
        axis.margins(x=0.2, y=0.15)
        axis.grid(alpha=0.3, which="both")
    axes[0].set_ylabel(f"PSNR in dB on BSD68, noise of sigma {SIGMA}")
    note = f"hollow: time of the architecture, PSNR as published; {cpu}  "
    figure.text(1, 0, note, ha="right", va="bottom", fontsize=6)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw(axis: Any, point: Point, *, above: bool) -> None:
    color = OURS if point.ours else THEIRS
    face = "white" if point.published else color
    axis.plot(point.seconds, point.psnr, "o", color=color, markerfacecolor=face)
    axis.annotate(
        point.label.replace("*", "").removesuffix(" in torch"),
        (point.seconds, point.psnr),
        xytext=(0, 6 if above else -13),  # neighbors in time often are neighbors in PSNR
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=color,
    )
