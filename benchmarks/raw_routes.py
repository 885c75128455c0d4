"""Ways to denoise a Bayer mosaic whose noise has been stabilised to a standard deviation of 1.

One is shipped (`nlnet.raw.mosaic`), the others are what it is compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

import nlnet
from benchmarks.raw_camera import WHITE_BALANCE, Floats
from nlnet.model.loading import select_model
from nlnet.network.color import OPPONENT

Route = Callable[[Floats], Floats]

_ROOTS = tuple(math.sqrt(factor) for factor in WHITE_BALANCE)
_ORTHONORMAL = OPPONENT / np.linalg.norm(OPPONENT, axis=1, keepdims=True)


def four_gray_planes(mosaic: Floats) -> Floats:
    """Denoise each of the four half-size planes as a gray image."""
    return _join([_denoise(plane, 1.0) for plane in _split(mosaic)])


def one_gray_image(mosaic: Floats) -> Floats:
    """Denoise the mosaic as it is, white-balanced so that gray areas have no pattern."""
    factors = np.array([[_ROOTS[0], 1], [1, _ROOTS[2]]])
    scale = np.tile(factors, (mosaic.shape[0] // 2, mosaic.shape[1] // 2))
    return _denoise(mosaic * scale, math.sqrt(np.mean(factors**2))) / scale


def two_color_images(mosaic: Floats) -> Floats:
    """Denoise red, blue and either green as half-size color images; average red and blue."""
    red, green, other, blue = _split(mosaic)
    first = _denoise(np.stack([red, green, blue]), 1.0)
    second = _denoise(np.stack([red, other, blue]), 1.0)
    means = (first + second) / 2
    return _join([means[0], first[1], second[1], means[2]])


def quads(mosaic: Floats) -> Floats:
    """Rotate each 2x2 quad so that gray objects have no color; denoise three parts of it in color.

    The rotation leaves the noise white. The fourth part, the difference of the greens, is denoised
    as a gray image.
    """
    red, green, other, blue = _split(mosaic)
    parts = np.tensordot(_quad_basis(), np.stack([red, green, other, blue]), 1)
    color = np.tensordot(_ORTHONORMAL.T, parts[[0, 2, 3]], 1)
    brightness, first, second = np.tensordot(_ORTHONORMAL, _denoise(color, 1.0), 1)
    difference = _denoise(parts[1], 1.0)
    restored = np.stack([brightness, difference, first, second])
    return _join(list(np.tensordot(_quad_basis().T, restored, 1)))


def shifted_quads(mosaic: Floats) -> Floats:
    """Average `quads` over the four ways to divide the mosaic into them."""
    total = np.zeros_like(mosaic)
    for down in (0, 1):
        for right in (0, 1):
            padded = np.pad(mosaic, ((down, down), (right, right)), mode="reflect")
            restored = _turned(quads(_turned(padded, down, right)), down, right)
            height, width = padded.shape
            total += restored[down : height - down, right : width - right]
    return total / 4


def _turned(mosaic: Floats, down: int, right: int) -> Floats:
    """Exchange neighboring rows and columns, so that red comes first in spite of a shift."""
    rows = np.arange(mosaic.shape[0]) ^ down
    columns = np.arange(mosaic.shape[1]) ^ right
    return mosaic[np.ix_(rows, columns)]


def _quad_basis() -> Floats:
    """Rows, orthonormal: brightness, the difference of the greens, and two colors."""
    gray = 1 / np.array([_ROOTS[0], _ROOTS[1], _ROOTS[1], _ROOTS[2]])
    rows: list[Floats] = []
    for vector in (gray, [0, 1, -1, 0], [1, 0, 0, -1], [1, -1, -1, 1]):
        rest = np.array(vector, float)
        for row in rows:
            rest -= (row @ rest) * row
        rows.append(rest / np.linalg.norm(rest))
    return np.array(rows)


def _denoise(image: Floats, sigma: float) -> Floats:
    contrast = max(float(image.max() - image.min()), sigma)
    family, axis = ("gray-5x5", None) if image.ndim == 2 else ("color-5x5", 0)
    model = select_model(family, sigma * 255 / contrast)
    white = max(float(image.max()), sigma)
    return np.asarray(
        nlnet.denoise(image, sigma, model=model, data_range=white, channel_axis=axis, clip=False)
    )


def _split(mosaic: Floats) -> list[Floats]:
    return [mosaic[row::2, column::2] for row in (0, 1) for column in (0, 1)]


def _join(planes: Sequence[Floats]) -> Floats:
    height, width = planes[0].shape
    mosaic = np.empty((2 * height, 2 * width))
    for number, plane in enumerate(planes):
        mosaic[number // 2 :: 2, number % 2 :: 2] = plane
    return mosaic
