"""The test pictures of everyday noise: which they are, fixed by seeds before anything was trained.

They are made from photos that no training sees (`open/val` of the data folder). "known" has the
demosaicers, in-camera denoisers and encoders of the training, "unknown" has others (`HELD_BACK`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nlnet.arrays import Array
from nlnet.training.simulation.means import HELD_BACK, TRAINED
from nlnet.training.simulation.recipes import Recipe, draw_recipe
from nlnet.training.simulation.scenes import Photos, draw_cells, draw_phantom, draw_stars
from nlnet.training.simulation.steps import Encode, Photons

SIDE = 384
_EVERYDAY = (("camera", 0.75), ("grain", 0.25))


class Picture(NamedTuple):
    """A noisy file, what it should look like, and how it was made."""

    name: str
    noisy: Array
    truth: Array
    recipe: Recipe


def everyday(folder: Path, kinds: str, count: int = 100) -> Iterator[Picture]:
    """Yield photos as cameras save them, of the "known" or "unknown" kinds."""
    photos = Photos(folder)
    means, seed = (TRAINED, 101) if kinds == "known" else (HELD_BACK, 102)
    number = itertools.count()
    for index in range(count):
        recipe = None
        while recipe is None or not any(isinstance(step, Encode) for step in recipe.steps):
            rng = np.random.default_rng((seed, next(number)))
            recipe = draw_recipe(photos, SIDE, rng, kinds=_EVERYDAY, means=means)
        yield _picture(f"{kinds}-{index:03}", recipe, (seed, index))


def clean(folder: Path, count: int = 100) -> Iterator[Picture]:
    """Yield pictures without noise of all kinds, half of them JPEG."""
    photos = Photos(folder)
    for index in range(count):
        rng = np.random.default_rng((103, index))
        recipe = draw_recipe(photos, SIDE, rng, kinds=(("clean", 1.0),))
        yield _picture(f"clean-{index:03}", recipe, (103, index))


class Counts(NamedTuple):
    """A frame of photon counts: what was measured, the truth, and its noise in its own units."""

    name: str
    noisy: Array
    truth: Array
    gain: float
    read: float
    offset: float


def counts(folder: Path) -> Iterator[Counts]:
    """Yield frames over a grid of peak, offset, gain and dtype."""
    photos = Photos(folder)
    grid = itertools.product((20, 100, 1000), (0, 100), (1, 20), ("uint16", "float32"))
    for index, (peak, offset, gain, dtype) in enumerate(grid):
        rng = np.random.default_rng((104, index))
        drawn = (draw_cells, draw_stars, draw_phantom)[index % 4] if index % 4 < 3 else None
        scene = (
            photos.piece(SIDE, SIDE, rng).mean(axis=2) if drawn is None else drawn(SIDE, SIDE, rng)
        )
        read = 1.0 if offset else 0.0
        step = Photons(peak, read)
        photons, light = (step.apply(scene, each) * np.float32(peak / 255) for each in (rng, None))
        noisy, truth = gain * photons + offset, gain * light + offset
        if dtype == "uint16":
            noisy = np.clip(np.rint(noisy), 0, 65535)
        name = f"{peak} photons, offset {offset}, gain {gain}, {dtype}"
        yield Counts(name, noisy.astype(dtype), truth, gain, gain * read, offset)


def _picture(name: str, recipe: Recipe, seed: tuple[int, int]) -> Picture:
    noisy = np.clip(np.rint(recipe.render(seed)), 0, 255).astype(np.uint8)
    return Picture(name, noisy, np.clip(recipe.truth(), 0, 255), recipe)
