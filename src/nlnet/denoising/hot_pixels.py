"""Hot and dead pixels: isolated, and unlike every neighbor.

A lens spreads the light of a star over more than one pixel. So a pixel is hot only if those beside
it see nothing of the light that it claims to see.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, FloatArray
from nlnet.masks import Mask
from nlnet.noise.record import Noise
from nlnet.noise.stabilisation import even_out

_NOISE = 6.0
"""A hot pixel is further from its nearest neighbor than this many standard deviations of noise."""

_CONTRAST = 2.0
"""It is also further away than this many times the range of its neighbors: edges and texture."""

_LIGHT = 0.065
"""Pixels beside a hot pixel see less than this share of its light. Of a star that is one pixel
wide at half its height, they see twice as much."""

_BAND = 256
"""Rows that are looked at together."""

_BESIDE = ((-1, 0), (0, -1), (0, 1), (1, 0))
_AROUND = (*_BESIDE, (-1, -1), (-1, 1), (1, -1), (1, 1))

_Index = npt.NDArray[np.intp]


def find_hot_pixels(planes: Array, sigma: float | FloatArray, step: int = 1) -> Mask:
    """Find isolated pixels that differ from every neighbor by far more than noise does.

    Parameters
    ----------
    planes : (C, H, W) array
        Finite values. Where the noise grows with the brightness, stabilise it first.
    sigma : float or array
        Standard deviation of the noise; an array must broadcast to the shape of the planes.
    step : int
        Distance between neighbors of the same color: 1, or 2 in the mosaic of a Bayer sensor.

    Returns
    -------
    (C, H, W) array of bool
        True for hot pixels, which are too bright, and for dead ones, which are too dark.

    Examples
    --------
    >>> night = np.random.default_rng(0).normal(10.0, 1.0, (1, 32, 32))
    >>> night[0, 5, 7] += 50
    >>> np.argwhere(find_hot_pixels(night, sigma=1.0)).tolist()
    [[0, 5, 7]]
    """
    hot = np.zeros(planes.shape, np.bool_)
    for plane, noise, found in zip(planes, np.broadcast_to(sigma, hot.shape), hot, strict=True):
        for first in range(0, len(plane), _BAND):
            y, x = _candidates(plane, noise, first, step)
            lone = _is_lone(plane, noise[y, x], y, x, step)
            y, x = y[lone], x[lone]
            found[y, x] = _is_dark_beside(plane, y, x, step)
    return hot


def hot_pixels_of(planes: Array, noise: Noise) -> Mask:
    """Find hot pixels of an image, given its noise, in its units; (C, H, W).

    Examples
    --------
    >>> night = np.random.default_rng(0).normal(10.0, 1.0, (1, 32, 32))
    >>> night[0, 5, 7] += 50
    >>> int(hot_pixels_of(night, Noise.white(1.0)).sum())
    1
    """
    if noise.sigma is not None:
        return find_hot_pixels(planes, noise.sigma)
    return find_hot_pixels(even_out(planes, noise), 1.0)


def fill_hot_pixels(planes: Array, hot: Mask, step: int = 1) -> Array:
    """Return a copy of planes in which hot pixels have the median of their eight neighbors.

    Examples
    --------
    >>> spot = np.array([[[1, 1, 1], [1, 99, 1], [2, 2, 2]]])
    >>> fill_hot_pixels(spot, spot == 99).tolist()
    [[[1, 1, 1], [1, 1, 1], [2, 2, 2]]]
    """
    filled = planes.copy()
    for plane, found, result in zip(planes, hot, filled, strict=True):
        y, x = np.nonzero(found)
        result[y, x] = np.median(_neighbors(plane, y, x, _AROUND, step), axis=0)
    return filled


def _candidates(plane: Array, noise: Array, first: int, step: int) -> tuple[_Index, _Index]:
    """Return the pixels of a band that are far from the four neighbors beside them."""
    last = min(first + _BAND, len(plane))
    rows = plane[_mirrored(np.arange(first - step, last + step), len(plane))]
    columns = _mirrored(np.arange(-step, plane.shape[1] + step), plane.shape[1])
    padded = rows[:, columns].astype(np.result_type(plane, np.float32), copy=False)
    centre, inner = padded[step:-step, step:-step], slice(step, -step)
    ends = padded[: -2 * step, inner], padded[2 * step :, inner]
    sides = padded[inner, : -2 * step], padded[inner, 2 * step :]
    highest, lowest = (extreme.reduce((*ends, *sides)) for extreme in (np.maximum, np.minimum))
    gap = np.maximum(centre - highest, lowest - centre)
    y, x = np.nonzero(gap > _NOISE * noise[first:last])
    return y + first, x


def _is_lone(plane: Array, noise: Array, y: _Index, x: _Index, step: int) -> Mask:
    """Tell which pixels are far from all eight neighbors."""
    around = _neighbors(plane, y, x, _AROUND, step)
    highest, lowest = around.max(axis=0), around.min(axis=0)
    gap = np.maximum(plane[y, x] - highest, lowest - plane[y, x])
    return np.asarray(gap > np.maximum(_NOISE * noise, _CONTRAST * (highest - lowest)))


def _is_dark_beside(plane: Array, y: _Index, x: _Index, step: int) -> Mask:
    """Tell beside which pixels, whatever their color, nothing is seen of their light."""
    light = _light(plane, y, x, step)
    beside = np.mean([_light(plane, y + down, x + right, step) for down, right in _BESIDE], axis=0)
    return np.asarray(beside * np.sign(light) < _LIGHT * np.abs(light))


def _light(plane: Array, y: _Index, x: _Index, step: int) -> FloatArray:
    """Return how much brighter pixels are than their surroundings."""
    (here,) = _neighbors(plane, y, x, [(0, 0)], step)
    return np.asarray(here - np.median(_neighbors(plane, y, x, _AROUND, step), axis=0))


def _neighbors(
    plane: Array, y: _Index, x: _Index, places: Iterable[tuple[int, int]], step: int
) -> FloatArray:
    """Return the values of neighbors, (places, pixels); the plane is mirrored at its edges."""
    height, width = plane.shape
    return np.array(
        [
            plane[_mirrored(y + step * down, height), _mirrored(x + step * right, width)]
            for down, right in places
        ],
        np.float64,
    )


def _mirrored(places: _Index, size: int) -> _Index:
    """Return indices inside of an axis, mirrored at the first and last pixel: colors stay."""
    last = size - 1
    return np.asarray(np.clip(last - np.abs(last - np.abs(places)), 0, last))
