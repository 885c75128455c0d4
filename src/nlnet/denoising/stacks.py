"""Arrays of many images, as viewers and microscopes hold them: denoised page by page."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.devices import CPU
from nlnet.denoising.image import denoise
from nlnet.denoising.pages import Sigma, check_pages, sigma_of_pages, split_sigma
from nlnet.denoising.sigma_map import check_map_noise
from nlnet.denoising.strength import Strength
from nlnet.errors import InputError, about
from nlnet.inputs import check_finite
from nlnet.masks import fill_hidden, with_mask_of
from nlnet.model.loading import AUTO, ModelLike, check_quality
from nlnet.noise.common import find_common_noise
from nlnet.noise.record import Noise
from nlnet.progress import Progress, ignore, one_of


def denoise_stack(
    stack: Any,
    sigma: Sigma = None,
    *,
    noise: str | Noise | None = None,
    per_page: bool = True,
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
    progress: Progress | None = None,
) -> Any:
    """Remove the noise of every image of an array.

    It takes the data of an image layer of napari as it is: a single image, a stack, a movie, gray
    or RGB. Each page is an image of its own, so neither z nor time is smoothed.

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
        Whether noise that is not given is estimated for every page separately. False estimates it
        once, from a sample of up to 8 pages: for stacks whose pages were all taken in the same way,
        so that no page looks smoother than its neighbors.
    strength : float or pair of floats, optional
        As for :func:`nlnet.denoise`.
    mask : array of bool, optional
        True for pixels to leave out, as for :func:`nlnet.denoise`: (H, W) for all pages, or with
        the axes in front. Masked arrays bring their own, and NaN is always left out. At most half
        of a page may be left out.
    rgb : bool, optional
        Whether the last axis holds colors, which is ``layer.rgb`` in napari. By default it does if
        there are more than two axes and the last has length 3 or 4.
    model, quality, data_range, clip, threads, max_memory, device
        As for :func:`nlnet.denoise`, for every page.
    progress : callable, optional
        As for :func:`nlnet.denoise`, with the share of all the work.

    Returns
    -------
    array or torch.Tensor
        The denoised images, a numpy array of the same shape and dtype; for a masked array, a
        masked array; for a tensor, a tensor on the same device, without gradient.

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
    data = _as_array(stack)
    image_axes = 3 if _holds_colors(data.shape, rgb) else 2
    pages: tuple[int, ...] = data.shape[:-image_axes]
    sigma, maps = split_sigma(sigma, pages, data.shape[-image_axes:][:2])
    if maps is not None:
        check_map_noise(noise)
        maps = _as_array(maps)
    sigmas = sigma_of_pages(sigma, pages)
    masks = _Masks(mask, data.shape, image_axes)
    check_quality(quality, model)
    check_pages(sigmas, noise, np.dtype(data.dtype), data_range)
    count = math.prod(pages)
    given = sigma is not None or maps is not None
    if not given and not per_page and not isinstance(noise, Noise) and count > 0:
        noise = _find_common_noise(data, pages, image_axes, noise, masks, data_range)
    denoise_page = functools.partial(
        denoise,
        noise=noise,
        strength=strength,
        model=model,
        quality=quality,
        data_range=data_range,
        clip=clip,
        threads=threads,
        max_memory=max_memory,
        device=device,
    )
    denoised = np.empty(data.shape, data.dtype)
    for number, index in enumerate(np.ndindex(pages)):
        page = _read_page(data, index)
        image = _without_alpha(page, image_axes)
        with about(_page(number, count)):
            result = denoise_page(
                image,
                sigmas.item(index) if maps is None else _map_of(maps, index),
                mask=masks.of(index),
                progress=one_of(progress or ignore, number, count),
            )
        pixels = np.array(np.ma.getdata(page))
        _without_alpha(pixels, image_axes)[...] = np.ma.getdata(result)
        if isinstance(page, np.ma.MaskedArray) and not isinstance(denoised, np.ma.MaskedArray):
            denoised = np.ma.MaskedArray(denoised, fill_value=page.fill_value)
        denoised[index] = with_mask_of(page, pixels)
    return _like(stack, denoised) if _is_tensor(stack) else denoised


class _Masks:
    """The mask that is given, page by page.

    Raises
    ------
    InputError
        If its shape fits neither one page nor all of them.
    """

    def __init__(self, mask: Any, shape: tuple[int, ...], image_axes: int) -> None:
        self._mask = None if mask is None else _as_array(mask)
        self._for_all = False
        if self._mask is None:
            return
        pages, image = shape[:-image_axes], shape[-image_axes:]
        self._for_all = self._mask.shape == image[:2]
        wanted = [image[:2], (*pages, *image[:2]), shape]
        if self._mask.shape not in wanted:
            listed = " or ".join(dict.fromkeys(map(str, wanted)))
            raise InputError(f"The mask has shape {self._mask.shape}, but must be {listed}.")
        self._colors = image_axes == 3 and self._mask.shape == shape

    def of(self, index: tuple[int, ...]) -> Any:
        """Return the mask of a page, None if there is none."""
        if self._mask is None or self._for_all:
            return self._mask
        mask = _read_page(self._mask, index)
        return _without_alpha(mask, 3) if self._colors else mask


def _map_of(maps: Any, index: tuple[int, ...]) -> Array:
    """Return the map of sigma of a page."""
    return _read_page(maps, () if maps.ndim == 2 else index)


def _read_page(data: Any, index: tuple[int, ...]) -> Array:
    """Return a page in memory; of masked arrays, also of dask's, with its mask."""
    page = data[index]
    return np.asanyarray(page.compute() if hasattr(page, "compute") else page)


def _without_alpha(page: Array, image_axes: int) -> Array:
    """Return a view of what is denoised of a page: alpha stays as it is."""
    return page[..., :3] if image_axes == 3 else page


def _page(number: int, count: int) -> str:
    """Return what errors call a page, empty if it is the only one."""
    return "" if count == 1 else f"Page {number + 1} of {count}"


def _find_common_noise(
    data: Any,
    pages: tuple[int, ...],
    image_axes: int,
    kind: str | None,
    masks: _Masks,
    data_range: float | None,
) -> Noise:
    """Estimate the noise of all pages from some of them."""
    count = math.prod(pages)

    def planes_of(number: int) -> Array:
        index = tuple(map(int, np.unravel_index(number, pages)))
        image = _without_alpha(_read_page(data, index), image_axes)
        with about(_page(number, count)):
            planes, _ = fill_hidden(image, masks.of(index), -1 if image_axes == 3 else None)
            check_finite(planes)
        return planes

    return find_common_noise(count, planes_of, data_range, kind)


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


def _as_array(stack: Any) -> Any:
    """Return what has pages that can be read one at a time."""
    if _is_tensor(stack):
        return _to_numpy(stack)
    return stack if hasattr(stack, "shape") and hasattr(stack, "dtype") else np.asarray(stack)


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


def _like(tensor: Any, pixels: Array) -> Any:
    """Return an array as a tensor of the dtype, and on the device, of another one."""
    return sys.modules["torch"].from_numpy(pixels).to(tensor)
