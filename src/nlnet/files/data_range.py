"""The values of black and white in an image, and whether its pixels fit them; those to show."""

import dataclasses
from typing import Any, TypeVar

import numpy as np

from nlnet.errors import InputError
from nlnet.images import ImageFile
from nlnet.inputs import DATA_RANGES, check_dtype, find_data_range

Value = TypeVar("Value", bound=Any)

_SHARE = 1e-3
_FAR = 0.5

_SAMPLES = 250_000
_DARK = 0.25
"""Deeper images that stay below this share of white are stretched, or they would look black."""

_BRIGHT = 2.0


@dataclasses.dataclass(frozen=True)
class Range:
    """The values of black and white, or those that are shown as such.

    Parameters
    ----------
    low, high : float
        In the image's units.
    stretched : bool
        Whether that is another range than the image's own.
    """

    low: float
    high: float
    stretched: bool = False

    def on_255(self, values: Value) -> Value:
        """Scale values so that black is 0 and white 255."""
        scaled: Value = (values - self.low) * (255 / (self.high - self.low))
        return scaled


def range_of(image: ImageFile, data_range: float | None, clean: Range | None = None) -> Range:
    """Return an image's range: from 0 to white or, if white is not known, that of its values.

    If white is not known, but there is a clean image to compare with, its range is returned.

    Examples
    --------
    >>> range_of(ImageFile(np.array([[-1000, 3000]], np.int16)), None)
    Range(low=-1000.0, high=3000.0, stretched=False)
    """
    white = known_white(image, data_range)
    if white is not None and image.pixels.dtype.kind != "i":
        return Range(0.0, white)
    if clean is not None:
        return clean
    lowest = float(image.pixels.min())
    black = lowest if white is None else min(0.0, lowest)
    return Range(black, black + white_of(image, data_range))


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


def display_range(image: ImageFile, white: float) -> Range:
    """Choose the range to show: the image's own, unless it would be all dark or all white."""
    whole = Range(0.0, white)
    if image.pixels.dtype == np.uint8:
        return whole
    step = max(1, int(np.sqrt(image.pixels.size / _SAMPLES)))
    sample = image.pixels[::step, ::step].astype(np.float64)
    finite = sample[np.isfinite(sample)]
    if finite.size == 0:
        return whole
    low, high = np.quantile(finite, (0.001, 0.999))
    dark, bright = high < _DARK * white, high > _BRIGHT * white or low < -white
    signed = image.pixels.dtype.kind == "i"  # whose black is anywhere
    if low < high and (dark or bright or signed):
        return Range(float(low), float(high), stretched=True)
    return whole
