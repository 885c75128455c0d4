"""Noise against texture: ``python -m benchmarks.texture``, the constants of correlated noise.

Fits what tells correlated noise from texture (`nlnet.noise.correlation`) to the images of BSDS500's
`train`: without noise, gray and in color, and photographed by cameras drawn at random, at their own
size and enlarged, for photos are softer than these images. Then counts the errors of the constants
in the code on `test`, which nothing was fitted to: images without noise that would be changed, and
photos whose noise is missed or found to be far too strong. A minute for each hundred images.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyvips

from benchmarks.camera import Camera
from benchmarks.pictures import find_data
from nlnet.arrays import Array
from nlnet.evaluation.datasets import list_images, read_clean
from nlnet.noise import correlation
from nlnet.noise.blocks import halve
from nlnet.noise.deciding import decide_noise
from nlnet.noise.estimation import _Sample
from scripts.markdown import format_table

ENLARGED = (2.0, 3.0)
_WEAK = 2.5
_GROWS = 1.25
"""Noise below this, or that grows less at half the size, is not fitted: there is none to find."""

_PENALTY = 0.01


@dataclasses.dataclass(frozen=True)
class Case:
    """What is measured in an image, what is decided, and the true noise in gray at each scale."""

    kind: str
    flatness: correlation.Flatness
    found: float
    truth: float
    growth: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, check and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.texture", description=__doc__)
    parser.add_argument("--count", type=int, help="images of each part (default: all)")
    options = parser.parse_args(arguments)
    data = find_data()
    if data is None:
        print("There is no data folder: set NLNET_SHARED.", file=sys.stderr)
        return 2
    for part in ("train", "test"):
        cases = list(measure(list_images(data / "bsds500" / part)[: options.count]))
        if part == "train":
            weights = fit(cases)
            print("fitted: softness {:.2f}, degrees {:.3f}, offset {:.1f}".format(*weights))
        print(f"\n{part}, with the constants of the code:\n\n{errors(cases)}")
    return 0


def measure(paths: Sequence[Path]) -> Iterator[Case]:
    """Measure every image without noise, and as a simulated photo; image i has the seed i."""
    for seed, path in enumerate(paths):
        rng = np.random.default_rng(seed)
        picture = read_clean(path, 3)
        yield _case("gray", *[read_clean(path, 1)] * 2)
        yield _case("color", *[picture] * 2)
        yield _case("photo", *_shoot(picture, rng))
        large = _enlarge(picture, ENLARGED[seed % 2])
        yield _case("enlarged", large, large)
        yield _case("enlarged photo", *_shoot(large, rng))


def _shoot(picture: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    shot = Camera.draw(rng).shoot(np.moveaxis(picture, -1, 0), rng)
    noisy, clean = (np.moveaxis(planes, 0, -1) for planes in shot)
    return np.rint(noisy).astype(np.uint8), clean


def _enlarge(picture: Array, factor: float) -> Array:
    """Return the middle of an enlarged picture, about as large as it was."""
    image: Any = pyvips.Image.new_from_array(np.ascontiguousarray(picture, np.uint8))
    large = np.asarray(image.resize(factor, kernel="cubic").numpy())
    top, left = ((size - 480) // 2 for size in large.shape[:2])
    return large[top : top + 480, left : left + 480]


def _case(kind: str, noisy: Array, clean: Array) -> Case:
    planes = np.moveaxis(np.atleast_3d(noisy), -1, 0)
    flatness = _Sample(planes).flatness()
    assert flatness is not None
    noise = decide_noise(planes, 255.0, None, None)
    gray = (np.atleast_3d(noisy) - np.atleast_3d(clean).astype(np.float64)).mean(axis=-1)
    strength = math.sqrt(len(planes)) * float(gray.std())
    growth = 2 * float(halve(gray).std()) / max(float(gray.std()), 1e-9)
    found = noise.sigma or 0.0
    return Case(kind, flatness, found if noise.kind == "camera" else 0.0, strength, growth)


def fit(cases: Sequence[Case]) -> tuple[float, float, float]:
    """Return the weights of softness and degrees, and the offset, of a logistic regression."""
    rows, answers = [], []
    for case in cases:
        noisy = case.truth > _WEAK and case.growth > _GROWS
        if noisy or case.kind in ("gray", "color"):
            softness = min(case.flatness.softness, correlation._SOFTEST)
            rows.append([softness, case.flatness.degrees])
            answers.append(float(noisy))
    table, answer = np.array(rows), np.array(answers)
    center, spread = table.mean(axis=0), table.std(axis=0)
    design = np.column_stack([(table - center) / spread, np.ones(len(table))])
    weights = np.zeros(3)
    for _ in range(50):  # Newton's method
        probability = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (probability - answer) / len(answer) + _PENALTY * weights
        curvature = (design.T * (probability * (1 - probability))) @ design / len(answer)
        weights -= np.linalg.solve(curvature + _PENALTY * np.eye(3), slope)
    scaled = weights[:2] / spread
    return float(scaled[0]), float(scaled[1]), float(weights[2] - scaled @ center)


def errors(cases: Sequence[Case]) -> str:
    """Return a table of what is changed, missed and overdone."""
    rows = []
    for kind in dict.fromkeys(case.kind for case in cases):
        chosen = [case for case in cases if case.kind == kind]
        noisy = [case for case in chosen if case.truth > _WEAK and case.growth > _GROWS]
        ratios = [case.found / case.truth for case in noisy if case.found]
        rows.append(
            [
                kind,
                str(len(chosen)),
                str(sum(case.found > 0 for case in chosen)),
                str(sum(case.found > 3.5 for case in chosen)),
                f"{len(ratios)} of {len(noisy)}" if noisy else "",
                " ".join(f"{x:.2f}" for x in np.quantile(ratios, (0.1, 0.5, 0.9, 1)))
                if ratios
                else "",
            ]
        )
    return format_table(
        ["images", "number", "changed", "above 3.5", "noise found", "found / true, quantiles"], rows
    )


if __name__ == "__main__":
    sys.exit(main())
