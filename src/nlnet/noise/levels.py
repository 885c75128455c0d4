"""How strong the noise of one channel is over the brightness: a line, or points of a curve."""

import dataclasses
import itertools
import math
from typing import TypeAlias

import numpy as np

from nlnet.arrays import Array, FloatArray
from nlnet.errors import InputError


@dataclasses.dataclass(frozen=True)
class Level:
    """Noise of one channel whose variance is ``gain * (x - black) + read**2`` at brightness x.

    Below black it is ``read**2``.

    Parameters
    ----------
    gain : float
        Values per photon; 0 for noise that does not depend on the brightness.
    read : float
        Standard deviation in the dark.
    black : float
        The value of no light.
    """

    gain: float = 0.0
    read: float = 0.0
    black: float = 0.0

    def __post_init__(self) -> None:
        check_finite_numbers(self.gain, self.read, self.black)
        if min(self.gain, self.read) < 0:
            raise InputError("Noise has a gain or a standard deviation below 0.")

    @property
    def offset(self) -> float:
        """The variance's straight line at x = 0; below 0 where black is above 0."""
        return self.read**2 - self.gain * self.black

    def sigma(self, values: Array | float) -> FloatArray:
        """Return the standard deviation of the noise at these values."""
        light = np.maximum(np.asarray(values, np.float64) - self.black, 0)
        return np.sqrt(self.gain * light + self.read**2)

    def scaled(self, factor: float) -> "Level":
        """Return the noise of the channel times a factor."""
        return Level(self.gain * factor, self.read * factor, self.black * factor)


@dataclasses.dataclass(frozen=True)
class Nodes:
    """Noise of one channel given by points (x, standard deviation) of a curve, x ascending.

    Between them it is linear, and outside constant.
    """

    nodes: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        check_finite_numbers(*itertools.chain(*self.nodes))
        if len(self.nodes) < 2:
            raise InputError(
                f"A noise curve has {len(self.nodes)} points, but must have at least 2."
            )
        if any(after <= before for (before, _), (after, _) in itertools.pairwise(self.nodes)):
            raise InputError("The points of a noise curve must be of ascending brightness.")
        if min(self._sigmas) < 0:
            raise InputError("A noise curve has a standard deviation below 0.")
        if not max(self._sigmas) > 0:
            raise InputError("The sigma of a noise curve is 0 everywhere.")

    @property
    def _sigmas(self) -> list[float]:
        return [sigma for _, sigma in self.nodes]

    def sigma(self, values: Array | float) -> FloatArray:
        """Return the standard deviation of the noise at these values."""
        places, sigmas = np.asarray(self.nodes, np.float64).T
        return np.asarray(np.interp(np.asarray(values, np.float64), places, sigmas))

    def scaled(self, factor: float) -> "Nodes":
        """Return the noise of the channel times a factor."""
        return Nodes(tuple((x * factor, sigma * factor) for x, sigma in self.nodes))


AnyLevel: TypeAlias = Level | Nodes
"""How strong the noise of one channel is over the brightness."""


def check_finite_numbers(*numbers: float) -> None:
    """Raise InputError if one of the numbers of a record is not finite."""
    if not all(math.isfinite(number) for number in numbers):
        raise InputError("Noise has values that are not finite, but all must be.")
