"""Evening noise out: transforms after which it is equally strong at every brightness.

Photon noise, ``var = gain * x + offset``, is evened out by the generalised Anscombe transform, and
brought back by its exact unbiased inverse: the value whose noisy versions have the given mean after
the transform. The plain inverse would make dark areas too dark.

M. Mäkitalo, A. Foi, "Optimal inversion of the generalized Anscombe transformation for
Poisson-Gaussian noise", IEEE Transactions on Image Processing 22 (2013); the closed form is that of
their article of 2011 on the Anscombe transform.

For noise of any other dependence, the transform is the integral of 1 / sigma over the brightness.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from nlnet.arrays import Array, FloatArray
from nlnet.noise.levels import AnyLevel, Nodes

_LEAST = 2 * math.sqrt(3 / 8)
"""The transform of a pixel without photons."""

_LARGEST = 1e37
"""Near the largest float32."""

_FLOOR = 0.1
"""Least sigma of a curve, as a share of its largest: what is weaker is not blown up further."""


class Stabiliser(Protocol):
    """A transform after which the noise has the standard deviation 1, and the way back."""

    def forward(self, values: Array) -> FloatArray:
        """Even the noise out."""

    def inverse(self, values: FloatArray) -> FloatArray:
        """Bring denoised values back."""


@dataclasses.dataclass(frozen=True)
class Anscombe:
    """The generalised Anscombe transform for ``var = gain * x + offset``.

    Parameters
    ----------
    gain : float
        Values per photon, above 0.
    offset : float
        Variance of the read noise; below 0 where black is not at 0 but at ``-offset / gain``.

    Examples
    --------
    >>> photons = np.random.default_rng(0).poisson(30, size=10_000)
    >>> transform = Anscombe(gain=1.0, offset=0.0)
    >>> round(float(transform.forward(photons).std()), 1)
    1.0
    >>> mean = transform.forward(photons).mean(keepdims=True)
    >>> bool(abs(transform.inverse(mean) - 30) < 0.1)
    True
    """

    gain: float
    offset: float

    def forward(self, values: Array) -> FloatArray:
        """Even the noise out.

        The result is counted from the transform of the value 0, or of black if black is above 0.
        Without that, ``2 / gain * sqrt(gain * x + ...)`` would be so much larger than its
        differences, where the noise hardly grows with the light, that float32 could not hold them.
        """
        # Written so that float32 stays float32.
        squares = np.maximum(self.gain * values + self._floor, 0)
        if self._floor <= 0:
            return np.asarray(2 / self.gain * np.sqrt(squares))
        light = np.maximum(values, max(-self._floor / self.gain, -_LARGEST))
        return np.asarray(2 * light / (np.sqrt(squares) + self._root))

    def inverse(self, values: FloatArray) -> FloatArray:
        """Return the values whose noisy versions have these means after the transform."""
        least = max(_LEAST - 2 * self._root / self.gain, -_LARGEST)
        mean = np.maximum(values, least)
        # One over the transform of the article, which is not counted from 0.
        over = self.gain / (self.gain * mean + 2 * self._root)
        bias = 1 / 4 + over * (
            math.sqrt(3 / 2) / 4 + over * (-11 / 8 + over * (5 / 8 * math.sqrt(3 / 2)))
        )
        light = mean * (self.gain / 4 * mean + self._root) + self.gain * bias
        light -= min(self._floor, 0.0) / self.gain
        # Below the transform of a pixel without photons the inverse goes on as a straight line, so
        # that negative values of floating data are not cut off.
        slope = self.gain * _LEAST / 2
        dark = max(-self.offset / self.gain, -_LARGEST)
        return np.asarray(np.maximum(light, dark) + np.minimum(values - least, 0) * slope)

    @property
    def _floor(self) -> float:
        """The term under the root for the value 0, times the square of the gain."""
        return 3 / 8 * self.gain**2 + self.offset

    @property
    def _root(self) -> float:
        return math.sqrt(max(self._floor, 0.0))


class Curve:
    """The integral of 1 / sigma, for any noise curve, and its inverse.

    Parameters
    ----------
    intensities : sequence of float
        Values, ascending, two at least.
    sigmas : sequence of float
        Standard deviation of the noise there; straight lines between, constant outside.

    Examples
    --------
    >>> curve = Curve([0.0, 100.0], [1.0, 3.0])
    >>> values = np.array([-5.0, 20.0, 80.0, 140.0])
    >>> curve.inverse(curve.forward(values)).round(6).tolist()
    [-5.0, 20.0, 80.0, 140.0]
    """

    def __init__(self, intensities: Sequence[float], sigmas: Sequence[float]) -> None:
        at = np.asarray(intensities, np.float64)
        level = np.maximum(sigmas, _FLOOR * max(sigmas))
        self._values = np.linspace(at[0], at[-1], 1025)
        fine = np.interp(self._values, at, level)
        steps = np.diff(self._values) * (1 / fine[1:] + 1 / fine[:-1]) / 2
        self._evened = np.concatenate([[0.0], np.cumsum(steps)])
        self._slopes = float(1 / fine[0]), float(1 / fine[-1])

    def forward(self, values: Array) -> FloatArray:
        """Even the noise out."""
        return _interpolate(values, self._values, self._evened, self._slopes)

    def inverse(self, values: FloatArray) -> FloatArray:
        """Bring denoised values back."""
        low, high = self._slopes
        return _interpolate(values, self._evened, self._values, (1 / low, 1 / high))


def stabiliser(level: AnyLevel) -> Stabiliser:
    """Return what evens out noise of a level."""
    if isinstance(level, Nodes):
        return Curve(*zip(*level.nodes, strict=True))
    return Anscombe(level.gain, level.offset)


def _interpolate(
    x: Array, places: FloatArray, values: FloatArray, slopes: tuple[float, float]
) -> FloatArray:
    """Interpolate linearly, and go on with these slopes outside; float32 stays float32."""
    inside = np.interp(x, places, values)
    below = slopes[0] * np.minimum(x - places[0], 0)
    above = slopes[1] * np.maximum(x - places[-1], 0)
    kind = x.dtype if x.dtype.kind == "f" else np.float64
    return np.asarray(inside + below + above, kind)
