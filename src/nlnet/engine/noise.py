"""Noise as the engine takes it, and what it says about it."""

import ctypes
from collections.abc import Sequence

import numpy as np

from nlnet.arrays import Array, Float32Array, FloatArray
from nlnet.engine.library import ELEMENTS, check_status, instruction_set, load
from nlnet.engine.memory import address, call


def sure_certainty() -> float:
    """Return the certainty from which on all of the noise is removed."""
    return float(load().sure())


class EngineLevel:
    """Noise of one channel over the brightness.

    Parameters
    ----------
    gain, offset : float
        The variance is ``gain * x + offset``.
    points : sequence of (x, sigma), optional
        Points of a curve, in place of these.
    """

    def __init__(
        self, gain: float, offset: float, points: Sequence[tuple[float, float]] | None = None
    ) -> None:
        self.structure = load().level(gain, offset)
        if points is not None:
            self._points = np.array(points, np.float64)
            self.structure.points, self.structure.count = address(self._points), len(points)

    def turn(self, values: Array, *, inverse: bool) -> FloatArray:
        """Make noise of the standard deviation 1, or turn denoised values back.

        Values that are not floating become float64.
        """
        dtype = values.dtype if values.dtype in ELEMENTS else np.dtype(np.float64)
        turned = np.array(values, dtype, order="C")
        where = turned.size, address(turned), address(turned)
        level = ctypes.byref(self.structure)
        call("stabilise", level, ELEMENTS[dtype], instruction_set(), int(inverse), *where)
        return turned


class EngineNoise:
    """The noise of an image; `structure` holds the addresses of what it keeps.

    Parameters
    ----------
    sigma : float, optional
        Standard deviation of noise that is the same everywhere.
    levels : sequence of EngineLevel, optional
        Of noise that depends on the brightness, in all channels or in each.
    strengths : (2, 3, h, w) float32 array, optional
        Of noise that is correlated.
    certainty : float
        How sure that is.
    """

    def __init__(
        self,
        sigma: float | None = None,
        levels: Sequence[EngineLevel] = (),
        strengths: Float32Array | None = None,
        certainty: float = 1.0,
    ) -> None:
        engine = load()
        self.structure = engine.noise(certainty=certainty)
        if sigma is not None:
            self.structure.kind, self.structure.sigma = engine.constants["WHITE"], sigma
        elif strengths is None:
            array = (engine.level * len(levels))(*(level.structure for level in levels))
            self._kept: object = levels, array
            self.structure.kind = engine.constants["DEPENDENT"]
            self.structure.levels, self.structure.level_count = array, len(levels)
        else:
            self._kept = maps = np.ascontiguousarray(strengths, np.float32)
            self.structure.kind = engine.constants["CAMERA"]
            self.structure.strengths = address(maps)
            self.structure.rows, self.structure.columns = maps.shape[2:]

    def fill(self, low: float, high: float) -> tuple[float, float]:
        """Return what values from low to high fill for the networks, and where that begins."""
        span, black = ctypes.c_double(), ctypes.c_double()
        given = ctypes.byref(self.structure), low, high, ctypes.byref(span), ctypes.byref(black)
        check_status(load().fill(*given))
        return span.value, black.value

    def shares(self, strength: tuple[float, float]) -> tuple[float, float]:
        """Return the shares of what networks remove that are taken from the image, up to 1."""
        pair = ctypes.c_double * 2
        shares = pair()
        check_status(load().shares(ctypes.byref(self.structure), pair(*strength), shares))
        return shares[0], shares[1]
