"""Images with noise that is known, to see what is found of it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from paths import PROJECT

import nlnet
from nlnet.evaluation.datasets import read_clean

KERNELS = {"pairs": [1, 1], "triples": [1, 2, 1], "fives": [1, 4, 6, 4, 1]}


@functools.cache
def clean(name: str, channels: int = 1) -> np.ndarray:
    """Smooth areas with edges between them, from 20 to 235, or a photo."""
    if name == "cat":
        return read_clean(PROJECT / "examples" / "cat.png", channels).astype(np.float64)
    y, x = np.mgrid[:320, :400]
    waves = 110 + 60 * np.sin(x / 47) * np.cos(y / 61)
    image = np.clip(waves + 50 * (x + y > 390) - 30 * (x > 280), 20, 235)
    return image if channels == 1 else np.dstack([image, 250 - image, image[::-1]])


def photon_noise(
    image: np.ndarray, gain: float, read: float, black: float = 0.0, seed: int = 0
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.asarray(
        gain * rng.poisson(image / gain) + black + read * rng.standard_normal(image.shape)
    )


def correlated_noise(shape: tuple[int, ...], kernel: list[float], sigma: float) -> np.ndarray:
    """White noise blurred by a kernel, across and down, and scaled to sigma."""
    noise = np.random.default_rng(3).standard_normal(shape)
    weights = np.array(kernel, float)
    weights /= np.sqrt((weights**2).sum())  # the variance stays 1
    for axis in (0, 1):
        noise = sum(
            (weight * np.roll(noise, shift, axis) for shift, weight in enumerate(weights)),
            np.zeros(shape),
        )
    return sigma * noise


def octaves_of(kernel: list[float]) -> np.ndarray:
    """The standard deviation after averaging squares, times their side: in closed form."""
    # Of white noise through a separable kernel, the variance is the square of its energy.
    both = [(side, np.convolve(kernel, np.ones(side))) for side in (1, 2, 4)]
    energy = np.array([(weights**2).sum() / side for side, weights in both])
    return np.asarray(energy / energy[0])


def estimate(image: np.ndarray, **options: Any) -> nlnet.Noise:
    return nlnet.estimate_noise(image, **{"data_range": 255, **options})
