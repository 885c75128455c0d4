"""Whether the value of white fits an image that is taken to be clean."""

from __future__ import annotations

import numpy as np

from nlnet.errors import InputError
from nlnet.images import ImageFile

_SHARE = 1e-3
_MARGIN = 0.5


def check_white(image: ImageFile, white: float, name: str) -> None:
    """Raise InputError if more than a thousandth of the values is far outside 0 to white.

    Far means half of white: a clean image may have some highlights, but one whose values mean
    something else would be measured, or made noisy, on a scale that is not its own.

    Examples
    --------
    >>> check_white(ImageFile(np.linspace(0, 1.2, 64).reshape(8, 8)), 1.0, "fine.npy")
    >>> check_white(
    ...     ImageFile(np.linspace(0, 900, 64).reshape(8, 8)), 1.0, "counts.npy"
    ... )  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    nlnet.errors.InputError: 'counts.npy' has values from 0 to 900, but white is taken to be 1; ...
    """
    pixels = image.pixels
    outside = (pixels < -_MARGIN * white) | (pixels > (1 + _MARGIN) * white)
    if np.count_nonzero(outside) > _SHARE * pixels.size:
        raise InputError(
            f"{name!r} has values from {pixels.min():g} to {pixels.max():g}, but white is taken to "
            f"be {white:g}; say what it is with --data-range."
        )
