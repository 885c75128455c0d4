"""PSNR over sigma, beside BM3D: ``python -m benchmarks.sigmas``.

The first 12 images of BSD68, gray and color. Both see the same noisy images and know sigma. Writes
``docs/results/sigmas.json`` and ``docs/images/sigmas.png``, and prints the table of the docs. BM3D
takes a quarter of an hour on two cores; ``--ours`` keeps its results.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bm3d  # type: ignore[import-untyped]
import numpy as np

import nlnet
from benchmarks.machine import describe_run
from benchmarks.pictures import CHANNELS, PROJECT, bsd68_paths, require_data
from nlnet.arrays import Array
from nlnet.evaluation.datasets import read_clean
from nlnet.evaluation.metrics import psnr
from nlnet.noise import add_noise

SIGMAS = (10, 20, 35, 75)
COUNT = 12
OUTPUT = PROJECT / "docs" / "results" / "sigmas.json"
PLOT = PROJECT / "docs" / "images" / "sigmas.png"
OURS, THEIRS = "tab:red", "tab:blue"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write and plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sigmas", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help=f"images (default: {COUNT})")
    parser.add_argument("--sigmas", type=float, nargs="+", default=SIGMAS, metavar="S")
    parser.add_argument("--gray", default="gray", metavar="M", help="model for gray images")
    parser.add_argument("--color", default="color", metavar="M", help="model for color images")
    parser.add_argument(
        "--ours", action="store_true", help="measure only nlnet, keep BM3D's results"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    parser.add_argument("--plot", type=Path, default=PLOT, metavar="OUT.png")
    options = parser.parse_args(arguments)
    data = require_data()
    rows = []
    kept = json.loads(options.output.read_text())["rows"] if options.ours else []
    for kind in CHANNELS:
        paths = bsd68_paths(kind, data)[: options.count]
        for sigma in options.sigmas:
            theirs = [row for row in kept if (row["kind"], row["sigma"]) == (kind, sigma)]
            rows.append(measure(kind, sigma, paths, getattr(options, kind), theirs))
            print(format_row(rows[-1]), file=sys.stderr, flush=True)
    for path in (options.output, options.plot):
        path.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({**describe_run(), "rows": rows}, indent=2) + "\n")
    plot(rows, options.plot)
    print(format_table(rows))
    return 0


def measure(
    kind: str,
    sigma: float,
    paths: Sequence[Path],
    model: str,
    kept: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return the mean PSNR of both methods: image i has the noise of seed i.

    `kept` is an earlier row with BM3D's results on the same images, if there is one.
    """
    by_bm3d = bm3d.bm3d if kind == "gray" else bm3d.bm3d_rgb
    methods: dict[str, Callable[[Array], Array]] = {
        "nlnet": lambda noisy: nlnet.denoise(noisy, sigma, model=model, data_range=255),
        "bm3d": lambda noisy: by_bm3d(noisy, sigma),
    }
    images = [path.stem for path in paths]
    scores: dict[str, list[float]] = {name: [] for name in methods}
    for row in kept:
        if row["images"] == images:
            scores["bm3d"] = row["psnr_of_each"]["bm3d"]
            del methods["bm3d"]
    for seed, path in enumerate(paths):
        clean = read_clean(path, CHANNELS[kind])
        noisy = add_noise(clean, sigma, seed).astype(np.float32)
        for name, method in methods.items():
            scores[name].append(psnr(clean, np.clip(method(noisy), 0, 255)))
    return {
        "kind": kind,
        "sigma": sigma,
        "model": model,
        "images": images,
        "psnr": {name: statistics.fmean(values) for name, values in scores.items()},
        "psnr_of_each": scores,
    }


def format_row(row: dict[str, Any]) -> str:
    """Return one row of the table in Markdown."""
    ours, theirs = row["psnr"]["nlnet"], row["psnr"]["bm3d"]
    cells = [row["kind"], f"{row['sigma']:g}", f"{ours:.2f}", f"{theirs:.2f}"]
    return f"| {' | '.join([*cells, f'{ours - theirs:+.2f}'])} |"


def format_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the whole table in Markdown."""
    header = ["", "sigma", "nlnet", "bm3d", "difference in dB"]
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *map(format_row, rows)])


def plot(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw PSNR over sigma, gray beside color, with what nlnet gains at each point."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    for axis, kind in zip(axes, CHANNELS, strict=True):
        chosen = [row for row in rows if row["kind"] == kind]
        sigmas = [row["sigma"] for row in chosen]
        for name, color in (("nlnet", OURS), ("bm3d", THEIRS)):
            values = [row["psnr"][name] for row in chosen]
            axis.plot(sigmas, values, "o-", color=color, label=name, markersize=4)
        for row in chosen:
            gain = row["psnr"]["nlnet"] - row["psnr"]["bm3d"]
            axis.annotate(
                f"{gain:+.2f} dB",
                (row["sigma"], max(row["psnr"].values())),
                xytext=(5, 6),
                textcoords="offset points",
                fontsize=8,
                color=OURS if gain >= 0 else THEIRS,
            )
        axis.set_xscale("log")
        axis.set_xticks(sigmas, [f"{sigma:g}" for sigma in sigmas])
        axis.minorticks_off()
        axis.set_xlabel("sigma of the noise (log axis)")
        axis.set_title(f"{kind}, {len(chosen[0]['images'])} images of BSD68")
        axis.grid(alpha=0.3)
        axis.margins(x=0.22, y=0.12)
        axis.legend()
    axes[0].set_ylabel("PSNR in dB")
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
