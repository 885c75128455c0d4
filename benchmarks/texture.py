"""Noise against texture: ``python -m benchmarks.texture``, the constants of correlated noise.

Fits what tells correlated noise from texture (`nlnet.noise.correlation`) to the images of BSDS500's
`train`: without noise, gray and in color, and photographed by cameras drawn at random; at their own
size, and enlarged, for photos are softer than these images; some of these cameras remove noise
where the picture is flat. Then counts the errors of the constants in the code on `test`, which
nothing was fitted to: images without noise that would be changed, and photos whose noise is missed
or found to be far too strong. Several minutes for each hundred images.
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

from benchmarks.camera import Camera, jpeg
from benchmarks.pictures import find_data
from nlnet.arrays import Array
from nlnet.evaluation.datasets import list_images, read_clean
from nlnet.noise.blocks import halve
from nlnet.noise.correlation import Flatness
from nlnet.noise.deciding import decide_noise
from nlnet.noise.estimation import _Sample
from scripts.markdown import format_table

ENLARGED = (1.3, 6.0)
"""Least and largest factor by which pictures are enlarged."""

_SIDE = 480
"""Side of an enlarged picture."""

_WEAK = 2.5
_GROWS = 1.25
"""Noise below this, or that grows less at half the size, is not fitted: there is none to find."""

_MOST = 6.0
"""An image weighs as much as there is to gain or lose: its noise, but no more than this."""

_PENALTY = 0.003


@dataclasses.dataclass(frozen=True)
class Case:
    """What is measured in an image, what is decided, and the true noise in gray at each scale."""

    kind: str
    flatness: Flatness
    found: float
    truth: float
    growth: float

    @property
    def noisy(self) -> bool:
        """Whether there is noise to find."""
        return self.truth > _WEAK and self.growth > _GROWS


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
            names = ("softness", "degrees", "color", "dependence", "offset")
            weights = zip(names, fit(cases), strict=True)
            print("fitted:", ", ".join(f"{name} {weight:.3g}" for name, weight in weights))
        print(f"\n{part}, with the constants of the code:\n\n{errors(cases)}")
    return 0


def measure(paths: Sequence[Path]) -> Iterator[Case]:
    """Measure every image without noise, and as a simulated photo; image i has the seed i."""
    for seed, path in enumerate(paths):
        rng = np.random.default_rng(seed)
        picture = read_clean(path, 3)
        yield _case("gray", *[read_clean(path, 1)] * 2)
        yield _case("color", *[picture] * 2)
        yield _case("photo", *_bytes(*Camera.draw(rng).shoot(_planes(picture), rng)))
        noisy, clean, saved = shoot_enlarged(picture, rng)
        yield _case("enlarged", *[saved] * 2)
        yield _case("enlarged photo", noisy, clean)


def shoot_enlarged(picture: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Enlarge a picture, and take a photo of it.

    Returns the photo, what it would be without noise, and the latter as a file would have it: every
    other photo was saved a second time, smaller.
    """
    large = _enlarge(picture, math.exp(rng.uniform(*np.log(ENLARGED))), rng)
    camera = Camera.draw(rng)
    if rng.random() < 0.5:
        camera = dataclasses.replace(camera, cleaning=float(rng.uniform(0, 0.85)))
    noisy, clean = camera.shoot(_planes(large), rng)
    saved = clean
    if rng.random() < 0.5:
        quality = int(rng.integers(70, 97))
        noisy, saved = (jpeg(planes, quality, subsampling=True) for planes in (noisy, clean))
    noisy_pixels, clean_pixels = _bytes(noisy, clean)
    return noisy_pixels, clean_pixels, _bytes(saved, clean)[0]


def _planes(picture: Array) -> Array:
    return np.moveaxis(picture, -1, 0)


def _bytes(noisy: Array, clean: Array) -> tuple[Array, Array]:
    """Return (H, W, C) pixels, those of the photo as bytes."""
    return np.rint(np.moveaxis(noisy, 0, -1)).astype(np.uint8), np.moveaxis(clean, 0, -1)


def _enlarge(picture: Array, factor: float, rng: np.random.Generator) -> Array:
    """Return a part of an enlarged picture, about as large as the whole was."""
    image: Any = pyvips.Image.new_from_array(np.ascontiguousarray(picture, np.uint8))
    large = np.asarray(image.resize(factor, kernel="cubic").numpy())
    top, left = (int(rng.integers(max(size - _SIDE, 0) + 1)) for size in large.shape[:2])
    return large[top : top + _SIDE, left : left + _SIDE]


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


def fit(cases: Sequence[Case]) -> list[float]:
    """Return the weights of the evidence, and the offset, of a logistic regression."""
    chosen = [case for case in cases if case.noisy or "photo" not in case.kind]
    table = np.array([dataclasses.astuple(case.flatness.evidence) for case in chosen])
    answer = np.array([float(case.noisy) for case in chosen])
    trust = np.array([min(case.truth or case.flatness.levels[0], _MOST) for case in chosen])
    for part in (answer == 0, answer == 1):
        trust[part] /= 2 * trust[part].sum()
    center, spread = table.mean(axis=0), table.std(axis=0)
    design = np.column_stack([(table - center) / spread, np.ones(len(table))])
    weights = np.zeros(design.shape[1])
    for _ in range(50):  # Newton's method
        probability = 1 / (1 + np.exp(-design @ weights))
        slope = design.T @ (trust * (probability - answer)) + _PENALTY * weights
        curvature = (design.T * (trust * probability * (1 - probability))) @ design
        weights -= np.linalg.solve(curvature + _PENALTY * np.eye(len(weights)), slope)
    scaled = weights[:-1] / spread
    return [*scaled.tolist(), float(weights[-1] - scaled @ center)]


def errors(cases: Sequence[Case]) -> str:
    """Return a table of what is changed, missed and overdone."""
    rows = []
    for kind in dict.fromkeys(case.kind for case in cases):
        chosen = [case for case in cases if case.kind == kind]
        noisy = [case for case in chosen if case.noisy]
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
