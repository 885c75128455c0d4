"""One image file in, one out: page by page, alpha and metadata kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from nlnet.atomic import copy_file
from nlnet.denoising.image import stoppable
from nlnet.denoising.page import PageFindings
from nlnet.errors import InputError
from nlnet.files.pages import denoise_pages, notes_of
from nlnet.files.rewriting import rewriting
from nlnet.files.settings import Settings
from nlnet.files.side_files import page_mask, page_sigmas
from nlnet.images import (
    ImageFile,
    WritingOptions,
    check_format,
    keeps_format,
    losses,
    read_unless_raw,
    write_pages,
)
from nlnet.images.content import Pages
from nlnet.images.writing import PLAIN
from nlnet.model.loading import AUTO
from nlnet.noise.record import Noise
from nlnet.progress import Progress


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
    pages = read_unless_raw(source, settings.max_pixels)
    if pages is None:
        return _denoise_raw(source, target, settings, progress, keep_before=keep_before)
    first = pages[0]
    count = len(pages)
    check_format(target, first, count, settings.writing)
    beside = (count, settings.max_pixels)
    results, found = denoise_pages(
        pages,
        settings,
        settings.network(first.channels),
        stoppable(progress),
        name=str(source),
        mask_of=lambda number: page_mask(settings.mask, number, *beside),
        map_of=lambda number: page_sigmas(settings.sigma_map, number, *beside),
    )
    findings = write_results(source, target, pages, results, found, settings)
    return Outcome(first, results[0], findings)


def write_results(
    source: Path,
    target: Path,
    pages: Pages,
    results: list[ImageFile],
    found: Sequence[PageFindings],
    settings: Settings,
) -> Findings:
    """Write the pages that a file has become, and say what there is to say about it.

    `pages` are its pages as they were. A file that had better stay as it is, as `rewriting` says,
    is copied.
    """
    writing: WritingOptions | None = settings.writing
    notes: tuple[str, ...] = ()
    if keeps_format(pages, target) and settings.writing == PLAIN:
        writing, notes = rewriting(pages[0], results, found, settings)
    if writing is None:
        copy_file(source, target)
    else:
        results = [_for_writing(page, settings) for page in results]
        write_pages(target, results, writing)
        notes += tuple(dict.fromkeys(note for page in results for note in page.notes))
        notes += losses(target, results, writing)
    if settings.error is not None:
        errors = [page.error for page in found if page.error is not None]
        write_pages(
            settings.error, [ImageFile(error, leading=pages[0].leading) for error in errors]
        )
    notes += notes_of(found)
    sigmas = tuple(page.plan.sigma for page in found)
    words = tuple(page.plan.in_words() for page in found)
    return Findings(sigmas, settings.estimates, notes, words)


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
        "an axis (--along)": settings.along is not None,
        "a file for errors (--error)": settings.error is not None,
    }
    for name, given in refused.items():
        if given:
            raise InputError(
                f"{str(source)!r} is a raw file, whose noise and white are found in the file, so "
                f"{name} cannot be given; a strength (--strength) can."
            )
    names = [field.name for field in dataclasses.fields(RawSettings)]
    own = {"noise", "hot_pixels"}
    alike = {name: getattr(settings, name) for name in names if name not in own}
    noise = settings.noise if isinstance(settings.noise, Noise) else None
    raw_settings = RawSettings(**alike, noise=noise)
    outcome = denoise_raw_file(source, target, raw_settings, progress, keep_before=keep_before)
    words = f"photon noise, gain {outcome.gain:.3g}, read noise {outcome.read:.3g}"
    findings = Findings((outcome.sigma,), True, outcome.notes, (words,))
    return Outcome(outcome.before, outcome.after, findings)


def _for_writing(page: ImageFile, settings: Settings) -> ImageFile:
    """Return the denoised page; a white that the user named counts where depth is converted."""
    if settings.writing.depth is None or settings.data_range is None:
        return page
    return dataclasses.replace(page, data_range=settings.data_range)
