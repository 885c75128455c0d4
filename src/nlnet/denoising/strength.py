"""How much of the noise to remove, separately for brightness and colors.

Up to 1, the result is blended with the image. Above it, the networks are told more noise than there
is.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from nlnet.arrays import Array, FloatArray
from nlnet.engine import planes
from nlnet.errors import InputError

Strength: TypeAlias = float | Sequence[float]
"""One share for all, or a pair for luma and chroma."""

Shares: TypeAlias = tuple[float, float]

MOST = 2
"""More is never removed: twice the noise takes most of an image's fine detail."""


def check_strength(strength: Strength, channels: int) -> Shares:
    """Return the shares for luma and chroma.

    Raises
    ------
    InputError
        If they are not from 0 to 2, or there is a pair but no color.

    Examples
    --------
    >>> check_strength(0.5, channels=1)
    (0.5, 0.5)
    """
    given = _shares(strength)
    for share in given:
        if not 0 <= share <= MOST:
            raise InputError(f"strength is {share:g}, but must be from 0 to {MOST}.")
    if channels == 1 and len(given) == 2:
        raise InputError("strength is a pair for luma and chroma, but the image is grayscale.")
    return given[0], given[-1]


def _shares(strength: object) -> tuple[float, ...]:
    """Return the one number or the pair that is given."""
    several = isinstance(strength, (Sequence, np.ndarray)) and not isinstance(strength, str)
    given = tuple(np.atleast_1d(np.asarray(strength, object))) if several else (strength,)
    real = all(isinstance(share, numbers.Real) and not isinstance(share, bool) for share in given)
    if not real or len(given) != 1 + several:
        raise InputError(
            f"strength is {strength!r}, but must be a number from 0 to {MOST}, or a pair of them "
            "for luma and chroma."
        )
    return tuple(map(float, given))


def blend(noisy: Array, denoised: FloatArray, shares: Shares) -> FloatArray:
    """Return (C, H, W) planes between the noisy and the denoised ones.

    Examples
    --------
    >>> noisy, denoised = np.full((1, 1, 1), 100.0), np.full((1, 1, 1), 104.0)
    >>> blend(noisy, denoised, (0.25, 0.25)).item()
    101.0
    """
    luma, chroma = (min(share, 1.0) for share in shares)
    return denoised if luma == chroma == 1 else planes.blend(noisy, denoised, (luma, chroma))
