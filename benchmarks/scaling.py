"""Megapixels a second and core with dask, and how that grows with workers and with chunks.

``python -m benchmarks.scaling``: clusters of 1, 2, 4, ... processes on this machine, each with one
thread and with as many pixels as every other; then chunks of several sizes, whose halo costs the
more the smaller they are. It takes about two minutes on two cores, and prints the tables of
``docs/dask.md``. Stop everything else first.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

import nlnet
import nlnet.dask
from benchmarks.machine import describe_run
from benchmarks.report import format_table, write_json
from nlnet.parallel import available_cpus

RESULTS = Path(__file__).resolve().parent / "results" / "scaling.json"
SIDE = 2040
"""The side of the blocks that `nlnet denoise` cuts for 5x5 patches: 12 times their reach."""

SIDES = (510, 1020, 2040)
MODELS = {"gray-5x5": 1, "gray-7x7": 1, "color-5x5": 3}
SIGMA = 25.0


def main() -> None:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description="Measure dask on clusters of this machine."
    )
    parser.add_argument("--workers", type=int, default=available_cpus(), help="at most (all CPUs)")
    parser.add_argument("--side", type=int, default=SIDE, help=f"of a worker's image ({SIDE})")
    parser.add_argument("--repeats", type=int, default=1, help="the median is reported (1)")
    parser.add_argument("--json", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    run = describe_run()
    workers = measure_workers(arguments.workers, arguments.side, arguments.repeats)
    chunks = measure_chunks(arguments.side, arguments.repeats)
    print(
        format_table(
            [
                "model",
                "workers",
                "MP",
                "s",
                "pixels worked on",
                "MP/s",
                "MP/s a core",
                "efficiency",
            ],
            map(_cells, workers),
        )
    )
    print()
    header = ["chunks", "pixels worked on", "MP/s a core"]
    print(
        format_table(
            header,
            [
                (f"{row['side']}x{row['side']}", f"{row['work']:.2f}x", f"{row['rate']:.3f}")
                for row in chunks
            ],
        )
    )
    report = {**run, "side": arguments.side, "repeats": arguments.repeats}
    write_json({**report, "workers": workers, "chunks": chunks}, arguments.json)


def measure_workers(most: int, side: int, repeats: int) -> list[dict[str, Any]]:
    """Denoise an image a worker, in one chunk each: twice the workers, twice the pixels."""
    rows: list[dict[str, Any]] = []
    counts = [2**power for power in range(most.bit_length()) if 2**power <= most]
    for count in counts:
        with _cluster(count) as client:
            for model, channels in MODELS.items():
                array = _noisy((side, side * count), (side, side), channels)
                seconds = _time(client, array, model, repeats)
                megapixels = side * side * count / 1e6
                rate = megapixels / seconds
                work = _work(array, model)
                first = next((row for row in rows if row["model"] == model), None)
                # Halos are work as well: one chunk has none.
                busy = rate * work / count
                share = 1.0 if first is None else busy / (first["rate"] * first["work"])
                rows.append(
                    {
                        "model": model,
                        "workers": count,
                        "megapixels": megapixels,
                        "seconds": seconds,
                        "work": work,
                        "rate": rate,
                        "rate_a_core": rate / count,
                        "efficiency": share,
                    }
                )
    return rows


def measure_chunks(side: int, repeats: int) -> list[dict[str, Any]]:
    """Denoise one image in chunks of several sizes, by one worker."""
    rows = []
    with _cluster(1) as client:
        for chunk in SIDES:
            array = _noisy((side, side), (chunk, chunk), 1)
            seconds = _time(client, array, "gray-5x5", repeats)
            rows.append(
                {
                    "side": chunk,
                    "work": _work(array, "gray-5x5"),
                    "seconds": seconds,
                    "rate": side * side / 1e6 / seconds,
                }
            )
    return rows


def _work(array: da.Array, model: str) -> float:
    """Return how many pixels are worked on, halos included, for each pixel of the image."""
    reach = nlnet.load_model(f"{model}-s25").config.reach
    share = 1.0
    for lengths in array.chunks[:2]:
        ends = [0, *itertools.accumulate(lengths)]
        padded = sum(
            min(last + reach, ends[-1]) - max(first - reach, 0)
            for first, last in itertools.pairwise(ends)
        )
        share *= padded / ends[-1]
    return share


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["model"],
        str(row["workers"]),
        f"{row['megapixels']:.1f}",
        f"{row['seconds']:.1f}",
        f"{row['work']:.2f}x",
        f"{row['rate']:.3f}",
        f"{row['rate_a_core']:.3f}",
        f"{row['efficiency']:.2f}",
    )


@contextmanager
def _cluster(count: int) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, dashboard_address=None, memory_limit=0
        ) as cluster,
        Client(cluster) as client,
    ):
        client.run(_warm_up)
        yield client


def _warm_up() -> None:
    """Load everything before the clock starts."""
    for model, channels in MODELS.items():
        shape = (64, 64) if channels == 1 else (64, 64, channels)
        nlnet.denoise(np.full(shape, 128, np.uint8), SIGMA, model=model, threads=1)


def _noisy(shape: tuple[int, int], chunks: tuple[int, int], channels: int) -> da.Array:
    """Noise on a gray area, as float32, made where it is denoised."""
    whole = (*shape, channels) if channels > 1 else shape
    pieces = (*chunks, channels) if channels > 1 else chunks
    values = da.random.default_rng(0).standard_normal(whole, chunks=pieces, dtype=np.float32)
    return values * np.float32(SIGMA) + np.float32(128)


def _time(client: Client, array: da.Array, model: str, repeats: int) -> float:
    # In memory before the clock starts; afterwards a sum, so that no pixels travel.
    held = client.persist(array)
    client.compute(held.sum()).result()
    times = []
    for _ in range(repeats):
        denoised = nlnet.dask.denoise(held, SIGMA, model=model, data_range=255)
        start = time.perf_counter()
        client.compute(denoised.sum()).result()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    main()
