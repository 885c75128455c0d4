"""How a page of a series has moved and changed its brightness to become another one."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nlnet.engine.series import BLOCK, Plane, align

_RIDGE = 0.1
"""Variance of the brightness of blocks, in that of the noise, at which a gain that is estimated is
halfway between 1 and what the blocks say: without contrast, there is only an offset."""

_ROUNDS = 4
"""Of estimating the change of brightness, each without what fits worst before."""

_MISFIT = 0.3
"""What the means of blocks may differ by after a change of brightness, in the median: if more is
left, no such change explains it."""

_MOVES = 0.72
"""Share that motion must leave at most of the differences without it: structures that grow or fade
from page to page, as in a stack, look as if they moved, but fit hardly better for it."""

_ALIKE = 1.3
"""How much more motion must make the noisy pages covary: where structures grow or fade, fine
texture stays, which denoised pages may not show."""

_BY_CHANCE = 3.0
"""Standard deviations that noise alone makes noisy pages covary by, which is less than that."""

_NEGLIGIBLE = 0.1
"""Change of the gain below which motion is found well enough."""

_GAINS = (0.25, 4.0)
"""Changes of brightness that are allowed for."""


@dataclasses.dataclass(frozen=True, eq=False)
class Motion:
    """How a page has moved and changed its brightness to become another one.

    Parameters
    ----------
    field, fits : array
        As `align` finds them.
    gain, offset : float
        What makes the other page as bright as this one.
    """

    field: Plane
    fits: Plane
    gain: float = 1.0
    offset: float = 0.0

    @classmethod
    def between(cls, field: Plane, fits: Plane) -> "Motion":
        """Return the motion together with the change of brightness, if there is one."""
        means = fits[..., (0, 2)]
        gain, offset = change_of_brightness(means)
        rest = means[..., 0] - gain * means[..., 1] - offset
        if np.median(np.abs(rest)) > _MISFIT:
            gain, offset = 1.0, 0.0
        return cls(field, fits, gain, offset)

    def mean(self, what: int) -> float:
        """Return the mean of one of the fits over all blocks."""
        return float(self.fits[..., what].mean())

    @property
    def shown(self) -> float:
        """Mean variance of what the page shows in a block."""
        return self.mean(1)

    @property
    def left(self) -> float:
        """Mean variance of the difference in a block."""
        return self.mean(3)

    def still(self) -> "Motion":
        """Return what there is without motion."""
        fits = self.fits[..., [0, 1, 4, 5, 4, 5, 7, 7]]
        return Motion.between(np.zeros_like(self.field), fits)


Motions = dict[tuple[int, int], Motion]
"""By the numbers of two pages."""


def follow(first: Plane | None, then: Plane) -> Plane:
    """Return the motion from a page over another one to a third one."""
    if first is None:
        return then
    rows, columns = then.shape[:2]
    places = np.moveaxis(np.indices((rows, columns)), 0, -1) + np.rint(first / BLOCK)
    row, column = np.clip(places, 0, (rows - 1, columns - 1)).astype(np.intp).transpose(2, 0, 1)
    return np.asarray(first + then[row, column])


def moves(found: Sequence[Motion]) -> bool:
    """Whether a page fits its neighbours better for motion.

    Structures that grow or fade from page to page, as in a stack, look as if they moved. But fine
    texture stays where it is, which the noisy pages tell.
    """
    left, before, moved, still = (sum(each.mean(i) for each in found) for i in (3, 5, 6, 7))
    pixels = sum(BLOCK**2 * each.fits[..., 0].size for each in found)
    chance = _BY_CHANCE * len(found) / math.sqrt(max(pixels, 1))
    return left <= _MOVES * before and moved >= _ALIKE * still + chance


def find_motion(
    page: tuple[Plane, Plane], other: tuple[Plane, Plane], expected: Plane | None = None
) -> Motion:
    """Return the motion from a page to another, with the change of brightness back.

    Parameters
    ----------
    page, other : pair of (H, W) arrays
        The noisy one and its guide.
    expected : array, optional
        A field that is tried besides others.
    """
    noisy, (reference, guide) = zip(page, other, strict=True)
    found = Motion.between(*align(reference, guide, noisy, expected))
    if abs(found.gain - 1) <= _NEGLIGIBLE:
        return found
    # What is darker has smaller gradients, so that motion looks smaller than it is.
    scaled = guide * np.float32(found.gain) + np.float32(found.offset)
    field, fits = align(reference, scaled, noisy, expected)
    fits[..., (2, 4)] = (fits[..., (2, 4)] - found.offset) / found.gain
    return Motion.between(field, fits)


def change_of_brightness(means: npt.NDArray[np.floating]) -> tuple[float, float]:
    """Return the gain and offset that turn the brightness of a page into that of another.

    Parameters
    ----------
    means : (..., 2) array
        Means of blocks of the other page and of the page, in units of the noise.

    Examples
    --------
    >>> here = np.linspace(5, 90, 50)
    >>> gain, offset = change_of_brightness(np.stack([0.8 * here + 2, here], axis=-1))
    >>> round(gain, 2), round(offset, 1)
    (0.8, 2.0)
    """
    wanted, given = means.reshape(-1, 2).T.astype(np.float64)
    weights = np.ones_like(given)
    gain, offset = 1.0, 0.0
    for _ in range(_ROUNDS):
        center, target = np.average(given, weights=weights), np.average(wanted, weights=weights)
        ridge = _RIDGE * weights.sum()
        products = weights * (given - center)
        gain = float(
            (np.sum(products * (wanted - target)) + ridge)
            / (np.sum(products * (given - center)) + ridge)
        )
        gain = min(max(gain, _GAINS[0]), _GAINS[1])
        offset = float(target - gain * center)
        apart = np.abs(wanted - gain * given - offset)
        weights = 1 / (1 + (apart / (2 * np.median(apart) + 1e-6)) ** 2) ** 2
    return gain, offset
