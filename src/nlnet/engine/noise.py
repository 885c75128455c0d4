"""Noise as the engine takes it, and what it says about it."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, FloatArray
from nlnet.engine.library import check_status, instruction_set, load
from nlnet.engine.memory import address, call_in_memory
from nlnet.engine.network import ELEMENTS
from nlnet.engine.structures import (
    CAMERA,
    DEPENDENT,
    SCALES,
    WHITE,
    Level,
    Noise,
)


def sure_certainty() -> float:
    """Return the certainty from which on all of the noise is removed."""
    return float(load().nlnet_sure())


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
        self.structure = Level(gain, offset)
        if points is not None:
            self._points = np.array(points, np.float64)
            self.structure.points, self.structure.count = address(self._points), len(points)

    def turn(self, values: Array, *, inverse: bool) -> FloatArray:
        """Make noise of the standard deviation 1, or turn denoised values back.

        Values that are not floating become float64.
        """
        dtype = values.dtype if values.dtype in ELEMENTS else np.dtype(np.float64)
        turned = np.array(values, dtype, order="C")
        where = address(turned)
        given = (ELEMENTS[dtype], instruction_set(), int(inverse), turned.size, where, where)
        function = load().nlnet_stabilise
        call_in_memory(function, "The transform", ctypes.byref(self.structure), *given)
        return turned


class EngineNoise:
    """The noise of an image; `structure` holds the addresses of what it keeps."""

    def __init__(self, kind: int) -> None:
        self.structure = Noise(kind, certainty=1.0)
        self._kept: object = None

    @classmethod
    def white(cls, sigma: float) -> EngineNoise:
        """Return noise that is the same everywhere."""
        noise = cls(WHITE)
        noise.structure.sigma = sigma
        return noise

    @classmethod
    def dependent(cls, levels: Sequence[EngineLevel]) -> EngineNoise:
        """Return noise that depends on the brightness, in all channels or in each."""
        noise = cls(DEPENDENT)
        array = (Level * len(levels))(*(level.structure for level in levels))
        noise.structure.levels, noise.structure.level_count = array, len(levels)
        noise._kept = levels, array
        return noise

    @classmethod
    def camera(cls, strengths: npt.NDArray[np.float32], certainty: float) -> EngineNoise:
        """Return noise that is correlated; strengths are (2, SCALES, h, w)."""
        noise = cls(CAMERA)
        _, scales, rows, columns = strengths.shape
        assert scales == SCALES
        noise._kept = kept = np.ascontiguousarray(strengths, np.float32)
        noise.structure.strengths = address(kept)
        noise.structure.rows, noise.structure.columns = rows, columns
        noise.structure.certainty = certainty
        return noise

    def fill(self, low: float, high: float) -> tuple[float, float]:
        """Return what values from low to high fill for the networks, and where that begins."""
        span, black = ctypes.c_double(), ctypes.c_double()
        given = ctypes.byref(self.structure), low, high, ctypes.byref(span), ctypes.byref(black)
        check_status(load().nlnet_fill(*given), "The range")
        return span.value, black.value

    def shares(self, strength: tuple[float, float]) -> tuple[float, float]:
        """Return the shares of what networks remove that are taken from the image, up to 1."""
        pair = ctypes.c_double * 2
        shares = pair()
        given = ctypes.byref(self.structure), pair(*strength), shares
        check_status(load().nlnet_shares(*given), "The strength")
        return shares[0], shares[1]
