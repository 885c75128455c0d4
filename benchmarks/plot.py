"""PSNR over time, all methods: the picture for the README."""

from __future__ import annotations

from pathlib import Path
from typing import Any

OURS, THEIRS, NO_QUALITY = "tab:red", "tab:blue", "0.55"

_SIDES = {"nlnet gray-5x5": -1, "nlnet gray-7x7": 1}
"""Left or right of their points are the names of those two, which are near each other."""


def plot_speed(report: dict[str, Any], path: Path) -> None:
    """Draw the small images' results at the most threads, gray beside color."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    threads = max(report["protocol"]["threads"])
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for axis, kind in zip(axes, ("gray", "color"), strict=True):
        rows = [
            row
            for row in report["results"]
            if (row["kind"], row["size"], row["threads"]) == (kind, "small", threads)
        ]
        _draw(axis, rows)
        axis.set_title(f"{kind}, 481 x 321 pixels, {threads} threads")
    axes[0].set_ylabel(f"PSNR in dB, noise of sigma {report['protocol']['sigma']:g}")
    figure.text(1, 0, f"{report['machine']['cpu']}  ", ha="right", va="bottom", fontsize=6)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw(axis: Any, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        color = OURS if row["method"].startswith("nlnet") else THEIRS
        if row["psnr"] is None:
            axis.axvline(row["seconds"], color=NO_QUALITY, linestyle=":", zorder=0)
            axis.annotate(
                f"{row['method']} (time only)",
                (row["seconds"], 0.97),
                xytext=(3, 0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                rotation=90,
                ha="left",
                va="top",
                fontsize=7,
                color=NO_QUALITY if color == THEIRS else color,
            )
        else:
            axis.plot(row["seconds"], row["psnr"], "o", color=color)
            side = _SIDES.get(row["method"], 0)
            axis.annotate(
                row["method"],
                (row["seconds"], row["psnr"]),
                xytext=(8 * side, -3 if side else 6),
                textcoords="offset points",
                ha={-1: "right", 0: "center", 1: "left"}[side],
                fontsize=8,
                color=color,
            )
    axis.set_xscale("log")
    axis.set_xlabel("seconds (log axis)")
    axis.margins(x=0.18, y=0.18)
    axis.grid(alpha=0.3, which="both")
