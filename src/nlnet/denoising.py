"""The public entry: users' arrays in, denoised arrays of the same kind out.

Dtype, value range and axis order end here; the network below sees (C, H, W) planes in float32,
scaled so that their noise is the one the model was trained for. The module is not called
``denoise`` because importing it would then replace the function ``nlnet.denoise``.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, FloatArray
from nlnet.devices import CPU, check_device, denoise_on_device
from nlnet.errors import Cancelled, InputError, ModelError
from nlnet.estimation import estimate_planes
from nlnet.inputs import (
    KINDS,
    check_channel_axis,
    check_count,
    check_data_range,
    check_dtype,
    check_finite,
    check_sigma,
    from_planes,
    to_planes,
)
from nlnet.model import Model, select_model
from nlnet.network import denoise_rows

NO_NOISE = 0.5
"""Noise estimated below this, on the 0-255 scale, is taken for none."""

_FAMILIES = {1: "gray-5x5", 3: "color-5x5"}


def denoise(
    image: npt.ArrayLike,
    sigma: float | None = None,
    *,
    model: str | os.PathLike[str] | Model = "auto",
    data_range: float | None = None,
    channel_axis: int | None = None,
    clip: bool = True,
    threads: int | None = None,
    max_memory: int | None = None,
    device: str = CPU,
    progress: Callable[[float], object] | None = None,
) -> Array:
    """Remove white Gaussian noise from a grayscale or RGB image.

    Parameters
    ----------
    image : array
        (H, W) for grayscale or (H, W, 3) for RGB; uint8, uint16, float32 or float64. Floating
        values may lie outside the data range, as noisy values do. It is computed in float32,
        whatever the dtype.
    sigma : float, optional
        Standard deviation of the noise in the image's own units, above 0 and at most
        `data_range`. By default it is estimated by `nlnet.estimate_sigma`; an image whose noise is
        found to be below 0.5 of 255 then comes back as it is, with a warning.
    model : str, path or Model, optional
        A family (``"gray-5x5"``, ``"gray-7x7"``, ``"color-5x5"``), of which the model with the
        nearest log sigma is taken; one model of it (``"gray-5x5-s25"``); a model file; or a
        loaded model. ``"auto"`` is the 5x5 family that fits the image. Whatever the model was
        trained for, the image is scaled so that its noise is just that.
    data_range : float, optional
        The value of white, black being 0. By default 255 for uint8, 65535 for uint16 and 1.0 for
        floating images.
    channel_axis : int, optional
        The axis of a 3-D image that holds its 3 channels (or its only one); the last by default.
    clip : bool, optional
        Keep the estimate inside ``[0, data_range]``, as the paper does. Without it floating
        results may leave that range; integers are then clipped to what their dtype holds.
    threads : int, optional
        Number of threads; by default all CPUs the process may use.
    max_memory : int, optional
        Bytes that may be used besides the image and the result. Less memory takes more time.
    device : str, optional
        ``"cpu"``, or a device of torch such as ``"cuda"`` or ``"mps"``, which needs torch: ``pip
        install 'nlnet[train]'``. `threads` and `max_memory` are for the CPU.
    progress : callable, optional
        Called with the share of the work done, from 0 to 1, in the calling thread. To stop the
        work, return False (which raises `Cancelled`) or raise an exception.

    Returns
    -------
    array
        The denoised image, of the same shape and dtype; integers are rounded.

    Raises
    ------
    InputError
        If the image or an argument cannot be used, or the device is not there.
    ModelError
        If the model is unknown, damaged, or made for another number of channels.
    FileError
        If the model file cannot be read.
    Cancelled
        If `progress` returned False.

    References
    ----------
    S. Lefkimmiatis, "Non-local Color Image Denoising with Convolutional Neural Networks",
    CVPR 2017.

    Examples
    --------
    >>> import numpy as np
    >>> import nlnet
    >>> noise = np.random.default_rng(0).normal(0, 25, size=(64, 64))
    >>> noisy = np.clip(128 + noise, 0, 255).astype(np.uint8)
    >>> denoised = nlnet.denoise(noisy, sigma=25)
    >>> denoised.shape, denoised.dtype
    ((64, 64), dtype('uint8'))
    >>> bool(denoised.std() < noisy.std() / 4)
    True

    Alpha stays out of it, and so do the pages of a stack from each other:

    >>> rgba = np.full((32, 32, 4), 200, np.uint8)
    >>> rgba[..., :3] = nlnet.denoise(rgba[..., :3], sigma=10)
    >>> stack = np.zeros((3, 32, 32), np.uint16)
    >>> cleaned = np.stack([nlnet.denoise(page, sigma=500) for page in stack])
    """
    pixels = np.asarray(image)
    default_range = check_dtype(pixels)
    axis = check_channel_axis(pixels, channel_axis)
    span = default_range if data_range is None else check_data_range(data_range)
    check_count("threads", threads)
    check_count("max_memory", max_memory)
    if sigma is not None:
        check_sigma(sigma, span)
    check_finite(pixels)
    check_device(device)

    planes = to_planes(pixels, axis)
    report = _ignore if progress is None else _stoppable(progress)
    noise_level = _find_noise(planes, span) if sigma is None else float(sigma)
    if noise_level <= span * np.finfo(np.float32).eps:  # below what float32 can tell apart
        report(1.0)
        return pixels.copy()
    chosen = choose_model(model, planes.shape[0], noise_level * 255 / span)
    # The image's noise becomes that of the training; the box is scaled with it.
    scale = chosen.sigma / noise_level
    box = (0.0, span * scale) if clip else None
    restored = np.empty_like(planes)

    def read(first: int, last: int) -> FloatArray:
        return _to_network(planes[:, first:last], scale)

    def write(first: int, rows: FloatArray) -> None:
        restored[:, first : first + rows.shape[1]] = _from_network(rows, scale, restored.dtype)

    if device == CPU:
        denoise_rows(
            read,
            write,
            planes.shape,
            chosen.config,
            [stage.astype(np.float32) for stage in chosen.stages],
            box=box,
            threads=threads,
            max_memory=max_memory,
            progress=report,
        )
    else:
        write(0, denoise_on_device(read(0, planes.shape[1]), chosen, device, box, report))
    return from_planes(restored, axis)


def check_estimate(sigma: float, data_range: float) -> None:
    """Raise InputError if an estimated sigma shows that the data range cannot be right."""
    if sigma > data_range:
        raise InputError(
            f"The image's noise is estimated as {sigma:g}, but its data range is {data_range:g}; "
            "give the data range that it really has (data_range, --data-range)."
        )


def _find_noise(planes: Array, data_range: float) -> float:
    """Return the estimated sigma in the image's units, 0 if it is not worth the work."""
    found = estimate_planes(planes)
    check_estimate(found, data_range)
    if found * 255 / data_range < NO_NOISE:
        warnings.warn(
            f"The image comes back as it is: its noise is estimated as {found:g}, "
            f"which is below {NO_NOISE} of 255.",
            stacklevel=3,
        )
        return 0.0
    return found


def choose_model(
    model: str | os.PathLike[str] | Model, channels: int, network_sigma: float
) -> Model:
    """Return the model asked for, if it is made for that number of channels."""
    if isinstance(model, Model):
        chosen = model
    elif isinstance(model, (str, os.PathLike)):
        chosen = select_model(_FAMILIES[channels] if model == "auto" else model, network_sigma)
    else:
        raise ModelError(f"model is {model!r}, but must be a name, a path or a Model.")
    if chosen.config.channels != channels:
        raise ModelError(
            f"The model {chosen.name!r} is made for {KINDS[chosen.config.channels]} images, "
            f"but this image is {KINDS[channels]}."
        )
    return chosen


def _ignore(share: float) -> None:
    """Report progress to nobody."""


def _stoppable(progress: Callable[[float], object]) -> Callable[[float], None]:
    def report(share: float) -> None:
        # Only False itself: a function that returns nothing wants the work to go on.
        if progress(share) is False:
            raise Cancelled("The work was stopped by the progress function.")

    return report


def _to_network(planes: Array, scale: float) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        scaled: npt.NDArray[np.float32] = np.multiply(planes, scale, dtype=np.float32)
    if not np.isfinite(scaled).all():
        raise InputError("The image has values that are too large beside its sigma for float32.")
    return scaled


def _from_network(estimate: FloatArray, scale: float, dtype: np.dtype[Any]) -> Array:
    restored = estimate / np.float32(scale)
    if dtype.kind == "u":
        limits = np.iinfo(dtype)
        restored = np.clip(np.rint(restored), limits.min, limits.max)
    return restored.astype(dtype)
