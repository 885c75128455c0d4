"""From what the eye says of cells, squares of 16x16 pixels, to maps of an image.

Cells are averaged by how sure the eye is of them. Where it is unsure, cells of the same brightness
tell, and how the noise depends on the brightness is a line over all cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nlnet.arrays import FloatArray
from nlnet.noise.sample import Sample, tile_places

Maps = npt.NDArray[np.float32]

_BLOCK = 4
"""Cells along a side of a square of the map."""

_BINS = 8
_PRIOR = 0.5
"""Bins of brightness, and the weight of what they tell, in cells per cell."""

_ROUNDS = 6
_CLOSE = 0.3
"""Rounds of the fit of a line to the variance over the brightness; what is off by more than this
share counts for less."""

_ALIVE = 0.9
_NEARLY_NONE = 1e-5
"""Share of the pixels of a square that were not clipped, at least, for it to count; others have
next to no weight, but tell in an image that is clipped everywhere."""

_SPREADS = (-2.0, 2.0)
"""Bounds of the logarithm of how far off a value may be: a square that the eye is very sure of,
such as a clipped one, does not speak for the rest of the image."""


class Cells(NamedTuple):
    """The squares of a tile, (h, w): log2(1 + strength) and its weight, logits, brightness."""

    values: Maps  # (6, h, w)
    weights: Maps  # (6, h, w)
    logits: Maps  # (4, h, w)
    brightness: Maps  # (h, w)
    alive: Maps  # (h, w): 1, and next to nothing where pixels were clipped

    @classmethod
    def of(cls, tile: Maps, maps: Maps, limits: tuple[float, float]) -> Cells:
        """Return the cells of a tile, given what the eye says of it and where noise was clipped."""
        values, spreads, logits = np.split(maps, (6, 12))
        luma = tile.mean(axis=0) if len(tile) == 3 else tile[0]
        inside = ((tile > limits[0]) & (tile < limits[1])).mean(axis=0, dtype=np.float32)
        alive = np.where(_means(inside, maps) > _ALIVE, np.float32(1), np.float32(_NEARLY_NONE))
        weights = alive * np.exp(-2 * np.clip(spreads, *_SPREADS))
        # The eye tells of a cell and those around it.
        brightness = _smooth(_means(luma, maps)[np.newaxis])[0]
        return cls(values, weights, logits, brightness, alive)


def _means(plane: Maps, maps: Maps) -> Maps:
    """Return the means over cells; those beyond the border have what is inside."""
    rows, columns = (np.arange(count) * 16 for count in maps.shape[1:])
    rows, columns = (
        np.minimum(at, n - 1) for at, n in zip((rows, columns), plane.shape, strict=True)
    )
    sums = np.add.reduceat(np.add.reduceat(plane, columns, axis=1), rows, axis=0)
    heights = np.diff(rows, append=plane.shape[0])
    widths = np.diff(columns, append=plane.shape[1])
    return np.asarray(sums / np.outer(np.maximum(heights, 1), np.maximum(widths, 1)), np.float32)


class Curve:
    """Strength over brightness, from all cells of an image."""

    def __init__(self, cells: Sequence[Cells]) -> None:
        brightness = np.concatenate([each.brightness.ravel() for each in cells])
        values, weights = (
            np.concatenate([getattr(each, name).reshape(6, -1) for each in cells], axis=1)
            for name in ("values", "weights")
        )
        low, high = np.percentile(brightness, (2, 98))
        self._places = np.linspace(low, high, _BINS)
        width = max(float(high - low) / _BINS, 1e-3)
        near = np.exp(-0.5 * ((brightness - self._places[:, np.newaxis]) / width) ** 2)
        # A bin without cells has what all cells tell.
        total = weights.sum(axis=1, keepdims=True)
        mean = (weights * values).sum(axis=1, keepdims=True) / total
        few = 0.05 * total / _BINS
        self._values = ((weights * values) @ near.T + few * mean) / (weights @ near.T + few)
        self.line = _fit_line(brightness, np.square(np.exp2(values[0]) - 1), weights[0])

    @property
    def variation(self) -> float:
        """How many times stronger luma's noise is at most than at least."""
        return float(self._luma.max() / self._luma.min())

    @property
    def _luma(self) -> Maps:
        return np.asarray(np.maximum(np.exp2(self._values[0]) - 1, 1e-3))

    def at(self, brightness: Maps) -> Maps:
        """Return the values, (6, h, w), at some brightness."""
        return np.stack([np.interp(brightness, self._places, values) for values in self._values])


def _fit_line(brightness: Maps, variance: Maps, weights: Maps) -> tuple[float, float]:
    """Return slope and foot of the variance over the brightness."""
    design = np.stack([brightness, np.ones_like(brightness)], axis=1)
    least = 1e-2 * float(np.average(variance, weights=weights)) + 1e-9
    fitted: FloatArray = np.maximum(variance, least)
    line: FloatArray = np.zeros(2)
    for _ in range(_ROUNDS):
        away = np.abs(variance - fitted) / fitted
        root = np.sqrt(weights / np.maximum(1, away / _CLOSE)) / fitted
        line = np.linalg.lstsq(design * root[:, np.newaxis], variance * root, rcond=None)[0]
        fitted = np.maximum(design @ line, least)
    return float(line[0]), float(line[1])


class Squares(NamedTuple):
    """Weighted sums of the values of squares of cells, and the weights, both (6, h, w)."""

    sums: Maps
    weights: Maps

    @classmethod
    def of(cls, cells: Cells, curve: Curve, side: int) -> Squares:
        """Sum over squares of `side` cells; what the brightness tells counts a little, too."""
        prior = cells.weights.mean(axis=(1, 2), keepdims=True) * np.float32(_PRIOR)
        weights = cells.weights + prior
        values = cells.weights * cells.values + prior * curve.at(cells.brightness)
        rows, columns = (np.arange(0, count, side) for count in values.shape[1:])
        return cls(
            *(
                np.add.reduceat(np.add.reduceat(each, rows, axis=1), columns, axis=2)
                for each in (values, weights)
            )
        )


def map_of(cells: Sequence[Cells], curve: Curve, sample: Sample) -> Maps:
    """Return a coarse map of the image, (6, h, w).

    An image that is one tile has a square for every few cells; else every tile is one.
    """
    if len(cells) == sample.pages:
        squares = [Squares.of(each, curve, _BLOCK) for each in cells]
        sums, weights = (sum(parts) for parts in zip(*squares, strict=True))
        return _smooth(np.asarray(sums / weights))
    squares = [Squares.of(each, curve, each.brightness.size) for each in cells]
    rows = len({place[1].start for place in tile_places(sample.shape, sample.pages)})
    sums, weights = (
        np.stack([part.ravel() for part in parts], axis=1)  # (6, tiles)
        .reshape(6, sample.pages, rows, -1)
        .sum(axis=1)
        for parts in zip(*squares, strict=True)
    )
    return _smooth(sums / weights)


def _smooth(maps: Maps) -> Maps:
    """Return maps after an average with the squares around, by 1/4, 1/2 and 1/4 each way."""
    for axis in (1, 2):
        padding = [(1, 1) if axis == each else (0, 0) for each in range(3)]
        wide = np.moveaxis(np.pad(maps, padding, mode="edge"), axis, 0)
        around = np.asarray((wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4, np.float32)
        maps = np.moveaxis(around, 0, axis)
    return maps
