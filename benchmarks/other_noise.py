"""What happens with noise that is not white and Gaussian: ``python -m benchmarks.other_noise``.

The first 12 images of BSD68 with four kinds of damage, denoised with the estimated sigma and in
another way that suits the kind better. Writes ``docs/results/other_noise.json`` and prints the
table of the docs.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import PIL.Image

import nlnet
from benchmarks.estimator import bsd68_paths
from benchmarks.machine import describe_run
from benchmarks.pictures import PROJECT, find_data
from nlnet.arrays import Array
from nlnet.evaluate import read_clean
from nlnet.metrics import psnr
from nlnet.noise import add_noise

COUNT = 12
SIGMA = 15.0
JPEG_QUALITY = 20
PHOTONS = 60.0
"""Mean count of a white pixel."""

OUTPUT = PROJECT / "docs" / "results" / "other_noise.json"
Denoise = Callable[[Array, float | None], Array]


def white(clean: Array, seed: int) -> Array:
    """Add what nlnet is made for."""
    return add_noise(clean, SIGMA, seed)


def correlated(clean: Array, seed: int) -> Array:
    """Add noise of the same strength, smeared as by the interpolation in a camera."""
    noise = np.random.default_rng(seed).standard_normal(clean.shape)
    kernel = np.array([1, 2, 1]) / 4
    for axis in (0, 1):
        noise = np.apply_along_axis(np.convolve, axis, noise, kernel, mode="same")
    return clean + SIGMA * noise / noise.std()


def jpeg(clean: Array, seed: int) -> Array:
    """Compress strongly: no noise at all, but blocks and ringing."""
    stream = io.BytesIO()
    PIL.Image.fromarray(clean).save(stream, "jpeg", quality=JPEG_QUALITY)
    with PIL.Image.open(stream) as image:
        return np.asarray(image).astype(np.float64)


def photons(clean: Array, seed: int) -> Array:
    """Count photons: the noise grows with the square root of the brightness."""
    counts = np.random.default_rng(seed).poisson(clean * PHOTONS / 255)
    return np.asarray(counts * (255 / PHOTONS))


def by_square_roots(noisy: Array, denoise: Denoise) -> Array:
    """Denoise counts: their square roots have the same noise everywhere (Anscombe 1948)."""
    counts = noisy * PHOTONS / 255
    roots = denoise(2 * np.sqrt(counts + 3 / 8), 1.0)
    return np.asarray(((roots / 2) ** 2 - 1 / 8) * 255 / PHOTONS)


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of damage, and ways to undo it besides the plain one."""

    name: str
    damage: Callable[[Array, int], Array]
    other: str = ""
    undo: Callable[[Array, Denoise], Array] | None = None


KINDS = (
    Kind(f"white Gaussian, sigma {SIGMA:g}", white),
    Kind(
        f"the same, correlated between neighbors (sigma {SIGMA:g})",
        correlated,
        "with three times the sigma",
        lambda noisy, denoise: denoise(noisy, 3 * SIGMA),
    ),
    Kind(f"JPEG of quality {JPEG_QUALITY}", jpeg, "with sigma 10", lambda n, d: d(n, 10.0)),
    Kind(f"Poisson, {PHOTONS:g} photons for white", photons, "by square roots", by_square_roots),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.other_noise", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help=f"images (default: {COUNT})")
    parser.add_argument("--model", default="gray-5x5", metavar="M", help="model for gray images")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    options = parser.parse_args(arguments)
    data = find_data()
    if data is None:
        print("There is no data folder: set NLNET_SHARED.", file=sys.stderr)
        return 2

    def denoise(noisy: Array, sigma: float | None) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # images without noise are part of it
            return nlnet.denoise(noisy, sigma, model=options.model, data_range=255)

    paths = bsd68_paths("gray", data)[: options.count]
    rows = [measure(kind, paths, denoise) for kind in KINDS]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    report = {**describe_run(), "model": options.model, "rows": rows}
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    print(format_table(rows))
    return 0


def measure(kind: Kind, paths: Sequence[Path], denoise: Denoise) -> dict[str, object]:
    """Return the means over the images; image i has seed i."""
    figures: dict[str, list[float]] = {"before": [], "estimate": [], "plain": [], "other": []}
    for seed, path in enumerate(paths):
        clean = read_clean(path, 1)
        noisy = kind.damage(clean, seed)
        figures["before"].append(psnr(clean, np.clip(noisy, 0, 255)))
        figures["estimate"].append(nlnet.estimate_sigma(noisy))
        figures["plain"].append(psnr(clean, np.clip(denoise(noisy, None), 0, 255)))
        if kind.undo is not None:
            result = np.clip(kind.undo(noisy, denoise), 0, 255)
            figures["other"].append(psnr(clean, result))
    means = {name: statistics.fmean(values) for name, values in figures.items() if values}
    return {"kind": kind.name, "other_way": kind.other, "images": len(paths), **means}


def format_table(rows: Sequence[dict[str, object]]) -> str:
    """Return the table in Markdown."""
    header = ["damage", "PSNR before", "estimated sigma", "PSNR after", "PSNR in another way"]
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    for row in rows:
        other = f"{row['other']:.2f} {row['other_way']}" if "other" in row else "-"
        cells = [
            str(row["kind"]),
            *(f"{row[name]:.2f}" for name in ("before", "estimate", "plain")),
        ]
        lines.append(f"| {' | '.join([*cells, other])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
