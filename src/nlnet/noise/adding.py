"""Noise for experiments: white, Gaussian, and reproducible from its seed."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, FloatArray


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


def store(values: FloatArray, dtype: np.dtype[Any], data_range: float | None = None) -> Array:
    """Return floating values, such as those of a noisy image, in the dtype of a file.

    Whole numbers are rounded and kept in what the dtype holds, unsigned ones also in the data
    range. Floating values are neither.

    Parameters
    ----------
    values : array
        The image, such as one from :func:`add_noise`.
    dtype : dtype
        That of the file.
    data_range : float, optional
        The value of white; left out if nothing is known of it, as of signed and 32-bit integers.

    Examples
    --------
    >>> store(np.array([-3.0, 99.6, 300.0]), np.dtype(np.uint8), 255).tolist()
    [0, 100, 255]
    >>> store(np.array([-40000.0, -3.6, 300.0]), np.dtype(np.int16), None).tolist()
    [-32768, -4, 300]
    """
    if dtype.kind == "f":
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    highest = limits.max
    if data_range is not None and dtype.kind == "u":
        highest = min(highest, math.floor(data_range))
    # In float64, which holds the limits of 32-bit integers exactly.
    return np.clip(np.rint(values, dtype=np.float64), limits.min, highest).astype(dtype)
