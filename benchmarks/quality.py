"""PSNR of the other denoisers on all of BSD68: ``python -m benchmarks.quality``.

Sigma 25, gray and color, by the protocol of the results: image i has the noise of seed i. What is
measured already is kept; ``--again`` measures it anew. BM3D takes half an hour on two cores. Times
are not measured here, so the machine need not be quiet. Writes ``benchmarks/results/quality.json``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.machine import describe_run
from benchmarks.methods import Method
from benchmarks.pictures import CHANNELS, Picture, bsd68_paths, require_data
from benchmarks.registry import BUILDERS, PEERS
from nlnet.atomic import write_atomically
from nlnet.evaluation.datasets import read_clean
from nlnet.noise import add_noise
from nlnet.parallel import available_cpus

SIGMA = 25.0
OUTPUT = Path(__file__).resolve().parent / "results" / "quality.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, and write it after every method."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("--again", action="store_true", help="measure everything anew")
    parser.add_argument("--count", type=int, help="only the first images (default: all)")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    options = parser.parse_args(arguments)
    data = require_data()
    results: dict[str, dict[str, Any]] = {kind: {} for kind in CHANNELS}
    if options.output.exists() and not options.again:
        results |= json.loads(options.output.read_text())["results"]
    # Quick ones first, so that an interrupted run has most of them.
    for name in PEERS:
        for kind in CHANNELS:
            method = BUILDERS[f"{name}-{kind}"](SIGMA)
            if method.quality and method.name not in results[kind]:
                paths = bsd68_paths(kind, data)[: options.count]
                results[kind][method.name] = {**measure(method, paths), "run": describe_run()}
                content = {"sigma": SIGMA, "set": "BSD68", "results": results}
                write_atomically(options.output, (json.dumps(content, indent=1) + "\n").encode())
    return 0


def measure(method: Method, paths: Sequence[Path]) -> dict[str, Any]:
    """Return the PSNR of a method: its strength is the best one for the first image."""
    threads = available_cpus()
    pictures = [_noisy(path, method.kind, seed) for seed, path in enumerate(paths)]
    tuned = method.tuned(pictures[0], threads)
    bar = tqdm(pictures, desc=f"{method.name}, {method.kind}")
    scores = {picture.name: round(tuned.score(picture, threads) or 0.0, 4) for picture in bar}
    return {
        "psnr": round(statistics.fmean(scores.values()), 4),
        "strength": tuned.strengths[0],
        "images": scores,
    }


def _noisy(path: Path, kind: str, seed: int) -> Picture:
    clean = read_clean(path, CHANNELS[kind])
    return Picture(path.name, clean, add_noise(clean, SIGMA, seed).astype(np.float32))


if __name__ == "__main__":
    sys.exit(main())
