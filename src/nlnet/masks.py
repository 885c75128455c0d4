"""Pixels that are left out: hidden by a mask, or NaN.

They are filled with copies of other pixels, so that they look like the rest of the image, noise
included, and what was there has no influence on anything. They come back as they were.
"""

import dataclasses
import sys
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.inputs import check_channel_axis, check_dtype, check_finite, from_planes, to_planes

Mask = npt.NDArray[np.bool_]

_FAR = 1 << 29
"""More than any image is wide."""

_MOST = 0.5
"""Share of the pixels that may be left out."""


def find_mask(image: object, mask: npt.ArrayLike | None, axis: int | None) -> Mask | None:
    """Return which pixels are left out, (H, W); None if all are there.

    Parameters
    ----------
    image : array or masked array
        Of a supported dtype and shape. A pixel is left out if one of its channels is masked or NaN.
    mask : array of bool or integers, or None
        True, or any number but 0, for pixels to leave out: of the image's height and width, or of
        its shape.
    axis : int or None
        Where the channels are.

    Raises
    ------
    InputError
        If the mask does not fit, or hides more than half of the image.

    Examples
    --------
    >>> find_mask(np.array([[1.0, np.nan], [3.0, 4.0]]), None, None).tolist()
    [[False, True], [False, False]]
    >>> find_mask(np.zeros((2, 2)), None, None) is None
    True
    """
    planes = to_planes(np.asarray(image), axis)
    hidden = np.zeros(planes.shape[1:], np.bool_)
    if mask is not None:
        hidden |= _given_mask(np.asarray(mask), planes, axis)
    if _is_masked(image):
        hidden |= to_planes(np.ma.getmaskarray(image), axis).any(axis=0)
    if planes.dtype.kind == "f":
        hidden |= np.isnan(planes).any(axis=0)
    count = int(np.count_nonzero(hidden))
    if not count:
        return None
    check_share(count, hidden.size)
    return hidden


def is_missing(image: Array) -> bool:
    """Tell whether no pixel of an image is there: all are NaN or masked.

    Examples
    --------
    >>> is_missing(np.full((2, 2), np.nan)), is_missing(np.zeros((2, 2)))
    (True, False)
    """
    if image.dtype.kind == "f" and np.isnan(np.asarray(image)).all():
        return True
    return _is_masked(image) and bool(np.ma.getmaskarray(image).all())


def check_share(count: int, size: int) -> None:
    """Raise InputError if more pixels of an image are left out than may be."""
    if count > _MOST * size:
        raise InputError(
            f"{count} of the image's {size} pixels are masked or NaN, but at most half of them may "
            "be."
        )


def check_mask_dtype(dtype: np.dtype[Any]) -> None:
    """Raise InputError unless a mask can be of that dtype."""
    if dtype.kind not in "biu":
        raise InputError(
            f"The mask's dtype is {dtype}, but must be bool or integer: True, or any number but 0, "
            "for pixels to leave out."
        )


def _given_mask(mask: Array, planes: Array, axis: int | None) -> Mask:
    check_mask_dtype(mask.dtype)
    mask = mask != 0
    if mask.shape == planes.shape[1:]:
        return mask
    whole = from_planes(planes, axis).shape
    if mask.shape == whole:
        return np.asarray(to_planes(mask, axis).any(axis=0))
    wanted = f"{planes.shape[1:]}" + ("" if whole == planes.shape[1:] else f" or {whole}")
    raise InputError(f"The mask has shape {mask.shape}, but must be {wanted}, as the image.")


def fill(planes: Array, hidden: Mask) -> Array:
    """Return a copy of (C, H, W) planes in which hidden pixels are copies of others.

    The image is mirrored at the nearest visible pixel in the same row or column; where the mirrored
    pixel is hidden too, that nearest pixel is repeated. A mean of neighbors would have less noise
    than they have, and the noise of the image would be underestimated.

    Examples
    --------
    >>> row = np.array([[[1, 2, 99, 99, 5, 6, 7]]])
    >>> fill(row, row[0] == 99).tolist()
    [[[1, 2, 1, 6, 5, 6, 7]]]
    """
    filled, left = planes.copy(), hidden
    # A pixel whose row and column are all hidden waits until its neighbors are filled.
    while left.any():
        there = ~left
        y, x = np.nonzero(left)
        down, across = _to_nearest(there.T, x, y), _to_nearest(there, y, x)
        vertical = np.abs(down) < np.abs(across)
        down, across = np.where(vertical, down, 0), np.where(vertical, 0, across)
        found = np.maximum(np.abs(down), np.abs(across)) < _FAR // 2
        y, x, down, across = (each[found] for each in (y, x, down, across))
        times = np.where(_has(there, y + 2 * down, x + 2 * across), 2, 1)
        filled[:, y, x] = filled[:, y + times * down, x + times * across]
        left = left.copy()
        left[y, x] = False
    return filled


@dataclasses.dataclass(frozen=True, eq=False)
class Planes:
    """An image that has been checked: channels first, and what is left out filled.

    Parameters
    ----------
    planes : (C, H, W) array
        Finite values, of a supported dtype.
    hidden : (H, W) array of bool or None
        The pixels that are left out, if any.
    axis : int or None
        Where the channels were.
    image : array
        The image that it was, maybe a masked array.
    """

    planes: Array
    hidden: Mask | None
    axis: int | None
    image: Array

    def cast(self, dtype: np.dtype[Any] | None) -> "Planes":
        """Return the same planes as values of another dtype, if there is one."""
        if dtype is None:
            return self
        return dataclasses.replace(self, planes=self.planes.astype(dtype, copy=False))

    def part(self, region: tuple[slice, slice]) -> "Planes | None":
        """Return some rows and columns of it, filled from themselves; None if none is visible."""
        axis = self.axis
        image = self.image if axis is None else np.moveaxis(self.image, axis, -1)
        image = image[region] if axis is None else np.moveaxis(image[region], -1, axis)
        hidden = None if self.hidden is None else self.hidden[region]
        planes = self.planes[(slice(None), *region)]
        if hidden is None or not hidden.any():
            return Planes(planes, None, axis, image)
        if hidden.all():
            return None
        return Planes(fill(planes, hidden), hidden, axis, image)

    @property
    def left_out(self) -> int:
        """Number of pixels that are left out."""
        return 0 if self.hidden is None else int(np.count_nonzero(self.hidden))

    def put_back(self, planes: Array) -> Array:
        """Return other planes as an image of the same kind; what was left out is as it was."""
        if self.hidden is not None:
            planes[:, self.hidden] = to_planes(np.asarray(self.image), self.axis)[:, self.hidden]
        return with_mask_of(self.image, from_planes(planes, self.axis))

    def like(self, planes: Array) -> Array:
        """Return floating planes as an image of the same kind; what was left out is NaN."""
        if self.hidden is not None:
            planes[:, self.hidden] = np.nan
        return with_mask_of(self.image, from_planes(planes, self.axis))


def read_planes(image: object, mask: npt.ArrayLike | None, channel_axis: int | None) -> Planes:
    """Check an image, and return it as planes.

    Parameters
    ----------
    image, mask, channel_axis
        As for :func:`nlnet.denoise`.

    Raises
    ------
    InputError
        If the image or the mask cannot be used.
    """
    pixels = np.asanyarray(image)
    check_dtype(pixels)
    axis = check_channel_axis(pixels, channel_axis)
    planes = to_planes(np.asarray(pixels), axis)
    hidden = find_mask(pixels, mask, axis)
    if hidden is not None:
        planes = fill(planes, hidden)
    check_finite(planes)
    return Planes(planes, hidden, axis, pixels)


def _is_masked(image: object) -> "TypeGuard[np.ma.MaskedArray[Any, Any]]":
    """Tell whether it is a masked array; numpy.ma, slow to load, is only there if one is in use."""
    return "numpy.ma" in sys.modules and isinstance(image, np.ma.MaskedArray)


def with_mask_of(image: object, pixels: Array) -> Array:
    """Return the pixels as a masked array if the image is one."""
    if not _is_masked(image):
        return pixels
    return np.ma.MaskedArray(pixels, mask=np.ma.getmask(image).copy(), fill_value=image.fill_value)


def _to_nearest(
    there: Mask, lines: npt.NDArray[np.intp], places: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp]:
    """Return the signed distance along each line to the nearest visible pixel; far if none is."""
    numbers = np.arange(there.shape[1], dtype=np.int32)
    before = np.maximum.accumulate(np.where(there, numbers, -_FAR), axis=1)[lines, places]
    reverse = np.where(there, numbers, _FAR)[:, ::-1]
    after = np.minimum.accumulate(reverse, axis=1)[:, ::-1][lines, places]
    return np.asarray(np.where(places - before <= after - places, before, after) - places, np.intp)


def _has(there: Mask, y: npt.NDArray[np.intp], x: npt.NDArray[np.intp]) -> Mask:
    """Tell whether these pixels are inside the image, and visible."""
    height, width = there.shape
    inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
    return np.asarray(inside & there[np.where(inside, y, 0), np.where(inside, x, 0)])
