"""Checks of images and numbers that users pass; errors are one sentence."""

import math
import numbers
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.errors import InputError

DATA_RANGES: dict[np.dtype[Any], float | None] = {
    np.dtype(np.uint8): 255.0,
    np.dtype(np.uint16): 65535.0,
    np.dtype(np.int8): None,
    np.dtype(np.int16): None,
    np.dtype(np.int32): None,
    np.dtype(np.uint32): None,
    np.dtype(np.float16): 1.0,
    np.dtype(np.float32): 1.0,
    np.dtype(np.float64): 1.0,
}
"""The supported dtypes, and the default data range of each.

Signed and 32-bit integers have none: the range of the data is used.
"""

AnyArray = TypeVar("AnyArray", bound=Any)

KINDS = {1: "grayscale", 3: "color"}
"""The numbers of channels an image may have, and what such an image is called."""


def check_dtype(pixels: Array) -> None:
    """Refuse dtypes other than the supported ones."""
    if pixels.dtype.newbyteorder("=") not in DATA_RANGES:
        raise InputError(
            f"The image's dtype is {pixels.dtype}, but must be an integer of 8, 16 or 32 bits or "
            "float16, float32 or float64."
        )


def find_data_range(values: Array, data_range: float | None) -> float:
    """Return the data range: the given one, that of the dtype, or the range of the values."""
    known = data_range or DATA_RANGES[values.dtype.newbyteorder("=")]
    if known is not None:
        return known
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    return high - low or 1.0


def check_channel_axis(pixels: Array, channel_axis: int | None) -> int | None:
    """Return the axis of the channels, None for a 2-D image."""
    if pixels.ndim not in (2, 3):
        raise InputError(
            f"The image has shape {pixels.shape}, but must be (H, W) for gray or (H, W, 3) for RGB."
        )
    if channel_axis is None:
        if pixels.ndim == 2:
            return None
        if pixels.shape[-1] != 3:
            raise InputError(
                f"The image has shape {pixels.shape}, but the last of three axes must be 3 (RGB); "
                "name another with channel_axis, pass alpha and pages of a stack separately."
            )
        return -1
    if not isinstance(channel_axis, numbers.Integral) or isinstance(channel_axis, bool):
        raise InputError(f"channel_axis is {channel_axis!r}, but must be an integer or None.")
    if pixels.ndim != 3 or not -3 <= channel_axis < 3:
        raise InputError(
            f"channel_axis is {channel_axis}, but the image of shape {pixels.shape} has no such "
            "channel axis; it must be one of the three axes of a 3-D image."
        )
    if pixels.shape[channel_axis] not in KINDS:
        raise InputError(
            f"Axis {channel_axis} of the image has {pixels.shape[channel_axis]} channels, "
            "but must have 3 (RGB) or 1 (gray)."
        )
    return int(channel_axis)


def to_planes(pixels: AnyArray, axis: int | None) -> AnyArray:
    """Return a view with the channels first, (C, H, W); a single one for gray.

    Dask arrays stay lazy.
    """
    planes: AnyArray = pixels[np.newaxis] if axis is None else np.moveaxis(pixels, axis, 0)
    return planes


def from_planes(planes: Array, axis: int | None) -> Array:
    """Return a view with the channels where they were, the inverse of :func:`to_planes`."""
    return planes[0] if axis is None else np.moveaxis(planes, 0, axis)


def check_finite(pixels: Array) -> None:
    """Raise InputError if a value is NaN, infinite or too large for float32."""
    if pixels.dtype.kind in "iu":
        return
    largest = np.finfo(np.float32).max
    # Written so that NaN does not pass.
    unusable = pixels.size - int(np.count_nonzero(np.abs(pixels) <= largest))
    if unusable:
        nan, infinite = (int(np.count_nonzero(find(pixels))) for find in (np.isnan, np.isinf))
        counts = {
            "NaN": nan,
            "infinite": infinite,
            "too large for float32": unusable - nan - infinite,
        }
        found = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        raise InputError(f"The image has values that cannot be used: {found}.")


def check_data_range(data_range: object) -> float:
    """Return the data range as a float, if it can be one."""
    number = check_number("data_range", data_range)
    if not (0 < number < math.inf):
        raise InputError(f"data_range is {number:g}, but must be above 0 and finite.")
    return number


def check_sigma(sigma: object, most: float) -> float:
    """Return sigma as a float, if it can be the noise of an image of that data range."""
    number = check_number("sigma", sigma)
    if not (0 < number <= most and number < math.inf):
        bound = "finite" if math.isinf(most) else f"at most the data range, {most:g}"
        raise InputError(f"sigma is {number:g}, but must be above 0 and {bound}.")
    return number


def check_number(name: str, value: object) -> float:
    """Return a real number as a float."""
    if isinstance(value, np.ndarray):
        raise InputError(f"{name} is an array of shape {value.shape}, but must be a number.")
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}, but must be a number.")
    return float(value)


def check_float(dtype: npt.DTypeLike | None) -> np.dtype[Any] | None:
    """Return the dtype of a result, None for that of the image; it must be floating."""
    try:
        wanted = None if dtype is None else np.dtype(dtype)
    except TypeError:
        wanted = np.dtype(object)
    if wanted is not None and wanted not in (np.float32, np.float64):
        raise InputError(f"dtype is {dtype!r}, but must be float32 or float64.")
    return wanted


def check_count(name: str, value: object) -> None:
    """Raise InputError unless the value is None or a whole number of at least 1."""
    if value is None:
        return
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} is {value!r}, but must be a whole number of at least 1.")
