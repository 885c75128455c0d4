"""One image file in, one out: every page on its own, alpha and metadata kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nlnet.arrays import Array
from nlnet.atomic import copy_file
from nlnet.errors import InputError, about
from nlnet.files.one_page import (
    CleanPage,
    find_page_noise,
    left_out_note,
    remove_page_noise,
    unclipped_note,
)
from nlnet.files.page_noise import find_stack_noise, name_of_page, sigmas_of_pages
from nlnet.files.settings import Settings
from nlnet.files.side_files import page_mask, page_sigmas
from nlnet.images import (
    ImageFile,
    check_format,
    keeps_format,
    losses_of_pages,
    read_pages,
    write_pages,
)
from nlnet.images.raw_files import goes_to_libraw
from nlnet.images.writing import PLAIN
from nlnet.masks import Mask
from nlnet.model.loading import AUTO
from nlnet.noise.record import Noise
from nlnet.progress import Progress, ignore, one_of


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
    progress: Progress | None = None,
    *,
    keep_before: bool = False,
) -> Outcome:
    """Denoise a file and write the result in the format that the target's suffix names.

    A file in which no noise is found is copied as it is, if the format stays the same. A raw file
    is developed; with `keep_before`, the outcome also has the picture without denoising.

    Raises
    ------
    FileError, InputError, ModelError, Cancelled
        As `nlnet.images.read_pages`, `nlnet.denoise` and `nlnet.images.write_pages`; the target is
        written as a whole or not at all.
    """
    if goes_to_libraw(source):
        return _denoise_raw(source, target, settings, progress, keep_before=keep_before)
    pages = read_pages(source, max_pixels=settings.max_pixels)
    first = pages[0]
    check_format(target, first, len(pages), settings.writing)
    estimated = settings.estimates
    with about(f"{str(source)!r}"):
        sigmas_given = sigmas_of_pages(settings.sigma, len(pages))
    if settings.per_stack and len(pages) > 1:
        settings = dataclasses.replace(settings, noise=_noise_of_stack(source, pages, settings))
    results: list[ImageFile] = []
    findings: list[_DenoisedPage] = []
    for number in range(len(pages)):
        page = pages[number] if number else first
        with about(name_of_page(str(source), number, len(pages))):
            beside = (number, len(pages), settings.max_pixels)
            mask = page_mask(settings.mask, *beside)
            sigma_map = page_sigmas(settings.sigma_map, *beside)
            sigma = sigmas_given[number] if sigma_map is None else sigma_map
            report = one_of(progress or ignore, number, len(pages))
            done = _denoise_page(page, sigma, settings, mask, report)
        results.append(_for_writing(page, done.clean.pixels, settings))
        findings.append(done)
    clean = all(done.sigma == 0 for done in findings) and settings.writing == PLAIN
    if clean and keeps_format(source, target):
        copy_file(source, target)
        notes: tuple[str, ...] = ()
    else:
        write_pages(target, results, settings.writing)
        notes = tuple(dict.fromkeys(note for page in results for note in page.notes))
        notes += losses_of_pages(target, results, settings.writing)
    notes += tuple(dict.fromkeys(note for done in findings for note in done.clean.notes))
    unclipped = sum(done.clean.unclipped for done in findings)
    notes += unclipped_note(unclipped, len(findings), findings[0].white)
    notes += left_out_note(sum(done.left_out for done in findings))
    if estimated and settings.data_range is None:
        notes += _depth_hint(first)
    sigmas, words = zip(*((done.sigma, done.noise) for done in findings), strict=True)
    return Outcome(first, results[0], Findings(sigmas, estimated, notes, words))


def _noise_of_stack(source: Path, pages: Sequence[ImageFile], settings: Settings) -> Noise:
    """Estimate the noise of all pages together."""
    count = len(pages)
    assert not isinstance(settings.noise, Noise)
    return find_stack_noise(
        pages,
        settings.noise,
        settings.data_range,
        name=str(source),
        mask_of=lambda number: page_mask(settings.mask, number, count, settings.max_pixels),
    )


def _denoise_raw(
    source: Path,
    target: Path,
    settings: Settings,
    progress: Progress | None,
    *,
    keep_before: bool,
) -> Outcome:
    from nlnet.raw.files import RawSettings, denoise_raw_file

    refused = {
        "sigma (--sigma)": settings.sigma is not None or settings.sigma_map is not None,
        "a model (--model)": settings.model != AUTO,
        "a data range (--data-range)": settings.data_range is not None,
        "noise other than poisson (--noise)": settings.noise in ("white", "camera"),
        "a mask (--mask)": settings.mask is not None,
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
            quality=settings.quality,
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
class _DenoisedPage:
    """A page, its noise if white is 255 and in words, and what else to say."""

    clean: CleanPage
    white: float
    sigma: float
    noise: str
    left_out: int


def _denoise_page(
    page: ImageFile,
    sigma: float | Array | None,
    settings: Settings,
    mask: Mask | None,
    progress: Progress,
) -> _DenoisedPage:
    found = find_page_noise(page, sigma, settings.noise, settings.data_range, mask)
    words = found.in_words()
    if found.record.kind == "none":
        return _DenoisedPage(CleanPage(page.pixels), found.white, 0.0, words, found.left_out)
    clean = remove_page_noise(
        page,
        found,
        strength=settings.strength,
        model=settings.model,
        quality=settings.quality,
        data_range=settings.data_range,
        threads=settings.threads,
        max_memory=settings.max_memory,
        device=settings.device,
        progress=progress,
    )
    return _DenoisedPage(clean, found.white, found.sigma, words, found.left_out)
