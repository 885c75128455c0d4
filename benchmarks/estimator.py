"""How well noise is estimated, beside scikit-image: ``python -m benchmarks.estimator``.

On the 68 images of BSD68, gray and color, with noise of several strengths: the relative error of
both estimators, the time they take, and the PSNR that is lost by denoising with nlnet's estimate
instead of the noise that is really there. Writes ``docs/results/estimator.json`` and prints the
table of the docs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from skimage.restoration import estimate_sigma as estimate_by_wavelets

import nlnet
from benchmarks.machine import describe_run
from benchmarks.pictures import CHANNELS, PROJECT, bsd68_paths, require_data
from nlnet.arrays import Array
from nlnet.evaluation.datasets import read_clean
from nlnet.evaluation.metrics import psnr
from nlnet.noise import add_noise

SIGMAS = (5, 15, 25, 50)
OUTPUT = PROJECT / "docs" / "results" / "estimator.json"


def by_wavelets(noisy: Array) -> float:
    """Estimate by the median of the finest wavelet coefficients (Donoho), as scikit-image does."""
    axis = -1 if noisy.ndim == 3 else None
    return float(estimate_by_wavelets(noisy, channel_axis=axis, average_sigmas=True))


ESTIMATORS: dict[str, Callable[[Array], float]] = {
    "nlnet": nlnet.estimate_sigma,
    "scikit-image": by_wavelets,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.estimator", description=__doc__)
    parser.add_argument("--count", type=int, help="images to take (default: all)")
    parser.add_argument("--gray", default="gray-5x5", metavar="M", help="model for gray images")
    parser.add_argument("--color", default="color-5x5", metavar="M", help="model for color images")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    parser.add_argument(
        "--no-psnr",
        action="store_true",
        help="leave out the PSNR that is lost, which takes longest",
    )
    options = parser.parse_args(arguments)
    data = require_data()
    rows = []
    for kind in CHANNELS:
        model = None if options.no_psnr else getattr(options, kind)
        paths = bsd68_paths(kind, data)[: options.count]
        for sigma in SIGMAS:
            rows.append(measure(kind, sigma, paths, model))
            print(format_row(rows[-1]), file=sys.stderr, flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps({**describe_run(), "rows": rows}, indent=2) + "\n")
    print(format_table(rows))
    return 0


def measure(kind: str, sigma: float, paths: Sequence[Path], model: str | None) -> dict[str, Any]:
    """Return the figures of one row: image i has the noise of seed i."""
    errors: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    seconds: dict[str, list[float]] = {name: [] for name in ESTIMATORS}
    losses = []
    for seed, path in enumerate(paths):
        clean = read_clean(path, CHANNELS[kind])
        noisy = add_noise(clean, sigma, seed).astype(np.float32)
        found = {}
        for name, estimate in ESTIMATORS.items():
            start = time.perf_counter()
            found[name] = estimate(noisy)
            seconds[name].append(time.perf_counter() - start)
            errors[name].append(found[name] / sigma - 1)
        if model is not None:
            known, guessed = (
                psnr(clean, nlnet.denoise(noisy, level, model=model, data_range=255))
                for level in (sigma, found["nlnet"])
            )
            losses.append(known - guessed)
    return {
        "kind": kind,
        "sigma": sigma,
        "images": len(paths),
        "model": model,
        "psnr_lost": statistics.fmean(losses) if losses else None,
        "estimators": {
            name: {
                "mean_relative_error": float(np.mean(np.abs(errors[name]))),
                "bias": float(np.mean(errors[name])),
                "largest_error": float(np.max(np.abs(errors[name]))),
                "median_seconds": statistics.median(seconds[name]),
            }
            for name in ESTIMATORS
        },
    }


def format_row(row: dict[str, Any]) -> str:
    """Return one row of the table in Markdown."""
    cells = [row["kind"], f"{row['sigma']}"]
    for figures in row["estimators"].values():
        cells.append(f"{100 * figures['mean_relative_error']:.1f} %")
        cells.append(f"{100 * figures['largest_error']:.1f} %")
    lost = row["psnr_lost"]
    cells.append("-" if lost is None else f"{lost:.3f} dB")
    return f"| {' | '.join(cells)} |"


def format_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the whole table in Markdown."""
    names = [f"{name}: {part}" for name in ESTIMATORS for part in ("mean error", "largest")]
    header = ["", "sigma", *names, "PSNR lost by nlnet's"]
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *map(format_row, rows)])


if __name__ == "__main__":
    sys.exit(main())
