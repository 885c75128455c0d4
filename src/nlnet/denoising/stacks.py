"""Arrays of many images, as viewers and microscopes hold them: denoised page by page."""

import math
import sys
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.denoising.devices import CPU
from nlnet.denoising.image import stoppable, warnings_of_pages
from nlnet.denoising.network import Network
from nlnet.denoising.pages import (
    PageLoop,
    Sigma,
    find_axis,
    groups_of_pages,
    series_of_pages,
    sigma_of_pages,
    split_sigma,
)
from nlnet.denoising.plan import Request
from nlnet.errors import InputError, about
from nlnet.inputs import Strength, check_float
from nlnet.masks import Planes, is_missing, read_planes, with_mask_of
from nlnet.model.loading import AUTO, ModelLike
from nlnet.noise.record import Noise
from nlnet.progress import Progress


def denoise_stack(
    stack: Any,
    sigma: Sigma = None,
    *,
    noise: str | Noise | None = None,
    per_page: bool = False,
    noise_axis: int | None = None,
    along: int | str | None = None,
    strength: Strength = 1.0,
    mask: Any = None,
    rgb: bool | None = None,
    model: ModelLike = AUTO,
    quality: str | None = None,
    data_range: float | None = None,
    clip: bool | None = None,
    threads: int | None = None,
    max_memory: int | None = None,
    device: str = CPU,
    progress: Progress | bool | None = None,
    dtype: npt.DTypeLike | None = None,
    hot_pixels: bool = False,
    error: bool = False,
) -> Any:
    """Remove the noise of every image of an array.

    It takes the data of an image layer of napari as it is: a single image, a stack, a movie, gray
    or RGB. Each page is an image of its own, so neither z nor time is smoothed, unless you say
    along which axis pages show nearly the same.

    Parameters
    ----------
    stack : array or torch.Tensor
        (..., H, W) for gray or (..., H, W, 3) for RGB, with any number of axes in front; RGBA
        keeps its alpha. Lazy arrays (dask, zarr, memory maps) are read a page at a time. For
        batches of torch with their colors before the rows, there is `nlnet.torch.Denoiser`.
    sigma : float or array, optional
        Standard deviation of white noise in the array's own units: one for all pages, or an array
        of the shape of the axes in front, with one for each page. With ``noise="camera"``, of the
        correlated noise. Also a map of white noise that varies, as for :func:`nlnet.denoise`: (H,
        W) for all pages, or with the axes in front.
    noise : str or Noise, optional
        As for :func:`nlnet.denoise`: ``"white"``, ``"poisson"``, ``"camera"`` or a record. By
        default it is estimated.
    per_page : bool, optional
        Whether noise that is not given is estimated for every page separately: for pages that have
        nothing in common. By default it is estimated once, from a sample of up to 8 pages, so that
        no page looks smoother than its neighbors.
    noise_axis : int, optional
        The axis in front whose pages differ in their noise, such as the channels of a microscope:
        it is then estimated once for every index of that axis.
    along : int or str, optional
        The axis in front along which pages are neighbors, such as the time of a movie or the depth
        of a stack: 0 for the first one, or its name if the array has names for its axes (xarray,
        zarr). Each page is then merged with the four before and the four after it, moved to where
        they show the same, before the rest of the noise is removed. What only one page shows stays
        in that page. By default every page is denoised by itself. A page that is all NaN stays.
    mask : array of bool or integers, optional
        True for pixels to leave out, as for :func:`nlnet.denoise`: (H, W) for all pages, or with
        the axes in front. Masked arrays bring their own, and NaN is always left out. At most half
        of a page may be left out.
    rgb : bool, optional
        Whether the last axis holds colors, which is ``layer.rgb`` in napari. By default it does if
        there are more than two axes and the last has length 3 or 4.
    model, quality, data_range, clip, threads, max_memory, device
        As for :func:`nlnet.denoise`, for every page.
    progress : callable or True, optional
        As for :func:`nlnet.denoise`, with the share of all the work.
    strength, dtype, hot_pixels, error : optional
        As for :func:`nlnet.denoise`; `error` not together with `along`.

    Returns
    -------
    array or torch.Tensor
        The denoised images, a numpy array of the same shape and dtype, unless another dtype is
        asked for; for a masked array, a masked array; for a tensor, a tensor on its device, without
        gradient. With ``error=True``, a pair of them and a float32 array of the same shape.

    Raises
    ------
    InputError, ModelError, FileError, Cancelled
        As :func:`nlnet.denoise`.

    Examples
    --------
    >>> import numpy as np
    >>> import nlnet
    >>> movie = np.random.default_rng(0).normal(0.5, 0.1, (2, 3, 32, 32))  # time, z, y, x
    >>> denoised = nlnet.denoise_stack(movie, 0.1)
    >>> denoised.shape
    (2, 3, 32, 32)
    >>> bool(denoised.std() < movie.std() / 4)
    True

    A page that is noisier than the others:

    >>> denoised = nlnet.denoise_stack(movie[0], [0.1, 0.1, 0.12])
    """
    result_dtype = check_float(dtype)
    pages = StackPages(stack, rgb, mask, result_dtype)
    sigma, maps = split_sigma(sigma, pages.shape, pages.size)
    sigmas = sigma_of_pages(sigma, pages.shape)
    request = Request(noise, data_range, clip, hot_pixels, error)
    if error and along is not None:
        raise InputError("Errors (error=True) are known of single pages, but not along an axis.")
    errors = np.full(pages.data.shape, np.nan, np.float32) if error else None
    for each in (*sigmas.ravel(), maps):
        request.check(each, pages.data.dtype)
    groups = groups_of_pages(pages.shape, noise_axis, per_page=per_page or maps is not None)
    network = Network.of(model, pages.channels, quality, threads, max_memory, device, strength)
    report = stoppable(progress)
    axis = None if along is None else find_axis(along, pages.shape, names_of_axes(stack))
    asked = groups, request, network, result_dtype
    loop = _StackLoop(pages, sigmas, maps, axis is not None, *asked)
    series = None if axis is None else series_of_pages(pages.shape, axis)
    plans = []
    for number, page, image, found in loop.run(series, report):
        pages.write(number, page, pages.without_alpha(page) if image is None else image)
        plans += [] if found is None else [found.plan]
        if errors is not None and found is not None:
            pages.without_alpha(errors[pages.index_of(number)])[...] = found.error
    for message in warnings_of_pages(plans, given=isinstance(noise, Noise)):
        warnings.warn(message, stacklevel=2)
    return pages.result() if errors is None else (pages.result(), errors)


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
    if not _is_tensor(stack):
        return stack if hasattr(stack, "shape") and hasattr(stack, "dtype") else np.asarray(stack)
    tensor = stack.detach().cpu()
    try:
        return np.asarray(tensor.numpy())
    except TypeError:  # bfloat16, which numpy does not have
        return np.asarray(tensor.float().numpy())


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


class _StackLoop(PageLoop[Array]):
    """The loop over the pages of a stack; parameters as in `denoise_stack`, checked."""

    def __init__(
        self, pages: StackPages, sigmas: Array, maps: Any, is_series: bool, *asked: Any
    ) -> None:
        super().__init__(pages.size, *asked)
        self._pages, self._sigmas, self._maps = pages, sigmas.ravel(), maps
        self._is_series = is_series

    def read(self, number: int) -> tuple[Array, Planes | None]:
        return self._pages.read(number, may_miss=self._is_series)

    def name_of(self, number: int) -> str:
        return self._pages.name_of(number)

    def sigma_of(self, number: int, planes: Planes | None = None) -> Any:
        if self._maps is None or planes is None:
            return self._sigmas.item(number)
        index = self._pages.index_of(number) if self._maps.ndim > 2 else ()
        return _read_page(self._maps, index)
