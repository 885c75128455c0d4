"""Are error maps right? ``python -m benchmarks.error_maps`` measures it, for docs/error_maps.md.

For each set of images: the share of all pixels whose error is within the predicted one, and the
same for each tenth of the pixels in the order of the predicted error. 68.3 % would be perfect. Then
flat images of noise alone, and how long error maps take.
"""

from __future__ import annotations

import functools
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nlnet
from benchmarks.machine import describe_run
from benchmarks.pictures import PROJECT, bsd68_paths, require_data
from nlnet.arrays import Array
from nlnet.atomic import write_atomically
from nlnet.evaluation.datasets import read_clean
from nlnet.images import read_image
from nlnet.training.simulation.scenes import Photos
from scripts.error_head import draw_case
from scripts.markdown import format_table, insert_block

PAGE = PROJECT / "docs" / "error_maps.md"
OUTPUT = PROJECT / "docs" / "results" / "error_maps.json"
CASES = 50
KINDS = {1: "gray", 3: "color"}
Pair = tuple[Array, Array]


def within(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the shares of pixels within their predicted error, in percent, from (e, predicted)."""
    actual, predicted = (
        np.concatenate([p.ravel() for p in each]) for each in zip(*pairs, strict=True)
    )
    inside = (np.abs(actual) <= predicted)[np.argsort(predicted)]
    tenths = [100 * float(part.mean()) for part in np.array_split(inside, 10)]
    ratio = float(np.sqrt(np.mean(np.square(actual)) / np.mean(np.square(predicted))))
    return {"all": 100 * float(inside.mean()), "tenths": tenths, "rms": ratio}


def compared(noisy: Array, truth: Array, **options: Any) -> Pair:
    """Return the error of every pixel and the predicted one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        denoised, error = nlnet.denoise(noisy, error=True, data_range=255, **options)
    return denoised.astype(np.float32) - truth, error


def simulated(kind: str) -> Iterator[Pair]:
    """Yield pieces of open photos that nothing was trained on."""
    photos = Photos(require_data() / "open" / "val")
    for number in range(CASES):
        case = draw_case(photos, kind, np.random.default_rng((1, number)), 256, grain=0.0)
        yield compared(case.noisy, case.truth, noise=case.noise, quality=case.quality)


def bsd68(channels: int) -> Iterator[Pair]:
    """Yield BSD68 with white noise, by the protocol, sigma 15, 25 and 50 in turn."""
    for number, path in enumerate(bsd68_paths(KINDS[channels], require_data())):
        clean = read_clean(path, channels)
        sigma = (15, 25, 50)[number % 3]
        rng = np.random.default_rng(number)
        noisy = (clean + sigma * rng.standard_normal(clean.shape)).astype(np.float32)
        yield compared(noisy, clean, sigma=sigma)


def real(folder: str, step: int, frames: float) -> Iterator[Pair]:
    """Yield real noise, found by default."""
    for path in sorted((require_data() / "real" / folder / "noisy").iterdir())[::step]:
        truth = read_image(path.parents[1] / "clean" / path.name).pixels.astype(np.float32)
        noisy = read_image(path).pixels
        actual, predicted = compared(noisy, truth)
        # The truth is a mean of frames, and has noise of its own.
        left = nlnet.estimate_noise(noisy, data_range=255).levels[0].sigma(truth) / frames**0.5
        yield actual, np.hypot(predicted, left)


SETS: dict[str, Callable[[], Iterator[Pair]]] = {
    "open photos, white noise": functools.partial(simulated, "white"),
    "open photos, photon noise": functools.partial(simulated, "photons"),
    "open photos, simulated cameras and film": functools.partial(simulated, "camera"),
    "BSD68, gray, white noise": functools.partial(bsd68, 1),
    "BSD68, color, white noise": functools.partial(bsd68, 3),
    "microscopes": functools.partial(real, "microscopy", 1, 50),
    "photos of real cameras": functools.partial(real, "photos", 4, math.inf),
}


def flat(quality: str, channels: int) -> dict[str, float]:
    """Return how high false bumps get in noise of 25 alone, and what the error map says of them."""
    truth = np.full((512, 512, channels), 128, np.float32).squeeze()
    noisy = (truth + 25 * np.random.default_rng(0).standard_normal(truth.shape)).astype(np.float32)
    actual, predicted = compared(noisy, truth, sigma=25, quality=quality)
    ratio = np.abs(actual) / predicted
    return {
        "rms": float(np.sqrt(np.mean(np.square(actual)))) / 25,
        "highest": float(np.abs(actual).max()) / 25,
        "predicted": float(predicted.mean()) / 25,
        "within": 100 * float((ratio <= 1).mean()),
        "within 3": 100 * float((ratio <= 3).mean()),
    }


def times(quality: str, channels: int) -> float:
    """Return how many times longer denoising takes with its error map."""
    path = bsd68_paths(KINDS[channels], require_data())[0]
    noisy = read_clean(path, channels).astype(np.float32)
    run = functools.partial(nlnet.denoise, noisy, 25, quality=quality, data_range=255)
    plain, both = [], []
    for _ in range(25):
        begin = time.perf_counter()
        run()
        middle = time.perf_counter()
        run(error=True)
        plain.append(middle - begin)
        both.append(time.perf_counter() - middle)
    return min(both) / min(plain)  # the least disturbed of each


def main() -> int:
    """Measure, write and print."""
    record: dict[str, Any] = describe_run() | {"sets": {}}
    for name, pairs in SETS.items():
        record["sets"][name] = within(list(pairs()))
        print(name, record["sets"][name], flush=True)
    ways = [(quality, channels) for channels in (1, 3) for quality in ("fast", "best")]
    names = [f"{KINDS[channels]}, {quality}" for quality, channels in ways]
    record["flat"] = {name: flat(*way) for name, way in zip(names, ways, strict=True)}
    record["times"] = {name: times(*way) for name, way in zip(names, ways, strict=True)}
    print(record["flat"], record["times"])
    write_atomically(OUTPUT, (json.dumps(record, indent=1) + "\n").encode())
    write_page(PAGE, record)
    return 0


def write_page(page: Path, record: dict[str, Any]) -> None:
    """Write the tables into the page."""
    sets = [
        [name, f"{found['all']:.0f}", *(f"{tenth:.0f}" for tenth in found["tenths"])]
        for name, found in record["sets"].items()
    ]
    heads = ["pixels within their error, in %", "all", *(f"{n}." for n in range(1, 11))]
    text = insert_block(page.read_text(), "calibration", format_table(heads, sets))
    bumps = [
        [
            name,
            *(f"{found[key]:.2f}" for key in ("rms", "highest", "predicted")),
            *(f"{found[key]:.1f}" for key in ("within", "within 3")),
            f"{record['times'][name]:.2f}",
        ]
        for name, found in record["flat"].items()
    ]
    heads = ["", "error", "highest bump", "predicted error", "within it", "within 3", "time"]
    page.write_text(insert_block(text, "flat", format_table(heads, bumps)))


if __name__ == "__main__":
    sys.exit(main())
