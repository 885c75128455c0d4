"""PSNR over time, all methods: the picture for the README."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.frontier import SIGMA, Point

OURS, THEIRS = "tab:red", "tab:blue"
_PLACES = (
    ((0, 6), "center"),
    ((0, -14), "center"),
    ((-8, -3), "right"),
    ((8, -3), "left"),
    ((0, 18), "center"),
    ((0, -26), "center"),
)
"""Where the name of a point may be, in points from it, and how it is aligned."""


def plot_frontier(points: Sequence[Point], cpu: str, path: Path) -> None:
    """Draw PSNR over time, gray beside color; what was published is hollow."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    axes[0].set_ylabel(f"PSNR in dB on BSD68, noise of sigma {SIGMA}")
    figure.supxlabel(f"hollow: PSNR as published; {cpu}", x=0.995, ha="right", fontsize=7)
    shown = {}
    for axis, kind in zip(axes, ("gray", "color"), strict=True):
        shown[axis] = [point for point in points if point.kind == kind and point.psnr is not None]
        for point in shown[axis]:
            face = "white" if point.published else _color(point)
            axis.plot(point.seconds, point.psnr, "o", color=_color(point), markerfacecolor=face)
        axis.set_xscale("log")
        axis.set_xlabel("seconds (log axis)")
        axis.set_title(f"{kind}, 481 x 321 pixels, 2 threads")
        axis.margins(x=0.2, y=0.15)
        axis.grid(alpha=0.3, which="both")
    figure.draw_without_rendering()  # what is where is known only now
    for axis, some in shown.items():
        _name(axis, some)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _color(point: Point) -> str:
    return OURS if point.ours else THEIRS


def _name(axis: Any, points: Sequence[Point]) -> None:
    """Write names where they cover neither each other nor a point, if there is room; ours first."""
    taken = [axis.transData.transform((point.seconds, point.psnr)) for point in points]
    boxes: list[Any] = []
    for point in points:
        for offset, alignment in _PLACES:
            name = axis.annotate(
                point.label.replace("*", "").removesuffix(" in torch"),
                (point.seconds, point.psnr),
                xytext=offset,
                textcoords="offset points",
                ha=alignment,
                fontsize=8,
                color=_color(point),
            )
            box = name.get_window_extent()
            free = not any(box.contains(*place) for place in taken)
            if free and not any(box.overlaps(other) for other in boxes):
                break
            if offset != _PLACES[-1][0]:
                name.remove()
        boxes.append(box)
