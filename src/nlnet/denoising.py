"""The public entry: users' arrays in, denoised arrays of the same kind out.

Dtype, value range and axis order end here; the network below sees (C, H, W) planes in float32
on the 0-255 scale. The module is not called ``denoise`` because importing it would then replace
the function ``nlnet.denoise``.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.errors import Cancelled, InputError, ModelError
from nlnet.model import Model, select_model
from nlnet.network import denoise_planes

DATA_RANGES = {
    np.dtype(np.uint8): 255.0,
    np.dtype(np.uint16): 65535.0,
    np.dtype(np.float32): 1.0,
    np.dtype(np.float64): 1.0,
}
"""The supported dtypes, and the data range each stands for unless another one is given."""

_NETWORK_RANGE = 255.0
_FAMILIES = {1: "gray-5x5", 3: "color-5x5"}
_KINDS = {1: "grayscale", 3: "color"}


def denoise(
    image: npt.ArrayLike,
    sigma: float,
    *,
    model: str | os.PathLike[str] | Model = "auto",
    data_range: float | None = None,
    channel_axis: int | None = None,
    clip: bool = True,
    threads: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> Array:
    """Remove white Gaussian noise from a grayscale or RGB image.

    Parameters
    ----------
    image : array
        (H, W) for grayscale or (H, W, 3) for RGB; uint8, uint16, float32 or float64. Floating
        values may lie outside the data range, as noisy values do. It is computed in float32,
        whatever the dtype.
    sigma : float
        Standard deviation of the noise in the image's own units, above 0 and at most
        `data_range`.
    model : str, path or Model, optional
        A family (``"gray-5x5"``, ``"gray-7x7"``, ``"color-5x5"``), of which the model with the
        nearest log sigma is taken; one model of it (``"gray-5x5-s25"``); a model file; or a
        loaded model. ``"auto"`` is the 5x5 family that fits the image.
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
        If the image or an argument cannot be used.
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
    """
    pixels = np.asarray(image)
    default_range = _check_dtype(pixels)
    axis = _check_channel_axis(pixels, channel_axis)
    span = default_range if data_range is None else _check_data_range(data_range)
    noise_level = _check_sigma(sigma, span)
    _check_threads(threads)

    # (C, H, W): channels first, and a single one for gray.
    planes = pixels[np.newaxis] if axis is None else np.moveaxis(pixels, axis, 0)
    chosen = _choose_model(model, planes.shape[0], noise_level * _NETWORK_RANGE / span)

    scale = _scale_to_network(span)
    estimate = denoise_planes(
        _to_network(planes, scale),
        chosen.config,
        chosen.stages,
        box=(0.0, span * scale) if clip else None,
        threads=threads,
        progress=None if progress is None else _stoppable(progress),
    )
    restored = _from_network(estimate, scale, pixels.dtype)
    return restored[0] if axis is None else np.moveaxis(restored, 0, axis)


def _scale_to_network(data_range: float) -> float:
    """Return the factor from the image's units to the network's.

    The one place that decides it: the box is scaled by it too, and the result scaled back.
    """
    return _NETWORK_RANGE / data_range


def _check_dtype(pixels: Array) -> float:
    """Return the dtype's default data range; refuse dtypes other than the supported ones."""
    default_range = DATA_RANGES.get(pixels.dtype.newbyteorder("="))
    if default_range is None:
        raise InputError(
            f"The image's dtype is {pixels.dtype}, but must be uint8, uint16, float32 or float64."
        )
    return default_range


def _check_channel_axis(pixels: Array, channel_axis: int | None) -> int | None:
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
    if pixels.shape[channel_axis] not in _FAMILIES:
        raise InputError(
            f"Axis {channel_axis} of the image has {pixels.shape[channel_axis]} channels, "
            "but must have 3 (RGB) or 1 (gray)."
        )
    return int(channel_axis)


def _check_number(name: str, value: object) -> float:
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise InputError(f"{name} is {value!r}, but must be a number.")
    return float(value)


def _check_data_range(data_range: object) -> float:
    number = _check_number("data_range", data_range)
    if not (0 < number < math.inf):
        raise InputError(f"data_range is {number:g}, but must be above 0 and finite.")
    return number


def _check_sigma(sigma: object, data_range: float) -> float:
    number = _check_number("sigma", sigma)
    if not 0 < number <= data_range:
        raise InputError(
            f"sigma is {number:g}, but must be above 0 and at most the data range, {data_range:g}."
        )
    return number


def _check_threads(threads: object) -> None:
    if threads is None:
        return
    if not isinstance(threads, numbers.Integral) or isinstance(threads, bool) or threads < 1:
        raise InputError(f"threads is {threads!r}, but must be a whole number of at least 1.")


def _choose_model(
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
            f"The model {chosen.name!r} is made for {_KINDS[chosen.config.channels]} images, "
            f"but this image is {_KINDS[channels]}."
        )
    return chosen


def _stoppable(progress: Callable[[float], object]) -> Callable[[float], None]:
    def report(share: float) -> None:
        # Only False itself: a function that returns nothing wants the work to go on.
        if progress(share) is False:
            raise Cancelled("The work was stopped by the progress function.")

    return report


def _to_network(planes: Array, scale: float) -> npt.NDArray[np.float32]:
    # An overflow of float32 gives infinity, which is refused like any other.
    with np.errstate(over="ignore", invalid="ignore"):
        scaled: npt.NDArray[np.float32] = np.multiply(planes, scale, dtype=np.float32)
    unusable = scaled.size - int(np.count_nonzero(np.isfinite(scaled)))
    if unusable:
        raise InputError(
            f"The image has {unusable} values that are NaN, infinite or too large for float32, "
            "but all must be finite."
        )
    return scaled


def _from_network(estimate: Array, scale: float, dtype: np.dtype[Any]) -> Array:
    restored = estimate / np.float32(scale)
    if dtype.kind == "u":
        limits = np.iinfo(dtype)
        restored = np.clip(np.rint(restored), limits.min, limits.max)
    return restored.astype(dtype)
