"""Whether a denoised file is written anew or stays as it is, and how a JPEG is encoded again.

Encoding loses something every time. A JPEG is better off only if more noise was removed than
encoding puts in; else the file had better stay as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from nlnet.arrays import Array
from nlnet.defaults import JPEG_QUALITY
from nlnet.denoising.page import PageFindings
from nlnet.files.settings import Settings
from nlnet.images import ImageFile, WritingOptions, decode, encode
from nlnet.noise.record import NoNoise

_PAYS = 2.0
"""Times that what was removed must exceed what encoding loses, both as mean squares: some of it may
have been detail."""

_PIECE = 1024
"""Side of the piece in the middle of the picture that is encoded to find out."""

_BLOCK = 16
"""Pixels of the blocks that a JPEG with halved chroma is made of."""


STAYS = "its noise is weaker than what encoding it again would lose, so the file is copied as it is"


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
        if removed > _PAYS * _mean_square(_encoded(new, chosen), new):
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


def _encoded(pixels: Array, options: WritingOptions) -> Array:
    return decode(encode(ImageFile(pixels), ".jpg", options), "JPEG").pixels
