"""The public function `denoise`: an array in, a denoised array of the same kind out.

Dtype, value range and axis order end here; the network below sees (C, H, W) planes in float32,
scaled so that their noise is the one the model was trained for. The module is not called
``denoise`` because importing it would then replace the function ``nlnet.denoise``.
"""

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy.typing as npt

from nlnet.denoising.devices import CPU
from nlnet.denoising.network import Network
from nlnet.denoising.page import PlannedPage, denoise_page
from nlnet.denoising.plan import Plan, Request, is_sure
from nlnet.errors import Cancelled
from nlnet.inputs import Strength, check_float
from nlnet.masks import read_planes
from nlnet.model.loading import AUTO, ModelLike
from nlnet.noise.camera import Camera
from nlnet.noise.record import Noise, NoNoise
from nlnet.progress import Progress, Report, bar, ignore


def denoise(
    image: npt.ArrayLike,
    sigma: float | npt.ArrayLike | None = None,
    *,
    noise: str | Noise | None = None,
    strength: Strength = 1.0,
    mask: npt.ArrayLike | None = None,
    model: ModelLike = AUTO,
    quality: str | None = None,
    data_range: float | None = None,
    channel_axis: int | None = None,
    clip: bool | None = None,
    threads: int | None = None,
    max_memory: int | None = None,
    device: str = CPU,
    progress: Progress | bool | None = None,
    dtype: npt.DTypeLike | None = None,
    hot_pixels: bool = False,
    error: bool = False,
) -> Any:
    """Remove the noise of a grayscale or RGB image.

    Unless you say what the noise is, its kind and strength are estimated: white noise, photon
    noise, or the correlated noise of photos as cameras save them.

    Parameters
    ----------
    image : array
        (H, W) for grayscale or (H, W, 3) for RGB; integers of 8, 16 or 32 bits, or floats. Floating
        values may lie outside the data range, as noisy values do. The computation is in float32,
        whatever the dtype.
    sigma : float or array, optional
        Standard deviation of white noise in the units of the image; with ``noise="camera"``, that
        of the correlated noise. If white noise is not equally strong everywhere, a map (H, W) with
        the sigma of every pixel: the image is then denoised at several strengths, a factor of 1.2
        apart, each where the map needs it.
    error : bool, optional
        Whether to return, beside the image, the standard deviation of the error of every pixel.
    noise : str or Noise, optional
        What the noise is. By default, `nlnet.estimate_noise` estimates it; an image without noise
        is returned unchanged, with a warning. ``"white"``, ``"poisson"`` (photon noise) and
        ``"camera"`` set the kind, and only its strength is estimated. A record, such as
        ``nlnet.Noise.poisson(gain, read)``, sets both.
    strength : float or pair of floats, optional
        How much of the noise to remove, from 0 to 2: 1 is what was found or given. Less blends the
        result with the image, and more takes more than that. For color images also a pair, for
        luma (grain) and chroma (color blotches).
    mask : array of bool or integers, optional
        (H, W), True or any number but 0 for pixels to leave out. Masked arrays bring their own
        mask, and NaN is always left out. Such pixels do not influence the others and are returned
        unchanged. At most half of the image may be left out.
    model : str, path or Model, optional
        A model for every sigma (``"gray"``, ``"color"``); a family of models for one sigma each
        (``"gray-5x5"``, ``"gray-7x7"``, ``"color-5x5"``), from which the one with the nearest log
        sigma is used; one of these (``"gray-5x5-s25"``); a model file; or a loaded model. With
        ``"auto"``, `quality` chooses. The image is scaled so that its noise has the strength that
        the model was trained for.
    quality : str, optional
        Which model ``"auto"`` is: ``"fast"`` (the default), or ``"best"``, which takes longer. Not
        together with another model.
    data_range : float, optional
        The value of white, to which the result is clipped; black is 0. By default 255 for uint8,
        65535 for uint16, 1.0 for floating images, and the range of the data for other integers. It
        does not change what is removed: that depends on what the values fill.
    channel_axis : int, optional
        The axis of a 3-D image that holds its 3 channels (or its only one); by default the last.
    clip : bool, optional
        Clip the result to ``[0, data_range]``, as the paper does. By default it is clipped, with
        two exceptions: data that leaves this range by more than its noise explains (there is a
        warning then), and data without a range of its own (signed and 32-bit integers). Integers
        are always clipped to the range of their dtype.
    threads : int, optional
        Number of threads; by default one for each CPU that the process may use.
    max_memory : int, optional
        Bytes that may be used in addition to the image and the result. Less memory takes more time.
    device : str, optional
        ``"cpu"``, or a torch device such as ``"cuda"`` or ``"mps"``, which needs torch: ``pip
        install 'nlnet[train]'``. `threads` and `max_memory` only apply to the CPU.
    progress : callable or True, optional
        Called with the share of the work done, from 0 to 1, in the calling thread. To stop the
        work, return False (which raises `Cancelled`) or raise an exception. True shows a bar.
    dtype : dtype, optional
        ``"float32"`` or ``"float64"``: the type of the result, in the units of the image. It keeps
        what integers would round away, which at low counts is much. By default that of the image.
    hot_pixels : bool, optional
        Whether hot and dead pixels are filled before the noise is removed: isolated ones, unlike
        every neighbor by more than the noise explains. Stars, whose light is spread, stay.

    Returns
    -------
    array
        The denoised image, of the same shape, and of the same dtype unless another is asked for;
        integers are rounded. For a masked array, a masked array. With ``error=True``, a pair of it
        and an array of its shape in float32: 68 % of all pixels of photos are that near to the
        truth, in the units of the image. Pixels that are left out have NaN there.

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
    >>> nlnet.denoise(noisy, sigma=25, dtype="float32").dtype  # not rounded
    dtype('float32')

    How far from the truth pixels are:

    >>> denoised, error = nlnet.denoise(noisy.astype(np.float32), 25, data_range=255, error=True)
    >>> bool(0.5 < np.mean(np.abs(denoised - 128) < error))
    True

    Noise that grows from left to right:

    >>> ramp = np.broadcast_to(np.linspace(5.0, 25.0, 64), (64, 64))
    >>> denoised = nlnet.denoise(noisy, sigma=ramp)

    Pass it the colors without alpha, and the pages of a stack one by one:

    >>> rgba = np.full((32, 32, 4), 200, np.uint8)
    >>> rgba[..., :3] = nlnet.denoise(rgba[..., :3], sigma=10)
    >>> stack = np.zeros((3, 32, 32), np.uint16)
    >>> cleaned = np.stack([nlnet.denoise(page, sigma=500) for page in stack])
    """
    page = read_planes(image, mask, channel_axis)
    request = Request(noise, data_range, clip, hot_pixels)
    request.check(sigma, page.planes.dtype)
    channels = len(page.planes)
    network = Network.of(model, channels, quality, threads, max_memory, device, strength)
    planned = PlannedPage.of(page, sigma, request, dtype=check_float(dtype))
    denoised, findings = denoise_page(planned, network, stoppable(progress), error=error)
    for message in warnings_of(findings.plan, given=isinstance(noise, Noise)):
        warnings.warn(message, stacklevel=2)
    return denoised if findings.error is None else (denoised, findings.error)


def warnings_of(plan: Plan, *, given: bool) -> Iterator[str]:
    """Yield what users of arrays are warned of; `given` tells whether the noise was a record."""
    if isinstance(plan.noise, NoNoise):
        reason = (
            "the noise record says that there is none worth removing"
            if given
            else f"its noise is estimated as {plan.noise.sigma:.3g}, too little to remove"
        )
        yield f"The image comes back as it is: {reason}."
    elif isinstance(plan.noise, Camera) and not is_sure(plan.noise):
        doubt = 1 - plan.noise.certainty
        yield (
            f"What looks like noise may be texture ({doubt:.0%}), so a part of it stays: "
            'noise="camera" removes all of it.'
        )
    if plan.unclipped:
        yield unclipped_warning(plan)


def warnings_of_pages(plans: Sequence[Plan], *, given: bool) -> list[str]:
    """Return what users are warned of pages: once for all of them, with the values of all."""
    values = [value for plan in plans for value in plan.values]
    wide = (dataclasses.replace(plan, values=(min(values), max(values))) for plan in plans)
    return list(dict.fromkeys(text for plan in wide for text in warnings_of(plan, given=given)))


def unclipped_warning(plan: Plan) -> str:
    """Say that nothing is clipped, and why."""
    low, high = plan.values
    return (
        f"The image has values from {low:g} to {high:g}, which noise around a range from 0 to "
        f"{plan.white:g} does not explain: nothing is clipped (clip=True clips, data_range says "
        "what white is)."
    )


def stoppable(progress: Progress | bool | None) -> Report:
    """Return a report that raises `Cancelled` when the progress function returns False."""
    if progress is None or progress is False:
        return ignore
    shown = bar() if progress is True else progress

    def report(share: float) -> None:
        # Only False itself: a function that returns nothing wants the work to go on.
        if shown(share) is False:
            raise Cancelled("The work was stopped by the progress function.")

    return report
