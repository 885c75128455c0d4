"""One page of a file: what its noise is, and the page without it."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.image import denoise
from nlnet.files.settings import Settings
from nlnet.images import ImageFile
from nlnet.inputs import check_dtype, check_finite, find_data_range
from nlnet.masks import Mask, fill_hidden
from nlnet.noise.deciding import decide_noise


@dataclasses.dataclass(frozen=True, eq=False)
class DenoisedPage:
    """A denoised page.

    Parameters
    ----------
    pixels : array
        The page.
    sigma : float
        Standard deviation of its noise on average, if white is 255; 0 if none was removed.
    noise : str
        What its noise is, in words.
    notes : tuple of str
        What there is to say about it.
    left_out : int
        Number of pixels that are masked or NaN.
    """

    pixels: Array
    sigma: float
    noise: str
    notes: tuple[str, ...] = ()
    left_out: int = 0


def denoise_page(
    page: ImageFile,
    settings: Settings,
    mask: Mask | None,
    progress: Callable[[float], object] | None,
) -> DenoisedPage:
    """Denoise a page as the settings say, except for the pixels that the mask leaves out.

    Raises
    ------
    InputError, ModelError, Cancelled
        As `nlnet.denoise`.
    """
    check_dtype(page.pixels)
    known = settings.data_range or page.data_range
    planes, hidden = fill_hidden(page.pixels, mask, None if page.channels == 1 else -1)
    white = find_data_range(planes, known)
    check_finite(planes)
    sigma = None if settings.sigma is None else settings.sigma * white / 255
    noise = decide_noise(planes, white, sigma, settings.noise)
    words = str(noise.scaled(255 / white))
    left_out = 0 if hidden is None else int(np.count_nonzero(hidden))
    if noise.kind == "none":
        return DenoisedPage(page.pixels, 0.0, words, left_out=left_out)
    strength = settings.strength
    if isinstance(strength, tuple) and page.channels == 1:
        strength = strength[0]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pixels = denoise(
            page.pixels,
            noise=noise,
            strength=strength,
            mask=hidden,
            model=settings.model,
            # Not that of the dtype: then values beyond it are no mistake.
            data_range=known,
            threads=settings.threads,
            max_memory=settings.max_memory,
            device=settings.device,
            progress=progress,
        )
    notes = tuple(str(warning.message).rstrip(".") for warning in told)
    average = noise.sigma if noise.sigma is not None else noise.sigma_at(float(planes.mean()))
    return DenoisedPage(pixels, average * 255 / white, words, notes, left_out)


def left_out_note(count: int) -> tuple[str, ...]:
    """Say how many pixels of a file were left out, if any.

    Examples
    --------
    >>> left_out_note(0), left_out_note(1)
    ((), ('1 pixel is masked or NaN: left as it is',))
    """
    if count == 0:
        return ()
    if count == 1:
        return ("1 pixel is masked or NaN: left as it is",)
    return (f"{count} pixels are masked or NaN: left as they are",)
