"""The whole benchmark in one run: the same images, all methods in turns, every figure."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.families import FAMILIES, REFERENCE
from benchmarks.machine import describe_run
from benchmarks.memory import measure_memory
from benchmarks.methods import Method
from benchmarks.peak import operations_per_pixel, sgemm_rate
from benchmarks.pictures import CHANNELS, SIZES, Picture, make_pictures
from benchmarks.registry import BUILDERS, keys_of
from benchmarks.threads import limit_threads
from benchmarks.timing import Timing, time_methods

LARGEST_FOR_ALL_THREADS = 3.0
"""Megapixels from which only the largest number of threads is measured."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a run measures.

    Parameters
    ----------
    sigma : float
        Noise on the 0-255 scale.
    threads : tuple of int
        Numbers of threads, ascending.
    repeats : int
        Rounds of timing.
    images : int
        Small images over which PSNR is averaged; times are those of the first.
    sizes : tuple of str
        Keys of `SIZES`.
    data : Path or None
        Where the photos are; None for the bundled one.
    """

    sigma: float
    threads: tuple[int, ...]
    repeats: int
    images: int
    sizes: tuple[str, ...]
    data: Path | None


def run_suite(settings: Settings) -> dict[str, Any]:
    """Measure everything, and return it as plain values."""
    report = describe_run()
    rates = {threads: sgemm_rate(threads) for threads in settings.threads}
    rows: list[dict[str, Any]] = []
    names: set[str] = set()
    for kind in CHANNELS:
        methods: dict[str, Method] | None = None
        for size in settings.sizes:
            count = settings.images if size == "small" else 1
            pictures = make_pictures(kind, size, count, settings.sigma, settings.data)
            names.update(picture.name for picture in pictures)
            methods = methods or _tuned_methods(kind, pictures[0], settings)
            rows += _measure_size(methods, size, pictures, settings, rates)
    return {
        **report,
        "protocol": {
            **dataclasses.asdict(settings),
            "data": "BSD68" if settings.data else "bundled photo",
            "images": sorted(names),
            "tuning": "peers with a strength get the one with the best PSNR on the first image",
        },
        "sgemm_gflops": {str(count): round(rate / 1e9, 1) for count, rate in rates.items()},
        "results": rows,
    }


def _tuned_methods(kind: str, picture: Picture, settings: Settings) -> dict[str, Method]:
    threads = settings.threads[-1]
    methods = {}
    for key in tqdm(keys_of(kind), desc=f"{kind}: tune", leave=False):
        method = BUILDERS[key](settings.sigma)
        with limit_threads(threads):
            methods[key] = method.tuned(picture, threads)
    return methods


def _measure_size(
    methods: dict[str, Method],
    size: str,
    pictures: Sequence[Picture],
    settings: Settings,
    rates: dict[int, float],
) -> list[dict[str, Any]]:
    """Return one row for each method and number of threads."""
    megapixels = math.prod(SIZES[size]) / 1e6
    used = {key: method for key, method in methods.items() if megapixels <= method.largest}
    every = megapixels <= LARGEST_FOR_ALL_THREADS
    counts = settings.threads if every else settings.threads[-1:]
    title = f"{next(iter(used.values())).kind} {size}"
    scores, memory = {}, {}
    for key, method in tqdm(used.items(), desc=f"{title}: PSNR and memory", leave=False):
        # These calls are also what makes the methods warm.
        with limit_threads(counts[-1]):
            scores[key] = _mean([method.score(picture, counts[-1]) for picture in pictures])
        memory[key] = measure_memory(key, size, settings.sigma, counts[-1])
    rows = []
    calls = len(counts) * settings.repeats * len(used)
    with tqdm(total=calls, desc=f"{title}: time", leave=False) as bar:
        # The most threads first: pools that libraries keep must not be born on one CPU.
        for count in reversed(counts):
            timings = time_methods(
                list(used.values()), pictures[0], count, settings.repeats, bar.update
            )
            timed = dict(zip(used, timings, strict=True))
            for key, method in used.items():
                row = _row(method, pictures[0], size, count, timed[key])
                row["psnr"], row["peak_bytes"] = scores[key], memory[key]
                row["peak_bytes_per_pixel"] = _per_pixel(memory[key], pictures[0])
                row["ratio"] = timed[key].seconds / _reference(used, timed)
                row["share_of_sgemm"] = _share(key, pictures[0], timed[key], rates[count])
                rows.append(row)
    return rows


def _row(
    method: Method, picture: Picture, size: str, threads: int, timing: Timing
) -> dict[str, Any]:
    return {
        "method": method.name,
        "kind": method.kind,
        "size": size,
        "pixels": picture.pixels,
        "threads": threads,
        "seconds": timing.seconds,
        "calls": timing.calls,
        "spread": timing.spread,
        "cores": timing.cores,
        "strength": method.strengths[0],
        "note": method.note,
    }


def _reference(methods: dict[str, Method], timed: dict[str, Timing]) -> float:
    """Return the seconds of the nlnet family that the others are compared with."""
    for key, method in methods.items():
        if method.name == REFERENCE[method.kind]:
            return timed[key].seconds
    raise LookupError("no nlnet method among the measured ones")


def _share(key: str, picture: Picture, timing: Timing, rate: float) -> float | None:
    if key not in FAMILIES:
        return None
    return operations_per_pixel(FAMILIES[key]) * picture.pixels / timing.seconds / rate


def _per_pixel(peak: int | None, picture: Picture) -> float | None:
    return None if peak is None else peak / picture.pixels


def _mean(scores: Sequence[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return statistics.fmean(known) if known else None
