"""One image file in, one out: every page on its own, alpha and metadata kept."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising import NO_NOISE, check_estimate, denoise
from nlnet.devices import check_device
from nlnet.files import copy_file
from nlnet.images import (
    MAX_PIXELS,
    ImageFile,
    check_format,
    keeps_format,
    losses,
    read_pages,
    write_pages,
)
from nlnet.inputs import DATA_RANGES
from nlnet.model import select_model
from nlnet.noise.white import estimate_sigma


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to denoise files.

    Parameters
    ----------
    sigma : float or None
        Standard deviation of the noise, if white is 255; None to estimate it for every page.
    data_range : float or None
        The value of white; None for what the file says, or its dtype stands for.
    strength : float
        Share of the noise that is removed, from 0 to 1.
    max_pixels : int
        Larger pages are refused before they are decoded.
    model, threads, max_memory, device
        As for `nlnet.denoise`.
    """

    sigma: float | None = None
    model: str | os.PathLike[str] = "auto"
    data_range: float | None = None
    strength: float = 1.0
    threads: int | None = None
    max_memory: int | None = None
    device: str = "cpu"
    max_pixels: int = MAX_PIXELS

    def check(self) -> None:
        """Raise what would go wrong with every file, before the first one is read.

        Raises
        ------
        FileError, InputError, ModelError
            If the device or the model cannot be used.
        """
        check_device(self.device)
        if self.model != "auto":
            select_model(self.model, self.sigma or 25.0)


@dataclasses.dataclass(frozen=True)
class Findings:
    """What there is to say about a file that was denoised.

    Parameters
    ----------
    sigmas : tuple of float
        Standard deviation of every page's noise, if white is 255.
    estimated : bool
        Whether that was estimated.
    notes : tuple of str
        What was converted or left out.
    """

    sigmas: tuple[float, ...]
    estimated: bool
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What was done to a file.

    Parameters
    ----------
    before, after : ImageFile
        The first page.
    findings : Findings
        What there is to say about it.
    """

    before: ImageFile
    after: ImageFile
    findings: Findings


def denoise_file(
    source: Path,
    target: Path,
    settings: Settings,
    progress: Callable[[float], object] | None = None,
) -> Outcome:
    """Denoise a file and write the result in the format that the target's suffix names.

    A file in which no noise is found is copied as it is, if the format stays the same.

    Raises
    ------
    FileError, InputError, ModelError, Cancelled
        As `nlnet.images.read_pages`, `nlnet.denoise` and `nlnet.images.write_pages`; the target is
        written as a whole or not at all.
    """
    pages = read_pages(source, max_pixels=settings.max_pixels)
    first = pages[0]
    check_format(target, first, len(pages))
    results: list[ImageFile] = []
    sigmas: list[float] = []
    for number in range(len(pages)):
        page = pages[number] if number else first
        pixels, sigma = _denoise_page(page, settings, _part(progress, number, len(pages)))
        results.append(dataclasses.replace(page, pixels=pixels))
        sigmas.append(sigma)
    estimated = settings.sigma is None
    if estimated and max(sigmas) < NO_NOISE and keeps_format(source, target):
        copy_file(source, target)
    else:
        write_pages(target, results)
    notes = first.notes + losses(target, first)
    if estimated and settings.data_range is None:
        notes += _depth_hint(first)
    return Outcome(first, results[0], Findings(tuple(sigmas), estimated, notes))


def blend(noisy: Array, denoised: Array, strength: float) -> Array:
    """Return a mixture of both images, of their dtype; integers are rounded.

    Examples
    --------
    >>> blend(np.array([100], np.uint8), np.array([105], np.uint8), 0.25)
    array([101], dtype=uint8)
    """
    if strength == 1:
        return denoised
    mixed = noisy + strength * (denoised.astype(np.float64) - noisy)
    return (np.rint(mixed) if noisy.dtype.kind == "u" else mixed).astype(noisy.dtype)


def white_of(image: ImageFile, data_range: float | None) -> float:
    """Return the value of white: as it is given, as the file says, or as the dtype stands for."""
    if data_range is not None:
        return data_range
    return image.data_range or DATA_RANGES[image.pixels.dtype]


def _depth_hint(image: ImageFile) -> tuple[str, ...]:
    """Say if 16-bit values look like those of a camera with fewer bits."""
    if image.pixels.dtype != np.uint16 or image.data_range is not None:
        return ()
    bits = int(image.pixels.max()).bit_length()
    if not 8 <= bits <= 14:
        return ()
    return (f"its values are below {2**bits} of 65536: --data-range {2**bits - 1} may suit it",)


def _denoise_page(
    page: ImageFile, settings: Settings, progress: Callable[[float], object] | None
) -> tuple[Array, float]:
    """Return the denoised pixels, and sigma if white is 255."""
    white = white_of(page, settings.data_range)
    if settings.sigma is None:
        found = estimate_sigma(page.pixels)
        check_estimate(found, white)
        sigma = found * 255 / white
        if sigma < NO_NOISE:
            return page.pixels, sigma
    else:
        sigma = settings.sigma
    denoised = denoise(
        page.pixels,
        sigma * white / 255,
        model=settings.model,
        data_range=white,
        # Floating values above white are highlights, not mistakes.
        clip=page.pixels.dtype.kind == "u",
        threads=settings.threads,
        max_memory=settings.max_memory,
        device=settings.device,
        progress=progress,
    )
    return blend(page.pixels, denoised, settings.strength), sigma


def _part(
    progress: Callable[[float], object] | None, number: int, count: int
) -> Callable[[float], object] | None:
    """Progress of one page as a share of all."""
    return None if progress is None else lambda share: progress((number + share) / count)
