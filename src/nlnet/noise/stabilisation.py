"""Evening noise out: transforms after which it is equally strong at every brightness.

Photon noise, ``var = gain * x + offset``, is evened out by the generalised Anscombe transform, and
brought back by its exact unbiased inverse; for noise of any other dependence, the transform is the
integral of 1 / sigma over the brightness. The engine computes them
(``engine/src/removal/anscombe_rows.h``).
"""

from __future__ import annotations

from collections.abc import Sequence

from nlnet.arrays import Array, FloatArray
from nlnet.engine.noise import EngineLevel, EngineNoise
from nlnet.noise.camera import Camera
from nlnet.noise.levels import AnyLevel, Nodes
from nlnet.noise.record import Noise


class Stabiliser:
    """A transform after which the noise has the standard deviation 1, and the way back."""

    def __init__(self, level: EngineLevel) -> None:
        self.level = level

    def forward(self, values: Array) -> FloatArray:
        """Even the noise out; float32 stays float32, and everything else becomes float64."""
        return self.level.turn(values, inverse=False)

    def inverse(self, values: FloatArray) -> FloatArray:
        """Return the values whose noisy versions have these means after the transform."""
        return self.level.turn(values, inverse=True)


class Anscombe(Stabiliser):
    """The generalised Anscombe transform for ``var = gain * x + offset``.

    Parameters
    ----------
    gain : float
        Values per photon, above 0.
    offset : float
        Variance of the read noise; below 0 where black is not at 0 but at ``-offset / gain``.

    Examples
    --------
    >>> import numpy as np
    >>> photons = np.random.default_rng(0).poisson(30, size=10_000)
    >>> transform = Anscombe(gain=1.0, offset=0.0)
    >>> round(float(transform.forward(photons).std()), 1)
    1.0
    >>> mean = transform.forward(photons).mean(keepdims=True)
    >>> bool(abs(transform.inverse(mean) - 30) < 0.1)
    True
    """

    def __init__(self, gain: float, offset: float) -> None:
        super().__init__(EngineLevel(gain, offset))
        self.gain, self.offset = gain, offset


class Curve(Stabiliser):
    """The integral of 1 / sigma, for any noise curve, and its inverse.

    Parameters
    ----------
    intensities : sequence of float
        Values, ascending, two at least.
    sigmas : sequence of float
        Standard deviation of the noise there; straight lines between, constant outside.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Curve([0.0, 100.0], [1.0, 3.0])
    >>> values = np.array([-5.0, 20.0, 80.0, 140.0])
    >>> curve.inverse(curve.forward(values)).round(6).tolist()
    [-5.0, 20.0, 80.0, 140.0]
    """

    def __init__(self, intensities: Sequence[float], sigmas: Sequence[float]) -> None:
        points = list(zip(intensities, sigmas, strict=True))
        super().__init__(EngineLevel(0.0, 0.0, points))


def stabiliser(level: AnyLevel) -> Stabiliser:
    """Return what evens out noise of a level."""
    return Stabiliser(_engine_level(level))


def engine_noise(noise: Noise) -> EngineNoise:
    """Return noise as the engine takes it."""
    if isinstance(noise, Camera):
        return EngineNoise.camera(noise.strengths, noise.certainty)
    if noise.sigma is not None:
        return EngineNoise.white(noise.sigma)
    return EngineNoise.dependent([_engine_level(level) for level in noise.levels])


def _engine_level(level: AnyLevel) -> EngineLevel:
    if isinstance(level, Nodes):
        return EngineLevel(0.0, 0.0, level.nodes)
    return EngineLevel(level.gain, level.offset)
