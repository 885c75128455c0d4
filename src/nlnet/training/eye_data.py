"""Pictures that the eye is trained on: rendered twice, with noise of two seeds.

Half the power of the difference of the two is the power of the noise, and of nothing else: what a
mosaic, an in-camera denoiser or an encoder does to the picture itself is the same in both.
"""

import dataclasses
from collections.abc import Generator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nlnet.network import color
from nlnet.noise.record import SCALES
from nlnet.noise.sample import Sample
from nlnet.training.simulation.means import BROADER
from nlnet.training.simulation.recipes import MARGIN, Recipe, draw_recipe
from nlnet.training.simulation.scenes import Photos
from nlnet.training.simulation.steps import Image

Planes = npt.NDArray[np.float32]

CELL = 16
"""Pixels of a place, along a side."""


_LEAST_NOISE = 0.25
"""Noise below this, in gray levels of 255, is none: rounding to 8 bits has more."""


@dataclasses.dataclass(frozen=True)
class EyeSettings:
    """How the eye is trained; each set of pictures serves `reuse` epochs.

    From step `clean_until` on, strengths are learned of noisy pictures alone: else each would be
    told lower by how probable it is that there is no noise, which the certainty allows for already.
    """

    steps: int = 24000
    clean_until: int = 16000
    batch: int = 32
    side: int = 128
    picture: int = 192
    pictures: int = 1500
    reuse: int = 16
    rate: float = 2e-3
    seed: int = 0


class Example(NamedTuple):
    """Two renderings of one picture, as opponent planes, and the noise of every place."""

    first: npt.NDArray[np.float16]  # (3, side, side)
    second: npt.NDArray[np.float16]
    strengths: Planes  # (6, side / 16, side / 16): luma at three scales, then chroma
    label: int
    gray: bool


def fill_of(image: Image) -> tuple[float, float]:
    """Return black and the unit that bring what the image fills to 0 to 255, as a sample does."""
    sample = Sample.of(image[np.newaxis] if image.ndim == 2 else np.moveaxis(image, -1, 0))
    return sample.measures.low, max(sample.unit, 1e-6)


def opponent(image: Image) -> Planes:
    """Return (H, W) or (H, W, 3) pixels as three opponent planes, of gray the last two are 0."""
    if image.ndim == 2:
        return np.stack([image, np.zeros_like(image), np.zeros_like(image)])
    return np.asarray(color.transform(np.moveaxis(image, -1, 0), color.OPPONENT), np.float32)


def strengths_of(first: Planes, second: Planes) -> Planes:
    """Return the standard deviation of the noise of every place: luma at 3 scales, then chroma.

    That of a scale is measured after averaging squares of 1, 2 and 4 pixels, times their side. All
    are equal for white noise; chroma is scaled for that.
    """
    difference = (first - second) / np.float32(np.sqrt(2))
    maps = []
    for weights in ((1.0, 0.0, 0.0), (0.0, 1 / 3, 4 / 9)):
        for scale in range(SCALES):
            side = 1 << scale
            means = _shrunk(np.moveaxis(difference, 0, -1), side)
            power = (np.square(means) @ np.array(weights, np.float32)) * side**2
            cells = _shrunk(power, CELL // side)
            around = cv2.blur(cells, (3, 3), borderType=cv2.BORDER_REFLECT)
            maps.append(np.sqrt(np.maximum(around, 0)))
    return np.stack(maps).astype(np.float32)


def _shrunk(image: Planes, times: int) -> Planes:
    """Return the means of squares of pixels."""
    share = 1 / times
    shrunk = cv2.resize(image, None, fx=share, fy=share, interpolation=cv2.INTER_AREA)
    return np.asarray(shrunk)


def make_example(photos: Photos, settings: EyeSettings, number: int) -> Example:
    """Draw and render the picture of a number."""
    rng = np.random.default_rng((settings.seed, number))
    side = settings.picture
    recipe = draw_recipe(photos, side + 2 * MARGIN, rng, means=BROADER)
    # People cut pictures: then the blocks of an encoder begin anywhere.
    top, left = rng.integers(MARGIN, size=2) if rng.random() < 0.5 else (0, 0)
    images = [
        recipe.render((settings.seed, number, each))[top : top + side, left : left + side]
        for each in (1, 2)
    ]
    black, unit = fill_of(images[0])
    # A picture fills more than a piece of it does, so that the true unit is somewhere between.
    share = 1.0 if recipe.kind == "photons" else float(rng.uniform())
    unit, black = unit**share, black * share
    first, second = (opponent((image - np.float32(black)) / np.float32(unit)) for image in images)
    limits = (-2000, 2000)  # of float16, far outside of what the eye tells apart
    strengths = strengths_of(first, second)
    return Example(
        np.clip(first, *limits).astype(np.float16),
        np.clip(second, *limits).astype(np.float16),
        strengths,
        _label(recipe, float(strengths.mean()) * unit),
        images[0].ndim == 2,
    )


def _label(recipe: Recipe, strength: float) -> int:
    """Return the kind of the noise, a place in `nlnet.engine.estimates.KINDS`."""
    if recipe.kind == "clean" or strength < _LEAST_NOISE:
        return 0
    if recipe.correlated:
        return 3
    return 2 if recipe.kind == "photons" else 1


_photos: Photos | None = None


def make_examples(folder: str, settings: EyeSettings, numbers: range) -> list[Example]:
    """Make the examples of some numbers."""
    global _photos  # decoded once per process
    if _photos is None:
        cv2.setNumThreads(1)
        _photos = Photos(folder)
    return [make_example(_photos, settings, number) for number in numbers]


class Batch(NamedTuple):
    """Crops: (B, 3, side, side) planes, (B, 6, h, w) strengths, kinds, and whether gray."""

    planes: Tensor
    strengths: Tensor
    labels: Tensor
    gray: Tensor


def draw_batch(examples: list[Example], settings: EyeSettings, rng: np.random.Generator) -> Batch:
    """Cut crops from random examples; they begin at multiples of a cell, and are turned."""
    planes, strengths, labels, gray = [], [], [], []
    for number in rng.integers(len(examples), size=settings.batch):
        example = examples[number]
        source = example.first if rng.random() < 0.5 else example.second
        rooms = (settings.picture - settings.side) // CELL + 1
        top, left = rng.integers(rooms, size=2)
        count = settings.side // CELL
        cut = source[:, top * CELL :, left * CELL :][:, : settings.side, : settings.side]
        cells = example.strengths[:, top : top + count, left : left + count]
        turns, flip = int(rng.integers(4)), bool(rng.integers(2))
        cut, cells = (np.rot90(each, turns, (1, 2)) for each in (cut, cells))
        if flip:
            cut, cells = cut[..., ::-1], cells[..., ::-1]
        planes.append(cut.astype(np.float32))
        strengths.append(np.ascontiguousarray(cells))
        labels.append(example.label)
        gray.append(example.gray)
    return Batch(
        torch.from_numpy(np.stack(planes)),
        torch.from_numpy(np.stack(strengths)),
        torch.tensor(labels),
        torch.tensor(gray),
    )


def example_sets(
    folder: str, settings: EyeSettings, first: int = 0
) -> Generator[list[Example], None, None]:
    """Yield one set of examples after another; the next is made meanwhile, by another process."""
    with ProcessPoolExecutor(1) as pool:

        def begin(number: int) -> Future[list[Example]]:
            numbers = range(number * settings.pictures, (number + 1) * settings.pictures)
            return pool.submit(make_examples, folder, settings, numbers)

        ahead = begin(first)
        while True:
            examples = ahead.result()
            first += 1
            ahead = begin(first)
            yield examples
