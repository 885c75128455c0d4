"""Everyday pictures, with nothing said about their noise: ``python -m benchmarks.everyday``.

Simulated photos, pictures without noise and counts of photons (`benchmarks.everyday_cases`), each
denoised with defaults, and beside it what is possible: for photos the best sigma of white noise for
each file, for counts the noise that they were made with. Writes ``docs/results/everyday.json``
after every set; what is possible is measured once and kept.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import nlnet
from benchmarks import everyday_cases as cases
from benchmarks.machine import describe_run
from benchmarks.pictures import PROJECT, require_data
from nlnet.arrays import Array
from nlnet.atomic import write_atomically
from nlnet.training.simulation.steps import Encode
from scripts.markdown import format_table

OUTPUT = PROJECT / "docs" / "results" / "everyday.json"
SIGMAS = (1.0, 1.5, 2.2, 3.2, 4.5, 6.5, 9.0, 13.0, 18.0, 25.0, 35.0, 50.0)
UNCHANGED = 100.0
"""PSNR that stands for no difference, which JSON has no number for."""

_MISSED = 0.3
_WORTH = 1.0
"""Noise counts as missed if less than this share is gained of at least so many dB."""

Row = dict[str, float]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.everyday", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--count", type=int, help="pictures of each set (default: all)")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    options = parser.parse_args(arguments)
    folder = require_data() / "open" / "val"
    record: dict[str, Any] = (
        json.loads(options.output.read_text()) if options.output.exists() else {}
    )
    for name in options.only:
        known = record.get("sets", {}).get(name, {})
        rows = dict(tqdm(_measured(name, folder, known, options.count), desc=name, unit="picture"))
        record = {**describe_run(), "sets": {**record.get("sets", {}), name: rows}}
        write_atomically(options.output, (json.dumps(record, indent=1) + "\n").encode())
    print(format_sets(record["sets"]))
    return 0


def _measured(
    name: str, folder: Path, known: dict[str, Row], count: int | None
) -> Iterator[tuple[str, Row]]:
    for number, case in enumerate(SETS[name](folder)):
        if count is not None and number >= count:
            return
        peak = 255.0 if isinstance(case, cases.Picture) else float(np.ptp(case.truth))
        quality = functools.partial(psnr, truth=case.truth, peak=peak)
        row = {"noisy": quality(case.noisy), "default": quality(denoise(case.noisy))}
        kept = known.get(case.name, {})
        row["possible"] = kept["possible"] if "possible" in kept else _possible(case, quality)
        if name == "clean":
            row["itself"] = psnr(denoise(case.noisy), case.noisy, peak)
            row["encoded"] = float(any(isinstance(step, Encode) for step in case.recipe.steps))
        yield case.name, {key: round(value, 4) for key, value in row.items()}


def _possible(case: cases.Picture | cases.Counts, quality: Callable[[Array], float]) -> float:
    if isinstance(case, cases.Counts):
        given = nlnet.Noise.poisson(case.gain, case.read, case.offset)
        return quality(denoise(case.noisy, noise=given))
    if case.recipe.kind == "clean":
        return quality(case.noisy)
    return max(quality(case.noisy), *(quality(denoise(case.noisy, sigma)) for sigma in SIGMAS))


def denoise(noisy: Array, sigma: float | None = None, **given: Any) -> Array:
    """Denoise; what nlnet has to say about the picture is not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return nlnet.denoise(noisy, sigma, **given)


def psnr(image: Array, truth: Array, peak: float) -> float:
    """Return the PSNR over all channels."""
    error = float(np.mean(np.square(image.astype(np.float64) - truth)))
    return UNCHANGED if error == 0 else min(UNCHANGED, float(10 * np.log10(peak**2 / error)))


SETS: dict[str, Callable[[Path], Iterator[Any]]] = {
    "known": functools.partial(cases.everyday, kinds="known"),
    "unknown": functools.partial(cases.everyday, kinds="unknown"),
    "clean": cases.clean,
    "counts": cases.counts,
}


def format_sets(sets: dict[str, dict[str, Row]]) -> str:
    """Return the figures of all sets as a table."""
    lines = []
    for name, rows in sets.items():
        noisy, default, possible = (
            np.array([row[key] for row in rows.values()])
            for key in ("noisy", "default", "possible")
        )
        worth = possible - noisy >= _WORTH
        missed = worth & (default - noisy < _MISSED * (possible - noisy))
        lines.append(
            [
                name,
                str(len(rows)),
                *(f"{each.mean():.2f}" for each in (noisy, default, possible)),
                f"{np.count_nonzero(missed)} of {np.count_nonzero(worth)}",
                f"{(default - noisy).min():+.2f}",
                f"{(default - possible).min():+.2f}",
            ]
        )
    heads = ["set", "pictures", "noisy", "default", "possible", "missed", "worst", "below possible"]
    return format_table(heads, lines)


if __name__ == "__main__":
    sys.exit(main())
