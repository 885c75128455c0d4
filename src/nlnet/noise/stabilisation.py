"""Evening noise out: transforms after which it is equally strong at every brightness.

Photon noise, ``var = gain * x + offset``, is evened out by the generalised Anscombe transform, and
brought back by its exact unbiased inverse; for noise of any other dependence, the transform is the
integral of 1 / sigma over the brightness. The engine computes them
(``engine/src/removal/anscombe_rows.h``).
"""

import numpy as np

from nlnet.arrays import Array, FloatArray
from nlnet.engine.noise import EngineLevel, EngineNoise
from nlnet.noise.camera import Camera
from nlnet.noise.levels import AnyLevel, Nodes
from nlnet.noise.record import Noise


class Stabiliser:
    """A transform after which the noise has the standard deviation 1, and the way back.

    Parameters
    ----------
    level : Level or Nodes
        How strong the noise is over the brightness: the Anscombe transform for a `Level`, which
        must have a gain, and the integral of 1 / sigma for a curve.

    Examples
    --------
    >>> import numpy as np
    >>> from nlnet.noise.levels import Level
    >>> photons = np.random.default_rng(0).poisson(30, size=10_000)
    >>> transform = Stabiliser(Level(gain=1.0))
    >>> round(float(transform.forward(photons).std()), 1)
    1.0
    >>> mean = transform.forward(photons).mean(keepdims=True)
    >>> bool(abs(transform.inverse(mean) - 30) < 0.1)
    True

    >>> curve = Stabiliser(Nodes(((0.0, 1.0), (100.0, 3.0))))
    >>> values = np.array([-5.0, 20.0, 80.0, 140.0])
    >>> curve.inverse(curve.forward(values)).round(6).tolist()
    [-5.0, 20.0, 80.0, 140.0]
    """

    def __init__(self, level: AnyLevel) -> None:
        self.level = _engine_level(level)

    def forward(self, values: Array) -> FloatArray:
        """Even the noise out; float32 stays float32, and everything else becomes float64."""
        return self.level.turn(values, inverse=False)

    def inverse(self, values: FloatArray) -> FloatArray:
        """Return the values whose noisy versions have these means after the transform."""
        return self.level.turn(values, inverse=True)


def even_out(planes: Array, noise: Noise, *, inverse: bool = False) -> FloatArray:
    """Return (C, H, W) planes after the transforms of their levels, or turn such planes back."""
    ways = [Stabiliser(level) for level in noise.levels] * (len(planes) // len(noise.levels))
    turned = zip(ways, planes, strict=True)
    return np.stack([way.level.turn(plane, inverse=inverse) for way, plane in turned])


def engine_noise(noise: Noise) -> EngineNoise:
    """Return noise as the engine takes it."""
    if isinstance(noise, Camera):
        return EngineNoise(strengths=noise.strengths, certainty=noise.certainty)
    if noise.sigma is not None:
        return EngineNoise(noise.sigma)
    return EngineNoise(levels=[_engine_level(level) for level in noise.levels])


def _engine_level(level: AnyLevel) -> EngineLevel:
    if isinstance(level, Nodes):
        return EngineLevel(0.0, 0.0, level.nodes)
    return EngineLevel(level.gain, level.offset)
