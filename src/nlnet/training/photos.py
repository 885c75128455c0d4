"""Crops to train on, and photos of them by simulated cameras."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nlnet import color
from nlnet.arrays import Array, FloatArray
from nlnet.noise.camera import Camera
from nlnet.training.settings import TrainingSettings

_MARGIN = 16
"""Pixels around a crop that the camera sees, too: its filters reach beyond the crop."""

_NOISE = (1.0, 25.0)
"""Least and largest noise of a photo, of 255; cameras that make less or more are drawn again."""

_LEAST_CHROMA = 0.15
"""Noise of a chroma channel, as a share of luma's, below which it is not scaled up further."""

_JITTER = 0.15
"""Relative error of the noise level that a model shall not mind, for it will be estimated."""

_LUMA = np.array([0.299, 0.587, 0.114])
"""What makes a gray image of a color one, by ITU-R 601."""


class Pair(NamedTuple):
    """A clean and a noisy image, (C, H, W), and the factors that bring it to the network, (C,)."""

    clean: Array
    noisy: Array
    scales: FloatArray


def draw_crop(picture: Array, shape: tuple[int, int], rng: np.random.Generator) -> Array:
    """Return a crop of a (C, H, W) picture from a random place."""
    top, left = (
        int(rng.integers(size - side + 1))
        for size, side in zip(picture.shape[1:], shape, strict=True)
    )
    return picture[:, top : top + shape[0], left : left + shape[1]]


def draw_photo(
    picture: Array, side: int, settings: TrainingSettings, rng: np.random.Generator
) -> Pair:
    """Return a square photo of a part of an RGB picture, by a camera drawn at random.

    Often the part is enlarged: photos of real cameras are softer, pixel by pixel, than pictures
    that were made smaller, as those of the common data sets were.
    """
    while True:
        clean, noisy = _shoot(picture, side, rng)
        noise = noisy - clean
        if _NOISE[0] <= float(noise.std()) <= _NOISE[1]:
            break
    if settings.network.channels == 1:
        clean, noisy, noise = (
            np.tensordot(_LUMA, planes, 1)[np.newaxis] for planes in (clean, noisy, noise)
        )
    levels = noise_levels(noise) * np.exp(_JITTER * rng.standard_normal(len(noise)))
    return Pair(clean, noisy, settings.sigma / levels)


def noise_levels(noise: FloatArray) -> FloatArray:
    """Return the strength of (C, H, W) noise in each working plane, as that of white noise.

    It is measured at half the size, times 2: noise that is correlated between neighbors is as
    strong there as the white noise that takes the same effort to remove. White noise of standard
    deviation s in red, green and blue has the level s in luma and in both chroma channels. Chroma
    far below luma is counted as more than it is.
    """
    height, width = (size - size % 2 for size in noise.shape[1:])
    halves = noise[:, :height, :width].reshape(len(noise), height // 2, 2, width // 2, 2)
    half = 2 * halves.mean(axis=(2, 4))
    if len(noise) == 1:
        return np.array([half.std()])
    opponent = color.transform(half, color.OPPONENT)
    levels = opponent.std(axis=(1, 2)) / np.linalg.norm(color.OPPONENT, axis=1)
    return np.maximum(levels, _LEAST_CHROMA * levels[0])


def _shoot(picture: Array, side: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    enlargement = float(rng.uniform(1, 2)) if rng.random() < 0.6 else 1.0
    whole = side + 2 * _MARGIN
    # What does not fit is enlarged more.
    part = min(int(np.ceil(whole / enlargement)), *picture.shape[1:])
    scene = np.clip(_enlarge(draw_crop(picture, (part, part), rng), whole), 0, 255)
    scene = np.rot90(scene, int(rng.integers(4)), axes=(1, 2))
    scene = scene[:, :, ::-1] if rng.integers(2) else scene
    inner = slice(_MARGIN, -_MARGIN)
    clean, noisy = Camera.draw(rng).shoot(scene, rng)[::-1]
    return clean[:, inner, inner], noisy[:, inner, inner]


def _enlarge(planes: Array, side: int) -> FloatArray:
    """Resample square (C, N, N) planes to `side`, by Catmull-Rom splines."""
    size = planes.shape[-1]
    if size == side:
        return planes.astype(np.float64)
    places = np.clip((np.arange(side) + 0.5) * size / side - 0.5, 0, size - 1)
    distance = np.abs(places[:, np.newaxis] - np.arange(size))
    near = 1.5 * distance**3 - 2.5 * distance**2 + 1
    far = -0.5 * distance**3 + 2.5 * distance**2 - 4 * distance + 2
    weights = np.where(distance < 1, near, np.where(distance < 2, far, 0.0))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights @ planes @ weights.T)
