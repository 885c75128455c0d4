"""The values of black and white in an image, and whether its pixels fit them."""

from __future__ import annotations

import dataclasses

import numpy as np

from nlnet.errors import InputError
from nlnet.images import ImageFile
from nlnet.inputs import DATA_RANGES, check_dtype, find_data_range

_SHARE = 1e-3
_FAR = 0.5


@dataclasses.dataclass(frozen=True)
class Scale:
    """The value of black, and how far white is above it."""

    black: float
    span: float


def scale_of(image: ImageFile, data_range: float | None, clean: Scale | None = None) -> Scale:
    """Return an image's scale: from 0 to white or, if white is not known, the range of its values.

    If white is not known, but there is a clean image to compare with, its scale is returned.

    Examples
    --------
    >>> scale_of(ImageFile(np.array([[-1000, 3000]], np.int16)), None)
    Scale(black=-1000.0, span=4000.0)
    """
    white = known_white(image, data_range)
    if white is not None and image.pixels.dtype.kind != "i":
        return Scale(0.0, white)
    if clean is not None:
        return clean
    lowest = float(image.pixels.min())
    return Scale(lowest if white is None else min(0.0, lowest), white_of(image, data_range))


def known_white(image: ImageFile, data_range: float | None) -> float | None:
    """Return the value of white: the given one, that of the file, or that of the dtype.

    None for signed and 32-bit integers, unless it is given.
    """
    check_dtype(image.pixels)
    return data_range or image.data_range or DATA_RANGES[image.pixels.dtype.newbyteorder("=")]


def white_of(image: ImageFile, data_range: float | None) -> float:
    """Return the value of white or, if it is not known, the range of the image's values."""
    return find_data_range(image.pixels, known_white(image, data_range))


def check_white(image: ImageFile, data_range: float | None, name: str) -> None:
    """Raise InputError if more than a thousandth of the values is far outside 0 to white.

    Far means half of white. A clean image may have some highlights, but if many values are far
    outside, the data range is wrong, and so would be the noise that is added or measured.

    Examples
    --------
    >>> check_white(ImageFile(np.linspace(0, 1.2, 64).reshape(8, 8)), None, "fine.npy")
    >>> check_white(
    ...     ImageFile(np.linspace(0, 900, 64).reshape(8, 8)), None, "counts.npy"
    ... )  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    nlnet.errors.InputError: 'counts.npy' has values from 0 to 900, but white is taken to be 1; ...
    """
    white = known_white(image, data_range)
    if white is None or image.pixels.dtype.kind == "i":
        return  # black can be any value
    pixels = image.pixels
    outside = (pixels < -_FAR * white) | (pixels > (1 + _FAR) * white)
    if np.count_nonzero(outside) > _SHARE * pixels.size:
        raise InputError(
            f"{name!r} has values from {pixels.min():g} to {pixels.max():g}, but white is taken to "
            f"be {white:g}; say what it is with --data-range."
        )
