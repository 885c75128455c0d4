"""Masks in files: images that say which pixels of other images are left out."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

import numpy as np

from nlnet.errors import InputError
from nlnet.images import ImageFile, read_pages
from nlnet.masks import Mask


def read_masks(path: str | os.PathLike[str], max_pixels: int) -> Sequence[ImageFile]:
    """Open a mask, of one page or several; what has been read is kept for the next image.

    Raises
    ------
    FileError, InputError
        As `nlnet.images.read_pages`.
    """
    name = os.path.abspath(path)
    try:
        modified = os.stat(name).st_mtime_ns
    except OSError:
        modified = 0  # reading it says what is wrong
    return _read(name, modified, max_pixels)


@functools.lru_cache(maxsize=1)
def _read(name: str, modified: int, max_pixels: int) -> Sequence[ImageFile]:
    pages = read_pages(name, max_pixels=max_pixels)
    return [pages[0]] if len(pages) == 1 else pages


def page_mask(
    path: str | os.PathLike[str] | None, number: int, count: int, max_pixels: int
) -> Mask | None:
    """Return which pixels of a page a mask leaves out: those where it is not 0.

    Parameters
    ----------
    path : path or None
        The mask, if there is one.
    number, count : int
        Which page of how many it is for. A mask of one page is for all of them.
    max_pixels : int
        As for `nlnet.images.read_pages`.

    Raises
    ------
    InputError
        If it has another number of pages.
    """
    if path is None:
        return None
    pages = read_masks(path, max_pixels)
    if len(pages) not in (1, count):
        wanted = "1 page" if count == 1 else f"1 page or {count}"
        raise InputError(
            f"The mask {os.fspath(path)!r} has {len(pages)} pages, but must have {wanted}."
        )
    pixels = pages[number if len(pages) > 1 else 0].pixels
    return np.asarray((pixels != 0).any(axis=2) if pixels.ndim == 3 else pixels != 0)
