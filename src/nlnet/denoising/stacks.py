"""Arrays of many images, as viewers and microscopes hold them: denoised page by page."""

from __future__ import annotations

import functools
import math
import os
import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.denoising.devices import CPU
from nlnet.denoising.image import denoise
from nlnet.denoising.strength import Strength
from nlnet.errors import InputError
from nlnet.inputs import (
    DATA_RANGES,
    check_data_range,
    check_dtype,
    check_finite,
    find_data_range,
    to_planes,
)
from nlnet.model.model import Model
from nlnet.noise.blocks import sample_tiles
from nlnet.noise.deciding import check_request, decide_noise
from nlnet.noise.record import Noise
from nlnet.progress import Progress, ignore, one_of

Sigma: TypeAlias = float | npt.ArrayLike | None
"""One standard deviation for all pages, one for each, or None to estimate it."""

_SAMPLED_PAGES = 8
"""Pages that are looked at, at most, to find the noise of a whole stack."""


def denoise_stack(
    stack: Any,
    sigma: Sigma = None,
    *,
    noise: str | Noise | None = None,
    per_page: bool = True,
    strength: Strength = 1.0,
    rgb: bool | None = None,
    model: str | os.PathLike[str] | Model = "auto",
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
        correlated noise.
    noise : str or Noise, optional
        As for :func:`nlnet.denoise`: ``"white"``, ``"poisson"``, ``"camera"`` or a record. By
        default it is found out.
    per_page : bool, optional
        Whether noise that is not given is estimated for every page. If not, it is estimated once,
        from a sample of up to 8 pages: as it should be where all pages were taken in the same way,
        and no page shall look smoother than its neighbors.
    strength : float or pair of floats, optional
        As for :func:`nlnet.denoise`.
    rgb : bool, optional
        Whether the last axis holds colors, which is ``layer.rgb`` in napari. By default it does if
        there are more than two axes and the last has length 3 or 4.
    model, data_range, clip, threads, max_memory, device
        As for :func:`nlnet.denoise`, for every page.
    progress : callable, optional
        As for :func:`nlnet.denoise`, with the share of all the work.

    Returns
    -------
    array or torch.Tensor
        The denoised images, a numpy array of the same shape and dtype; for a tensor, a tensor on
        the same device, without gradient.

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
    sigmas = sigma_of_pages(sigma, pages)
    check_pages(sigmas, noise, np.dtype(data.dtype), data_range)
    count = math.prod(pages)
    if sigma is None and not per_page and not isinstance(noise, Noise) and count > 0:
        noise = _find_common_noise(data, pages, image_axes, noise, data_range)
    denoise_page = functools.partial(
        denoise,
        noise=noise,
        strength=strength,
        model=model,
        data_range=data_range,
        clip=clip,
        threads=threads,
        max_memory=max_memory,
        device=device,
    )
    denoised = np.empty(data.shape, data.dtype)
    for number, index in enumerate(np.ndindex(pages)):
        page = np.array(data[index])
        image = page[..., :3] if image_axes == 3 else page  # alpha stays as it is
        image[...] = denoise_page(
            image, sigmas.item(index), progress=one_of(progress or ignore, number, count)
        )
        denoised[index] = page
    return _like(stack, denoised) if _is_tensor(stack) else denoised


def sigma_of_pages(sigma: Sigma, pages: tuple[int, ...]) -> Array:
    """Return sigma for each page, None where it is to be estimated.

    Raises
    ------
    InputError
        If there are several, but not one for each page.

    Examples
    --------
    >>> sigma_of_pages(0.1, (2,)).tolist()
    [0.1, 0.1]
    """
    sigmas = np.empty(pages, object)
    if not isinstance(sigma, Sequence) and not hasattr(sigma, "shape"):
        sigmas.fill(sigma)
        return sigmas
    given = np.asarray(sigma)
    if given.ndim == 0:
        sigmas.fill(given.item())
        return sigmas
    if given.shape != pages:
        raise InputError(
            f"sigma has shape {given.shape}, but must be one number, or one for each page, of "
            f"shape {pages}."
        )
    sigmas[...] = given
    return sigmas


def check_pages(
    sigmas: Array, noise: str | Noise | None, dtype: np.dtype[Any], data_range: float | None
) -> None:
    """Raise InputError for what can be told to be wrong before any page is looked at."""
    check_dtype(np.empty(0, dtype))
    span = DATA_RANGES[dtype.newbyteorder("=")]
    if data_range is not None:
        span = check_data_range(data_range)
    for sigma in sigmas.ravel():
        check_request(sigma, noise, math.inf if span is None else span)


def _find_common_noise(
    data: Any,
    pages: tuple[int, ...],
    image_axes: int,
    kind: str | None,
    data_range: float | None,
) -> Noise:
    """Estimate the noise of all pages from some of them, as if they were one image."""
    count = math.prod(pages)
    chosen = np.linspace(0, count - 1, min(count, _SAMPLED_PAGES)).round().astype(int)
    parts: list[Array] = []
    for number in chosen:
        page = np.array(data[np.unravel_index(number, pages)])
        planes = to_planes(page[..., :3], -1) if image_axes == 3 else to_planes(page, None)
        check_finite(planes)
        parts += [tile.copy() for tile in sample_tiles(planes)]
    sample = np.concatenate(parts, axis=1)
    return decide_noise(sample, find_data_range(sample, data_range), None, kind)


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
    # Who has a tensor has imported torch; nobody else shall have to.
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
