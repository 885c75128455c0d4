"""Arrays of many images, as viewers and microscopes hold them: denoised page by page."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising import denoise
from nlnet.devices import CPU
from nlnet.errors import InputError
from nlnet.model import Model


def denoise_stack(
    stack: Any,
    sigma: float | None = None,
    *,
    rgb: bool | None = None,
    model: str | os.PathLike[str] | Model = "auto",
    data_range: float | None = None,
    clip: bool = True,
    threads: int | None = None,
    max_memory: int | None = None,
    device: str = CPU,
    progress: Callable[[float], object] | None = None,
) -> Array:
    """Remove white Gaussian noise from every image of an array.

    It takes the data of an image layer of napari as it is: a single image, a stack, a movie, gray
    or RGB. Each page is an image of its own, so neither z nor time is smoothed.

    Parameters
    ----------
    stack : array
        (..., H, W) for gray or (..., H, W, 3) for RGB, with any number of axes in front; RGBA
        keeps its alpha. Lazy arrays (dask, zarr, memory maps) are read a page at a time.
    sigma : float, optional
        Standard deviation of the noise in the array's own units; by default it is estimated for
        every page.
    rgb : bool, optional
        Whether the last axis holds colors, which is ``layer.rgb`` in napari. By default it does if
        there are more than two axes and the last has length 3 or 4.
    model, data_range, clip, threads, max_memory, device
        As for :func:`nlnet.denoise`, for every page.
    progress : callable, optional
        As for :func:`nlnet.denoise`, with the share of all the work.

    Returns
    -------
    array
        The denoised images, a numpy array of the same shape and dtype.

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
    """
    data = stack if hasattr(stack, "shape") and hasattr(stack, "dtype") else np.asarray(stack)
    image_axes = 3 if _holds_colors(data.shape, rgb) else 2
    pages: tuple[int, ...] = data.shape[:-image_axes]
    denoise_page = functools.partial(
        denoise,
        sigma=sigma,
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
        report = None if progress is None else _part_of(progress, number, math.prod(pages))
        image[...] = denoise_page(image, progress=report)
        denoised[index] = page
    return denoised


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


def _part_of(
    progress: Callable[[float], object], number: int, count: int
) -> Callable[[float], object]:
    """Return what a page reports to, so that all pages together go from 0 to 1."""
    return lambda share: progress((number + share) / count)
