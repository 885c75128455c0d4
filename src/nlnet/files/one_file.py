"""One image file in, one out: page by page, alpha and metadata kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from nlnet.atomic import copy_file
from nlnet.denoising.image import stoppable
from nlnet.denoising.page import PageFindings
from nlnet.files.findings import Findings, Outcome, notes_of
from nlnet.files.pages import denoise_pages
from nlnet.files.rewriting import rewriting
from nlnet.files.settings import Settings
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
from nlnet.progress import Progress


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
        from nlnet.files.raw_file import denoise_raw_file

        return denoise_raw_file(source, target, settings, progress, keep_before=keep_before)
    first = pages[0]
    check_format(target, first, len(pages), settings.writing)
    network = settings.network(first.channels)
    results, found = denoise_pages(pages, settings, network, stoppable(progress), name=str(source))
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


def _for_writing(page: ImageFile, settings: Settings) -> ImageFile:
    """Return the denoised page; a white that the user named counts where depth is converted."""
    if settings.writing.depth is None or settings.data_range is None:
        return page
    return dataclasses.replace(page, data_range=settings.data_range)
