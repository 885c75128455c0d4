"""One image file in, one out: every page on its own, alpha and metadata kept."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from nlnet.arrays import Array
from nlnet.atomic import copy_file
from nlnet.denoising.devices import check_device
from nlnet.denoising.image import denoise
from nlnet.errors import InputError
from nlnet.images import (
    MAX_PIXELS,
    ImageFile,
    WritingOptions,
    check_format,
    keeps_format,
    losses,
    read_pages,
    write_pages,
)
from nlnet.images import is_raw as holds_raw
from nlnet.images.writing import PLAIN
from nlnet.inputs import check_dtype, check_finite, find_data_range, to_planes
from nlnet.model.loading import select_model
from nlnet.noise.deciding import check_request, decide_noise
from nlnet.noise.record import Noise
from nlnet.raw import is_raw
from nlnet.raw.development import DEFAULT, Development


@dataclasses.dataclass(frozen=True)
class Settings:
    """How to denoise files.

    Parameters
    ----------
    sigma : float or None
        Standard deviation of the noise, if white is 255; None to estimate it for every page.
    noise : str, Noise or None
        What the noise is, as for `nlnet.denoise`; None to find it out for every page.
    data_range : float or None
        The value of white; None for what the file says, or its dtype stands for.
    strength : float or pair of floats
        Share of the noise that is removed, from 0 to 1; of a pair the second is for chroma, and
        gray images take the first alone.
    max_pixels : int
        Larger pages are refused before they are decoded.
    writing : WritingOptions
        Quality, depth and background of the files that are written.
    development : Development
        How LibRaw makes pictures of raw files.
    model, threads, max_memory, device
        As for `nlnet.denoise`.
    """

    sigma: float | None = None
    noise: str | Noise | None = None
    model: str | os.PathLike[str] = "auto"
    data_range: float | None = None
    strength: float | tuple[float, float] = 1.0
    threads: int | None = None
    max_memory: int | None = None
    device: str = "cpu"
    max_pixels: int = MAX_PIXELS
    writing: WritingOptions = PLAIN
    development: Development = DEFAULT

    def check(self) -> None:
        """Raise what would go wrong with every file, before the first one is read.

        Raises
        ------
        FileError, InputError, ModelError
            If the device or the model cannot be used.
        """
        check_device(self.device)
        check_request(self.sigma, self.noise, span=255.0)
        if self.model != "auto":
            select_model(self.model, self.sigma or 25.0)


@dataclasses.dataclass(frozen=True)
class Findings:
    """What there is to say about a file that was denoised.

    Parameters
    ----------
    sigmas : tuple of float
        Standard deviation of every page's noise on average, if white is 255; 0 where none was
        removed.
    estimated : bool
        Whether that was estimated.
    notes : tuple of str
        What was converted or left out.
    noise : tuple of str
        What the noise of every page was found to be, in words.
    """

    sigmas: tuple[float, ...]
    estimated: bool
    notes: tuple[str, ...]
    noise: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What was done to a file.

    Parameters
    ----------
    before, after : ImageFile
        The first page. Of a raw file, `before` is None unless it was asked for.
    findings : Findings
        What there is to say about it.
    """

    before: ImageFile | None
    after: ImageFile
    findings: Findings


def denoise_file(
    source: Path,
    target: Path,
    settings: Settings,
    progress: Callable[[float], object] | None = None,
    *,
    keep_before: bool = False,
) -> Outcome:
    """Denoise a file and write the result in the format that the target's suffix names.

    A file in which no noise is found is copied as it is, if the format stays the same. A raw file
    is developed; what it looks like without denoising is in the outcome if `keep_before` says so.

    Raises
    ------
    FileError, InputError, ModelError, Cancelled
        As `nlnet.images.read_pages`, `nlnet.denoise` and `nlnet.images.write_pages`; the target is
        written as a whole or not at all.
    """
    if is_raw(source) or holds_raw(source):
        return _denoise_raw(source, target, settings, progress, keep_before=keep_before)
    pages = read_pages(source, max_pixels=settings.max_pixels)
    first = pages[0]
    check_format(target, first, len(pages), settings.writing)
    results: list[ImageFile] = []
    findings: list[_Page] = []
    for number in range(len(pages)):
        page = pages[number] if number else first
        with _naming(source, number, len(pages)):
            done = _denoise_page(page, settings, _part(progress, number, len(pages)))
        results.append(_for_writing(page, done.pixels, settings))
        findings.append(done)
    estimated = settings.sigma is None and not isinstance(settings.noise, Noise)
    clean = all(done.sigma == 0 for done in findings) and settings.writing == PLAIN
    if clean and keeps_format(source, target):
        copy_file(source, target)
        notes: tuple[str, ...] = ()
    else:
        write_pages(target, results, settings.writing)
        lost = (losses(target, page, settings.writing) for page in results)
        notes = tuple(dict.fromkeys(note for page in results for note in page.notes))
        notes += tuple(dict.fromkeys(note for page_notes in lost for note in page_notes))
    notes += tuple(dict.fromkeys(note for done in findings for note in done.notes))
    if estimated and settings.data_range is None:
        notes += _depth_hint(first)
    sigmas, words = zip(*((done.sigma, done.noise) for done in findings), strict=True)
    return Outcome(first, results[0], Findings(sigmas, estimated, notes, words))


def _denoise_raw(
    source: Path,
    target: Path,
    settings: Settings,
    progress: Callable[[float], object] | None,
    *,
    keep_before: bool,
) -> Outcome:
    from nlnet.raw.files import RawSettings, denoise_raw_file

    refused = {
        "sigma (--sigma)": settings.sigma is not None,
        "a model (--model)": settings.model != "auto",
        "a data range (--data-range)": settings.data_range is not None,
        "noise other than poisson (--noise)": settings.noise in ("white", "camera"),
    }
    for name, given in refused.items():
        if given:
            raise InputError(
                f"{str(source)!r} is a raw file, whose noise and white are found in the file, so "
                f"{name} cannot be given; a strength (--strength) can."
            )
    outcome = denoise_raw_file(
        source,
        target,
        RawSettings(
            strength=settings.strength,
            noise=settings.noise if isinstance(settings.noise, Noise) else None,
            development=settings.development,
            writing=settings.writing,
            threads=settings.threads,
            max_memory=settings.max_memory,
            device=settings.device,
            max_pixels=settings.max_pixels,
        ),
        progress,
        keep_before=keep_before,
    )
    noise = f"photon noise, gain {outcome.gain:.3g}, read noise {outcome.read:.3g}"
    findings = Findings((outcome.sigma,), True, outcome.notes, (noise,))
    return Outcome(outcome.before, outcome.after, findings)


def white_of(image: ImageFile, data_range: float | None) -> float:
    """Return the value of white: as it is given, as the file says, or as the dtype stands for."""
    check_dtype(image.pixels)
    return find_data_range(image.pixels, data_range or image.data_range)


@contextlib.contextmanager
def _naming(source: Path, number: int, count: int) -> Iterator[None]:
    """Say of which file, and which of its pages, an error about pixels is."""
    try:
        yield
    except InputError as error:
        page = f", page {number + 1} of {count}" if count > 1 else ""
        raise InputError(f"{str(source)!r}{page}: {error}") from error


def _for_writing(page: ImageFile, pixels: Array, settings: Settings) -> ImageFile:
    """Return the denoised page; a white that the user named counts where depth is converted."""
    result = dataclasses.replace(page, pixels=pixels)
    if settings.writing.depth is None or settings.data_range is None:
        return result
    return dataclasses.replace(result, data_range=settings.data_range)


def _depth_hint(image: ImageFile) -> tuple[str, ...]:
    """Say if 16-bit values look like those of a camera with fewer bits."""
    if image.pixels.dtype != np.uint16 or image.data_range is not None:
        return ()
    bits = int(image.pixels.max()).bit_length()
    if not 8 <= bits <= 14:
        return ()
    return (f"its values are below {2**bits} of 65536: --data-range {2**bits - 1} may suit it",)


@dataclasses.dataclass(frozen=True, eq=False)
class _Page:
    """A denoised page: its pixels, its noise if white is 255 and in words, and what to say."""

    pixels: Array
    sigma: float
    noise: str
    notes: tuple[str, ...] = ()


def _denoise_page(
    page: ImageFile, settings: Settings, progress: Callable[[float], object] | None
) -> _Page:
    white = white_of(page, settings.data_range)
    check_finite(page.pixels)
    planes = to_planes(page.pixels, None if page.channels == 1 else -1)
    sigma = None if settings.sigma is None else settings.sigma * white / 255
    noise = decide_noise(planes, white, sigma, settings.noise)
    words = str(noise.scaled(255 / white))
    if noise.kind == "none":
        return _Page(page.pixels, 0.0, words)
    strength = settings.strength
    if isinstance(strength, tuple) and page.channels == 1:
        strength = strength[0]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pixels = denoise(
            page.pixels,
            noise=noise,
            strength=strength,
            model=settings.model,
            # Not that of the dtype: then values beyond it are no mistake.
            data_range=settings.data_range or page.data_range,
            threads=settings.threads,
            max_memory=settings.max_memory,
            device=settings.device,
            progress=progress,
        )
    notes = tuple(str(warning.message).rstrip(".") for warning in told)
    average = noise.sigma if noise.sigma is not None else noise.sigma_at(float(planes.mean()))
    return _Page(pixels, average * 255 / white, words, notes)


def _part(
    progress: Callable[[float], object] | None, number: int, count: int
) -> Callable[[float], object] | None:
    """Progress of one page as a share of all."""
    return None if progress is None else lambda share: progress((number + share) / count)
