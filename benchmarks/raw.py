"""Denoising before or after demosaicing: ``python -m benchmarks.raw``.

A simulated camera (`benchmarks.raw_camera`) takes pictures of BSDS500 at several levels of light.
Their mosaics are denoised in several ways and developed all alike; PSNR is that of the picture,
against the one of the mosaic without noise, and that of the mosaic itself. Writes
``docs/results/raw.json`` and prints the tables of ``docs/raw.md``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

import nlnet
from benchmarks import raw_routes
from benchmarks.machine import describe_run
from benchmarks.pictures import PROJECT, bsd68_paths, require_data
from benchmarks.raw_camera import PATTERN, WHITE_BALANCE, Floats, RawCamera, read_picture
from nlnet.evaluation.metrics import psnr
from nlnet.noise.levels import Level
from nlnet.noise.stabilisation import Stabiliser
from nlnet.raw.estimation import estimate_mosaic_noise
from nlnet.raw.mosaic import denoise_mosaic

LEVELS = (20.0, 100.0, 500.0, 2500.0)
"""Photons at a white pixel behind the green filter."""

COUNT = 12
SIGMAS = (0, 3, 5, 8, 12, 16, 20, 25, 32, 40, 50, 65, 80, 100, 130)
"""Strengths after demosaicing, of which the best one for each picture is taken."""

OUTPUT = PROJECT / "docs" / "results" / "raw.json"
AFTER = "after demosaicing, the best sigma of each picture"
SHIPPED = "color from phases, brightness at full size (shipped)"
UNBALANCED = "the same, white balance unknown"
ESTIMATED = "shipped, noise estimated"
ROUTES: dict[str, raw_routes.Route] = {
    "four gray planes of half the size": raw_routes.four_gray_planes,
    "the mosaic as one gray image": raw_routes.one_gray_image,
    "two color images of half the size, R G1 B and R G2 B": raw_routes.two_color_images,
    "quads, rotated, in color; G1 - G2 in gray": raw_routes.quads,
    "the same, mean over four shifts": raw_routes.shifted_quads,
}
Figures = tuple[float, float | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.raw", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help=f"pictures (default: {COUNT})")
    parser.add_argument(
        "--choosing", action="store_true", help="not on BSD68, but where choices were made"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    options = parser.parse_args(arguments)
    data = require_data()
    paths = picture_paths(data, options.count, choosing=options.choosing)
    rows = [row for photons in LEVELS for row in measure(RawCamera(photons), paths)]
    report = {**describe_run(), "pictures": [path.stem for path in paths], "rows": rows}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    print(format_table(rows, "picture"), format_table(rows, "mosaic"), sep="\n\n")
    return 0


def picture_paths(data: Path, count: int, *, choosing: bool) -> Sequence[Path]:
    """Return pictures of BSD68, or of the rest of the validation set, spread evenly."""
    chosen = bsd68_paths("color", data)
    if choosing:
        taken = {path.stem for path in chosen}
        folder = chosen[0].parent
        chosen = [path for path in sorted(folder.glob("*.jpg")) if path.stem not in taken]
    return chosen[:: max(1, len(chosen) // count)][:count]


def measure(camera: RawCamera, paths: Sequence[Path]) -> Iterator[dict[str, object]]:
    """Yield the means of each way over the pictures; picture i has seed i."""
    figures: dict[str, list[Figures]] = {}
    for seed, path in enumerate(paths):
        clean = camera.expose(read_picture(str(path)))
        truth = camera.develop(clean)
        noisy = camera.add_noise(clean, seed)

        def score(name: str, mosaic: Floats, clean: Floats = clean, truth: Floats = truth) -> None:
            error = np.mean(((mosaic - clean) / camera.photons) ** 2)
            figures.setdefault(name, []).append(
                (psnr(truth, camera.develop(mosaic)), float(-10 * np.log10(error)))
            )

        score("noisy", noisy)
        best = max(after_demosaicing(camera.develop(noisy), truth))
        figures.setdefault(AFTER, []).append((best, None))
        for name, route in ROUTES.items():
            score(name, _stabilised(route, noisy, camera.read))
        score(SHIPPED, _shipped(noisy, 1.0, camera.read))
        score(UNBALANCED, denoise_mosaic(noisy, PATTERN, 1.0, camera.read))
        score(ESTIMATED, _shipped(noisy, *estimate_mosaic_noise(noisy, PATTERN, np.inf)))
    for name, values in figures.items():
        pictures, mosaics = zip(*values, strict=True)
        mosaic = None if None in mosaics else statistics.fmean(mosaics)
        yield {
            "photons": camera.photons,
            "way": name,
            "picture": statistics.fmean(pictures),
            "mosaic": mosaic,
        }


def after_demosaicing(noisy: Floats, truth: Floats) -> Iterator[float]:
    """Yield the PSNR of a noisy picture that is denoised with one strength after the other."""
    for sigma in SIGMAS:
        denoised = nlnet.denoise(noisy, sigma, data_range=255) if sigma else noisy
        yield psnr(truth, denoised)


def _stabilised(route: Callable[[Floats], Floats], noisy: Floats, read: float) -> Floats:
    transform = Stabiliser(Level(1.0, read))
    return transform.inverse(route(transform.forward(noisy.astype(np.float64))))


def _shipped(noisy: Floats, gain: float, read: float) -> Floats:
    return denoise_mosaic(noisy, PATTERN, gain, read, white_balance=WHITE_BALANCE)


def format_table(rows: Sequence[dict[str, object]], figure: str) -> str:
    """Return a table in Markdown, a column for each level of light."""
    levels = list(dict.fromkeys(row["photons"] for row in rows))
    header = [f"PSNR of the {figure}, dB", *(f"{level:g} photons" for level in levels)]
    lines = [f"| {' | '.join(header)} |", "|---" + "|---:" * len(levels) + "|"]
    for way in dict.fromkeys(row["way"] for row in rows):
        values = [row[figure] for row in rows if row["way"] == way]
        if None not in values:
            lines.append(f"| {way} | {' | '.join(f'{value:.2f}' for value in values)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
