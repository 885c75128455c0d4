"""Noise that varies over the image, with a map of its sigma: ``python -m benchmarks.sigma_maps``.

Images of BSD68, gray and color, with white noise that grows from left to right, or is weak in one
half and strong in the other. They are denoised with the mean sigma, with the strength of every
pixel from the map, and, as the most that a map can give, taking every pixel from the result for its
own sigma. Writes ``docs/results/sigma_maps.json`` and the table of ``docs/files_and_noise.md``,
after every row; rows of as many images that are there already are kept, unless ``--again``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import nlnet
from benchmarks.machine import describe_run
from benchmarks.pictures import CHANNELS, PROJECT, bsd68_paths, require_data
from nlnet.arrays import Array
from nlnet.atomic import write_atomically
from nlnet.evaluation.datasets import read_clean
from nlnet.evaluation.metrics import psnr
from scripts.markdown import format_table, insert_block

COUNT = 17
OUTPUT = PROJECT / "docs" / "results" / "sigma_maps.json"
PAGE = PROJECT / "docs" / "files_and_noise.md"
NAME = "sigma-maps"
STEPS = 48
"""Strengths among which the best result takes the nearest to each pixel's: 5 % apart."""

MAPS: dict[str, Callable[[int], Array]] = {
    "from 5 to 50, left to right": lambda width: np.linspace(5.0, 50.0, width),
    "10 in one half, 40 in the other": lambda width: 10 + 30 * (np.arange(width) >= width // 2),
}
_METHODS = {
    "noisy": "noisy",
    "mean": "one sigma, the mean",
    "map": "a map of sigma",
    "own": "each pixel at its own",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the results and the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sigma_maps", description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT, help=f"images (default: {COUNT})")
    parser.add_argument("--kinds", nargs="+", choices=CHANNELS, default=list(CHANNELS))
    parser.add_argument("--again", action="store_true", help="measure everything anew")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    options = parser.parse_args(arguments)
    data = require_data()
    rows: list[dict[str, Any]] = []
    if options.output.exists() and not options.again:
        rows = json.loads(options.output.read_text())["rows"]
    for kind in options.kinds:
        paths = bsd68_paths(kind, data)
        chosen = [paths[place * len(paths) // options.count] for place in range(options.count)]
        for name in MAPS:
            same = [row for row in rows if (row["kind"], row["map"]) == (kind, name)]
            if same and same[0]["images"] == [path.stem for path in chosen]:
                continue
            rows = [row for row in rows if row not in same] + [measure(kind, name, chosen)]
            content = json.dumps({"rows": rows}, indent=1) + "\n"
            write_atomically(options.output, content.encode())
    if options.output == OUTPUT:
        PAGE.write_text(fill_in(PAGE.read_text()))
    print(format_rows(rows))
    return 0


def measure(kind: str, name: str, paths: Sequence[Path]) -> dict[str, Any]:
    """Return the mean PSNR of all methods: image i has the noise of seed i."""
    scores: dict[str, list[float]] = {method: [] for method in _METHODS}
    for seed, path in enumerate(tqdm(paths, desc=f"{kind}, {name}")):
        clean = read_clean(path, CHANNELS[kind])
        sigmas = np.broadcast_to(MAPS[name](clean.shape[1]), clean.shape[:2]).astype(np.float32)
        wide = sigmas if kind == "gray" else sigmas[..., np.newaxis]
        noise = np.random.default_rng(seed).standard_normal(clean.shape)
        noisy = (clean + wide * noise).astype(np.float32)
        results = {
            "noisy": noisy,
            "mean": _denoise(noisy, float(sigmas.mean())),
            "map": _denoise(noisy, sigmas),
            "own": each_at_its_own(noisy, sigmas),
        }
        for method, result in results.items():
            scores[method].append(psnr(clean, np.clip(result, 0, 255)))
    return {
        "kind": kind,
        "map": name,
        "run": describe_run(),
        "images": [path.stem for path in paths],
        "psnr": {method: round(statistics.fmean(found), 4) for method, found in scores.items()},
        "psnr_of_each": {method: np.round(found, 4).tolist() for method, found in scores.items()},
    }


def each_at_its_own(noisy: Array, sigmas: Array) -> Array:
    """Return every pixel from the result for its own sigma, or the nearest of some."""
    levels = np.unique(sigmas)
    if len(levels) > STEPS:
        levels = np.geomspace(levels[0], levels[-1], STEPS)
    distances = np.abs(np.log(sigmas[..., np.newaxis] / levels))
    nearest = distances.argmin(axis=-1)
    result = np.empty_like(noisy)
    for place, level in enumerate(levels):
        here = nearest == place
        result[here] = _denoise(noisy, float(level))[here]
    return result


def _denoise(noisy: Array, sigma: Any) -> Array:
    return nlnet.denoise(noisy, sigma, data_range=255, clip=True)


def format_rows(rows: Sequence[dict[str, Any]]) -> str:
    """Return the table in Markdown."""
    header = ["sigma", "", "images", *_METHODS.values(), "lost to the last"]
    lines = []
    for row in rows:
        found = row["psnr"]
        cells = [f"{found[method]:.2f}" for method in _METHODS]
        count = str(len(row["images"]))
        lost = f"{found['own'] - found['map']:.3f}"
        lines.append([row["map"], row["kind"], count, *cells, lost])
    return format_table(header, lines)


def fill_in(page: str) -> str:
    """Return the page with the table of the committed results."""
    rows = json.loads(OUTPUT.read_text())["rows"]
    return insert_block(page, NAME, f"Mean PSNR in dB:\n\n{format_rows(rows)}")


if __name__ == "__main__":
    sys.exit(main())
