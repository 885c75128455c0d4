"""The pages of an array of images, read one at a time, and what they become."""

import math
import sys
from typing import Any

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError, about
from nlnet.masks import Planes, is_missing, read_planes, with_mask_of


class StackPages:
    """The pages of a stack, read one at a time, and what they become.

    Raises
    ------
    InputError
        If it is no stack of images, or the mask fits neither one page nor all of them.
    """

    def __init__(
        self, stack: Any, rgb: bool | None, mask: Any, dtype: np.dtype[Any] | None = None
    ) -> None:
        self._stack = stack
        self.data = as_array(stack)
        shape = self.data.shape
        self._axes = 3 if _holds_colors(shape, rgb) else 2
        self.channels = 3 if self._axes == 3 else 1
        self.shape: tuple[int, ...] = shape[: -self._axes]
        self.size: tuple[int, int] = shape[-self._axes :][:2]
        self.count = math.prod(self.shape)
        self._denoised = np.empty(shape, dtype or self.data.dtype)
        self._mask = None if mask is None else as_array(mask)
        wanted = [self.size, (*self.shape, *self.size), shape]
        if self._mask is not None and self._mask.shape not in wanted:
            listed = " or ".join(dict.fromkeys(map(str, wanted)))
            raise InputError(f"The mask has shape {self._mask.shape}, but must be {listed}.")

    def index_of(self, number: int) -> tuple[int, ...]:
        """Return where a page is."""
        return tuple(map(int, np.unravel_index(number, self.shape or (1,))))[: len(self.shape)]

    def name_of(self, number: int) -> str:
        """Return what errors call a page, empty if it is the only one."""
        return "" if self.count == 1 else f"Page {number + 1} of {self.count}"

    def read(self, number: int, *, may_miss: bool) -> tuple[Array, Planes | None]:
        """Return a page, and what has been checked of it and is denoised: all but alpha.

        That is None if no pixel of the page is there, and such pages may be.
        """
        page, axis = _read_page(self.data, self.index_of(number)), -1 if self._axes == 3 else None
        shown = self.without_alpha(page)
        if may_miss and is_missing(shown):
            return page, None
        with about(self.name_of(number)):
            return page, read_planes(shown, self._mask_of(self.index_of(number)), axis)

    def write(self, number: int, page: Array, result: Array) -> None:
        """Keep what a page has become; alpha is as it was."""
        pixels = np.array(np.ma.getdata(page), self._denoised.dtype)
        self.without_alpha(pixels)[...] = np.ma.getdata(result)
        if isinstance(page, np.ma.MaskedArray) and not isinstance(
            self._denoised, np.ma.MaskedArray
        ):
            self._denoised = np.ma.MaskedArray(self._denoised, fill_value=page.fill_value)
        self._denoised[self.index_of(number)] = with_mask_of(page, pixels)

    def result(self) -> Any:
        """Return the denoised stack, of the kind of the stack itself."""
        if not _is_tensor(self._stack):
            return self._denoised
        tensor = sys.modules["torch"].from_numpy(self._denoised)
        same = self._denoised.dtype == self.data.dtype
        return tensor.to(self._stack) if same else tensor.to(self._stack.device)

    def _mask_of(self, index: tuple[int, ...]) -> Any:
        if self._mask is None or self._mask.shape == self.size:
            return self._mask
        mask = _read_page(self._mask, index)
        return self.without_alpha(mask) if mask.ndim == 3 else mask

    def without_alpha(self, page: Array) -> Array:
        """Return a view of what is denoised of a page."""
        return page[..., :3] if self._axes == 3 else page


def map_of(maps: Any, index: tuple[int, ...]) -> Array:
    """Return the map of sigma of a page."""
    return _read_page(maps, () if maps.ndim == 2 else index)


def _read_page(data: Any, index: tuple[int, ...]) -> Array:
    """Return a page in memory; of masked arrays, also of dask's, with its mask."""
    page = data[index]
    return np.asanyarray(page.compute() if hasattr(page, "compute") else page)


def _holds_colors(shape: tuple[int, ...], rgb: bool | None) -> bool:
    fits = len(shape) > 2 and shape[-1] in (3, 4)
    if rgb and not fits:
        raise InputError(
            f"The stack has shape {shape}, but with rgb the last of three or more axes must be 3 "
            "(RGB) or 4 (RGBA)."
        )
    if len(shape) < 2:
        raise InputError(
            f"The stack has shape {shape}, but must be (..., H, W) for gray or (..., H, W, 3) "
            "for RGB."
        )
    return fits if rgb is None else rgb


def as_array(stack: Any) -> Any:
    """Return what has pages that can be read one at a time."""
    if _is_tensor(stack):
        return _to_numpy(stack)
    return stack if hasattr(stack, "shape") and hasattr(stack, "dtype") else np.asarray(stack)


def names_of_axes(stack: Any) -> tuple[str, ...]:
    """Return the names that an array has for its axes, as arrays of xarray and zarr have."""
    names = getattr(stack, "dims", None) or getattr(
        getattr(stack, "metadata", None), "dimension_names", None
    )
    return tuple(map(str, names or ()))


def _is_tensor(stack: Any) -> bool:
    # If there is a tensor, torch is imported already; do not import it otherwise.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(stack, torch.Tensor)


def _to_numpy(tensor: Any) -> Array:
    detached = tensor.detach().cpu()
    try:
        return np.asarray(detached.numpy())
    except TypeError:  # bfloat16, which numpy does not have
        return np.asarray(detached.float().numpy())
