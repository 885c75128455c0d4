"""The generalised Anscombe transform, which makes noise of one strength of photon noise."""

from __future__ import annotations

import math

import numpy as np

from nlnet.arrays import FloatArray

_OFFSET = 3 / 8
_SMALLEST = 2 * math.sqrt(_OFFSET)


def stabilise(values: FloatArray, gain: float, read: float) -> FloatArray:
    """Return values whose noise has a standard deviation of 1, nearly."""
    floor = _OFFSET * gain**2 + read**2
    return np.asarray(2 / gain * np.sqrt(np.maximum(gain * values + floor, 0)), values.dtype)


def unstabilise(values: FloatArray, gain: float, read: float) -> FloatArray:
    """Return the means that stabilised values without noise stand for: the exact unbiased inverse.

    In the closed form of M. Makitalo and A. Foi, "Optimal inversion of the generalized Anscombe
    transformation for Poisson-Gaussian noise", IEEE Transactions on Image Processing 22 (2013).
    """
    z = np.maximum(values, _SMALLEST)
    root = math.sqrt(1.5)
    correction = (5 / 8 * root / z - 11 / 8) / z + root / 4
    means = z**2 / 4 + correction / z - (1 / 8 + (read / gain) ** 2)
    return np.asarray(gain * means, values.dtype)
