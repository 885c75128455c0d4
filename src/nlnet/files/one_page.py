"""Finding and removing the noise of one page, for files and for uploads."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.devices import CPU
from nlnet.denoising.image import UnclippedWarning, denoise
from nlnet.denoising.sigma_map import SigmaMap, read_map
from nlnet.denoising.strength import Strength
from nlnet.images import ImageFile
from nlnet.inputs import check_dtype, check_finite, find_data_range
from nlnet.masks import Mask, fill_hidden
from nlnet.model.loading import ModelLike
from nlnet.noise.deciding import decide_noise
from nlnet.noise.record import Noise
from nlnet.progress import Progress


@dataclasses.dataclass(frozen=True, eq=False)
class PageNoise:
    """The noise of a page.

    Parameters
    ----------
    record : Noise
        What it is, in the page's own units; of kind "none" if nothing is to be removed.
    white : float
        The page's value of white.
    sigma : float
        Its standard deviation on average, if white is 255.
    hidden : (H, W) array of bool or None
        The pixels that are masked or NaN, and so left out.
    sigma_map : SigmaMap or None
        The noise of every pixel, if it varies; then the record has the strongest.
    """

    record: Noise
    white: float
    sigma: float
    hidden: Mask | None
    sigma_map: SigmaMap | None = None

    def in_words(self) -> str:
        """Say what the noise is, if white is 255."""
        scale = 255 / self.white
        if self.sigma_map is None:
            return str(self.record.scaled(scale))
        low, high = self.sigma_map.low * scale, self.sigma_map.high * scale
        return f"white noise, sigma {low:.3g} to {high:.3g}"

    @property
    def left_out(self) -> int:
        """Number of pixels that are left out."""
        return 0 if self.hidden is None else int(np.count_nonzero(self.hidden))


@dataclasses.dataclass(frozen=True, eq=False)
class CleanPage:
    """The pixels of a page without its noise.

    Parameters
    ----------
    pixels : array
        The pixels.
    unclipped : bool
        Whether nothing was clipped, because values lie far outside of the data range.
    notes : tuple of str
        What else there is to say.
    """

    pixels: Array
    unclipped: bool = False
    notes: tuple[str, ...] = ()


def page_planes(page: ImageFile, mask: Mask | None) -> tuple[Array, Mask | None]:
    """Return the (C, H, W) planes of a page, filled where it is masked or NaN, and where that is.

    Raises
    ------
    InputError
        If the page cannot be denoised.
    """
    check_dtype(page.pixels)
    planes, hidden = fill_hidden(page.pixels, mask, None if page.channels == 1 else -1)
    check_finite(planes)
    return planes, hidden


def find_page_noise(
    page: ImageFile,
    sigma: float | Array | None,
    noise: str | Noise | None,
    data_range: float | None,
    mask: Mask | None = None,
) -> PageNoise:
    """Return the noise of a page; what is not given is estimated.

    Parameters
    ----------
    page : ImageFile
        The page.
    sigma : float, array or None
        As for `nlnet.denoise`, but if white is 255.
    noise
        As for `nlnet.denoise`.
    data_range : float or None
        The value of white; None for what the file says, or its dtype stands for.
    mask : (H, W) array of bool, optional
        True for pixels to leave out, besides those that are NaN.

    Raises
    ------
    InputError
        As `nlnet.denoise`.
    """
    planes, hidden = page_planes(page, mask)
    white = find_data_range(planes, data_range or page.data_range)
    if isinstance(sigma, np.ndarray):
        scaled = sigma * np.float32(white / 255)
        sigma_map = read_map(scaled, noise, planes.shape[1:], white, hidden)
        average = float(sigma_map.values.mean()) * 255 / white
        return PageNoise(Noise.white(sigma_map.high), white, average, hidden, sigma_map)
    record = decide_noise(planes, white, None if sigma is None else sigma * white / 255, noise)
    average = record.average_sigma(float(planes.mean()))
    return PageNoise(record, white, average * 255 / white, hidden)


def remove_page_noise(
    page: ImageFile,
    found: PageNoise,
    *,
    strength: Strength,
    model: ModelLike,
    quality: str | None = None,
    data_range: float | None,
    threads: int | None = None,
    max_memory: int | None = None,
    device: str = CPU,
    progress: Progress | None = None,
) -> CleanPage:
    """Remove the noise of a page.

    Parameters are those of `nlnet.denoise`; of a pair of strengths, gray pages take the first.

    Raises
    ------
    InputError, ModelError, Cancelled
        As `nlnet.denoise`.
    """
    if isinstance(strength, tuple) and page.channels == 1:
        strength = strength[0]
    given: dict[str, Any] = {"noise": found.record}
    if found.sigma_map is not None:
        given = {"sigma": found.sigma_map.values}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pixels = denoise(
            page.pixels,
            **given,
            strength=strength,
            mask=found.hidden,
            model=model,
            quality=quality,
            # Not that of the dtype, or values beyond it would be an error.
            data_range=data_range or page.data_range,
            threads=threads,
            max_memory=max_memory,
            device=device,
            progress=progress,
        )
    unclipped = any(issubclass(warning.category, UnclippedWarning) for warning in told)
    others = [w.message for w in told if not issubclass(w.category, UnclippedWarning)]
    return CleanPage(pixels, unclipped, tuple(dict.fromkeys(str(m).rstrip(".") for m in others)))


def unclipped_note(
    count: int, pages: int, white: float, option: str = "--data-range"
) -> tuple[str, ...]:
    """Say in how many pages nothing was clipped, if any.

    Examples
    --------
    >>> for note in unclipped_note(2, 3, 1.0):
    ...     print(note)
    2 of 3 pages have values that noise around a range from 0 to 1 does not explain: nothing is \
clipped (--data-range says what white is)
    """
    if count == 0:
        return ()
    which = "it has" if pages == 1 else f"{count} of {pages} pages have"
    return (
        f"{which} values that noise around a range from 0 to {white:g} does not explain: nothing "
        f"is clipped ({option} says what white is)",
    )


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
