"""What the eye sees: how strong the noise of every place is, and of which kind.

The eye is a small network (`nlnet.network.eye`), trained on simulated pictures of everything that
cameras, films and microscopes do (`nlnet.training.eye`). For every square of 16x16 pixels it says
how strong the noise is at full, half and quarter size, in luma and in chroma, how far off each of
these may be, and which kind of noise it is. Here its answers become maps: squares are averaged by
how sure the eye is of them, and where it is unsure, squares of the same brightness tell.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nlnet.arrays import FloatArray
from nlnet.engine.tasks import look
from nlnet.network.eye import Eye, EyeConfig
from nlnet.network.layers import Layer
from nlnet.network.prepared import prepare_eye
from nlnet.noise.record import SCALES, Camera
from nlnet.noise.sample import Sample, tile_places

Maps = npt.NDArray[np.float32]

KINDS = ("none", "white", "poisson", "camera")
"""What the eye tells apart, in its order."""

_PIECE = 16
"""Cells along a side of the pieces that the engine works on, at most."""

_BLOCK = 4
"""Cells along a side of a square of the map."""

_BINS = 8
_PRIOR = 0.5
"""Bins of brightness, and the weight of what they tell, in cells per cell."""

_VARIATION = 2.0
"""Times that it must vary with the brightness in any way to be removed by maps."""

_FINE = 0.5
_NONE = 0.5
_OCTAVE = 1.35
"""If steps between values are finer than this share of what 8 bits have, noise is not improbable,
and at half the size it is not stronger than this times what white noise would have, it is not
correlated."""

_CALIBRATION = (1.17, 1.24)
"""Slope and shift that turn the eye's odds of no noise into how often there is none: fitted to
pictures that it was not trained on (`benchmarks.certainty`)."""

_DOUBTFUL = 0.35
"""Below this probability noise is taken for none."""

_ROUNDS = 6
_CLOSE = 0.3
"""Rounds of the fit of a line to the variance over the brightness; what is off by more than this
share counts for less."""

_ALIVE = 0.9
_NEARLY_NONE = 1e-5
"""Share of the pixels of a square that were not clipped, at least, for it to count; others have
next to no weight, but tell in an image that is clipped everywhere."""

_SEEN = (-255.0, 510.0)
"""Values that the eye sees, where most of the image is from 0 to 255: stars are cut off."""

_SPREADS = (-2.0, 2.0)
"""Bounds of the logarithm of how far off a value may be: a square that the eye is very sure of,
such as a clipped one, does not speak for the rest of the image."""


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """What the eye sees of an image.

    Parameters
    ----------
    strengths : (2, 3, h, w) array
        As of `nlnet.noise.record.Camera`, in the units of the image.
    odds : dict
        The probability of each of `KINDS`.
    line : (slope, foot)
        Variance of the noise over the brightness, on the scale of the sample.
    variation : float
        How many times stronger it is at the brightness where it is strongest than elsewhere.
    fine : bool
        Whether values are finer than those of 8 bits, and so cannot be from a lossy file.
    """

    strengths: Maps
    odds: dict[str, float]
    line: tuple[float, float]
    variation: float
    fine: bool

    @property
    def kind(self) -> str:
        """The most probable kind; "white" for any uncorrelated noise.

        Whether that is of photons, no single place tells, but how it grows with the brightness.
        """
        if self._is_uncorrelated:
            return "white"
        return "camera" if self.noisy > _DOUBTFUL else "none"

    @property
    def _is_uncorrelated(self) -> bool:
        uncorrelated = self.odds["white"] + self.odds["poisson"]
        if self.fine and self.odds["none"] < _NONE and self._octave < _OCTAVE:
            return True  # nothing has smoothed it: neither its spectrum nor a lossy file says so
        return uncorrelated > max(self.odds["none"], self.odds["camera"])

    @property
    def _octave(self) -> float:
        """How much stronger luma is at half the size than white noise would be."""
        full, half = self.strengths[0, :2].mean(axis=(1, 2))
        return float(2 * half / max(full, 1e-30))

    @property
    def varies(self) -> bool:
        """Whether the noise depends on the brightness in any way."""
        return self.variation > _VARIATION

    @property
    def certainty(self) -> float:
        """The probability that there is noise, or none if that is the kind."""
        return 1 - self.noisy if self.kind == "none" else self.noisy

    @property
    def noisy(self) -> float:
        """The probability that there is noise, as often right as it says (`_CALIBRATION`)."""
        slope, shift = _CALIBRATION
        none = min(max(self.odds["none"], 1e-6), 1 - 1e-6)
        return 1 / (1 + math.exp(shift + slope * math.log(none / (1 - none))))

    @property
    def sigma(self) -> float:
        """Standard deviation at the full size, on average over the image."""
        return float(self.strengths[0, 0].mean())

    def as_camera(self) -> Camera | None:
        """Return the noise as that of a camera; None if there is none."""
        if not self.sigma > 0:
            return None
        return Camera(self.strengths)


def see(sample: Sample) -> Seen | None:
    """Look at a sample of an image; None if all of its values are the same."""
    if sample.unit == 0:
        return None
    tiles = [np.clip(tile, *_SEEN) for tile in sample.scaled_tiles]
    cells = [
        _Cells.of(tile, maps, sample.scaled_limits)
        for tile, maps in zip(tiles, _look(tiles), strict=True)
    ]
    curve = _Curve(cells)
    values = _map_of(cells, curve, sample)  # (6, h, w)
    strengths = np.maximum(np.exp2(values) - 1, 0) * sample.unit
    if sample.shape[0] == 3:
        strengths *= math.sqrt(3)  # the luminance, a mean of three, has less noise than colors
    sides = np.exp2(np.arange(SCALES)).reshape(1, SCALES, 1, 1)
    maps = strengths.reshape(2, SCALES, *strengths.shape[1:]) / sides
    if sample.shape[0] == 1:
        maps[1] = maps[0]
    alive = [each.alive for each in cells]
    votes = [(each.logits * each.alive).sum(axis=(1, 2)) for each in cells]
    logits = np.sum(votes, axis=0) / np.sum([each.sum() for each in alive])
    odds = np.exp(logits - logits.max())
    shares = (odds / odds.sum()).tolist()
    kinds = dict(zip(KINDS, shares, strict=True))
    fine = sample.step < _FINE * sample.unit
    return Seen(maps.astype(np.float32), kinds, curve.line, curve.variation, fine)


class _Cells(NamedTuple):
    """The squares of a tile, (h, w): log2(1 + strength) and its weight, logits, brightness."""

    values: Maps  # (6, h, w)
    weights: Maps  # (6, h, w)
    logits: Maps  # (4, h, w)
    brightness: Maps  # (h, w)
    alive: Maps  # (h, w): 1, and next to nothing where pixels were clipped

    @classmethod
    def of(cls, tile: Maps, maps: Maps, limits: tuple[float, float]) -> _Cells:
        values, spreads, logits = np.split(maps[: 12 + len(KINDS)], (6, 12))
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


class _Curve:
    """Strength over brightness, from all cells of an image."""

    def __init__(self, cells: Sequence[_Cells]) -> None:
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


class _Squares(NamedTuple):
    """Weighted sums of the values of squares of cells, and the weights, both (6, h, w)."""

    sums: Maps
    weights: Maps

    @classmethod
    def of(cls, cells: _Cells, curve: _Curve, side: int) -> _Squares:
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


def _map_of(cells: Sequence[_Cells], curve: _Curve, sample: Sample) -> Maps:
    """Return a coarse map of the image, (6, h, w).

    An image that is one tile has a square for every few cells; else every tile is one.
    """
    if len(cells) == sample.pages:
        squares = [_Squares.of(each, curve, _BLOCK) for each in cells]
        sums, weights = (sum(parts) for parts in zip(*squares, strict=True))
        return _smooth(np.asarray(sums / weights))
    squares = [_Squares.of(each, curve, each.brightness.size) for each in cells]
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


def _look(tiles: Iterable[Maps]) -> list[Maps]:
    """Return what the eye says of tiles, (16, h, w) each: for every cell of 16x16 pixels.

    Tiles of any size are cut into equal pieces, which the engine's threads share; pieces overlap
    where they do not fit, and cells beyond the border are mirrored.
    """
    eye = prepare_eye(shipped_eye())
    answers = []
    for tile in tiles:
        cells = [-(-length // eye.unit) for length in tile.shape[1:]]
        padding = [
            (0, n * eye.unit - length) for n, length in zip(cells, tile.shape[1:], strict=True)
        ]
        padded = np.pad(tile, [(0, 0), *padding], mode="symmetric")
        sides = [-(-n // -(-n // _PIECE)) for n in cells]
        starts = [_starts(n, side) for n, side in zip(cells, sides, strict=True)]
        places = [(top, left) for top in starts[0] for left in starts[1]]
        pieces = np.stack([_cut(padded, place, sides, eye.unit) for place in places])
        whole = np.empty((eye.outputs, *cells), np.float32)
        for (top, left), maps in zip(places, look(eye, pieces), strict=True):
            whole[:, top : top + sides[0], left : left + sides[1]] = maps
        answers.append(whole)
    return answers


def _starts(count: int, side: int) -> list[int]:
    """Return where pieces of so many cells begin, so that they cover all."""
    return [min(first, count - side) for first in range(0, count, side)]


def _cut(padded: Maps, place: tuple[int, int], sides: Sequence[int], unit: int) -> Maps:
    (top, left), (height, width) = place, sides
    rows, columns = (
        slice(top * unit, (top + height) * unit),
        slice(left * unit, (left + width) * unit),
    )
    return padded[:, rows, columns]


@functools.cache
def shipped_eye() -> Eye:
    """Return the eye that is part of the package."""
    from safetensors.numpy import load

    content = (importlib.resources.files(__package__) / "eye.safetensors").read_bytes()
    return eye_from_tensors(load(content))


def eye_from_tensors(tensors: Mapping[str, npt.NDArray[np.floating]]) -> Eye:
    """Return an eye of the usual sizes from its weights and biases, by the names of layers."""
    config = EyeConfig(outputs=16)
    layers = (
        Layer(
            tensors[f"{spec.name}.weights"].astype(np.float32),
            tensors[f"{spec.name}.biases"].astype(np.float32),
        )
        for spec in config.layers
    )
    return Eye(config, tuple(layers))
