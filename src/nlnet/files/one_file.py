"""One image file in, one out: page by page, alpha and metadata kept."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nlnet.arrays import Array
from nlnet.atomic import copy_file
from nlnet.defaults import JPEG_QUALITY
from nlnet.denoising.image import stoppable
from nlnet.denoising.page import PageFindings
from nlnet.files.findings import Findings, Outcome, notes_of
from nlnet.files.pages import denoise_pages
from nlnet.files.settings import Settings
from nlnet.images import (
    ImageFile,
    WritingOptions,
    check_format,
    decode,
    encode,
    keeps_format,
    losses,
    read_unless_raw,
    write_pages,
)
from nlnet.images.content import Pages
from nlnet.images.writing import PLAIN
from nlnet.noise.record import NoNoise
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
        if writing.depth is not None and settings.data_range is not None:
            white = settings.data_range  # that the user named counts where depth is converted
            results = [dataclasses.replace(page, data_range=white) for page in results]
        write_pages(target, results, writing)
        notes += tuple(dict.fromkeys(note for page in results for note in page.notes))
        notes += losses(target, results, writing)
    if settings.error is not None:
        errors = [page.error for page in found if page.error is not None]
        write_pages(
            settings.error, [ImageFile(error, leading=pages[0].leading) for error in errors]
        )
    if STAYS not in notes:
        notes += notes_of(found)
    sigmas = tuple(page.plan.sigma for page in found)
    words = tuple(page.plan.in_words() for page in found)
    return Findings(sigmas, settings.estimates, notes, words)


_PAYS = 2.0
"""Times that what was removed must exceed what encoding loses, both as mean squares: some of it may
have been detail."""

_PIECE = 1024
"""Side of the piece in the middle of the picture that is encoded to find out."""

_BLOCK = 16
"""Pixels of the blocks that a JPEG with halved chroma is made of."""


STAYS = (
    "its noise is weaker than what encoding it again would lose, so the file is copied as it is "
    "(--sigma S, or --jpeg-quality Q, writes it again)"
)


def rewriting(
    before: ImageFile,
    results: Sequence[ImageFile],
    found: Sequence[PageFindings],
    settings: Settings,
) -> tuple[WritingOptions | None, tuple[str, ...]]:
    """Return how to write a file of the format that it had, and what there is to say.

    None if it had better stay as it is: there is no noise, or too little to pay for encoding a JPEG
    again. Else a JPEG is encoded as it was, or better if too much would be lost.

    Parameters
    ----------
    before : ImageFile
        The first page as it was.
    results, found
        The denoised pages, and what was found in them.
    settings : Settings
        What the user has chosen: a quality stays, and noise that is given is removed in any case.
    """
    if all(isinstance(page.plan.noise, NoNoise) for page in found):
        return None, ()
    options = settings.writing
    encoding = None if before.metadata is None else before.metadata.encoding
    if encoding is None or options.jpeg_quality is not None:
        return options, ()
    old, new = _piece(before.pixels), _piece(results[0].pixels)
    removed = _mean_square(new, old)
    chosen = options
    for quality, halved in _ways(*encoding):
        chosen = dataclasses.replace(options, jpeg_quality=quality, halved_chroma=halved)
        encoded = decode(encode(ImageFile(new), ".jpg", chosen), "JPEG").pixels
        if removed > _PAYS * _mean_square(encoded, new):
            return chosen, ()
    return (None, (STAYS,)) if settings.estimates else (chosen, ())


def _ways(quality: int, halved: bool) -> Iterator[tuple[int, bool]]:
    """Yield the way that a file was encoded, and better ones."""
    yield quality, halved
    if quality < JPEG_QUALITY:
        yield (quality + JPEG_QUALITY) // 2, halved
    if quality < JPEG_QUALITY or halved:
        yield max(quality, JPEG_QUALITY), False


def _piece(pixels: Array) -> Array:
    places = (max(n - _PIECE, 0) // 2 // _BLOCK * _BLOCK for n in pixels.shape[:2])
    return pixels[tuple(slice(first, first + _PIECE) for first in places)]


def _mean_square(first: Array, second: Array) -> float:
    return float(np.mean(np.square(np.subtract(first, second, dtype=np.float32))))
