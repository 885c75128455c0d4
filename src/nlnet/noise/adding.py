"""The noise of the experiments: white, Gaussian, and the same for everyone who uses the seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array


def add_noise(clean: Array, sigma: float, seed: int = 0) -> npt.NDArray[np.float64]:
    """Add white Gaussian noise to an image, neither clipped nor rounded.

    Parameters
    ----------
    clean : array
        The image, of any real dtype, shape and scale.
    sigma : float
        Standard deviation of the noise, in the image's units.
    seed : int, optional
        Seed of the generator; image ``i`` of a test set takes the set's seed plus ``i``.

    Returns
    -------
    float64 array
        The noisy image, of the same shape.

    Examples
    --------
    >>> noisy = add_noise(np.full((2, 2), 100, np.uint8), sigma=25, seed=0)
    >>> noisy.round(2).tolist()
    [[103.14, 96.7], [116.01, 102.62]]
    """
    noise = np.random.default_rng(seed).standard_normal(clean.shape)
    noisy: npt.NDArray[np.float64] = clean + sigma * noise
    return noisy


def store(noisy: npt.NDArray[np.float64], dtype: np.dtype[Any], data_range: float) -> Array:
    """Return a noisy image in the dtype of a file: whole numbers are rounded and clipped.

    Examples
    --------
    >>> store(np.array([-3.0, 99.6, 300.0]), np.dtype(np.uint8), 255).tolist()
    [0, 100, 255]
    """
    if dtype.kind == "u":
        return np.rint(np.clip(noisy, 0, data_range)).astype(dtype)
    return noisy.astype(dtype)
