"""Files beside the images: masks, which leave pixels out, and maps of sigma."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.images import ImageFile, read_pages
from nlnet.masks import Mask

Path = str | os.PathLike[str]


def read_side_file(path: Path, max_pixels: int) -> Sequence[ImageFile]:
    """Open a mask or a map, of one page or several; what has been read is kept for the next image.

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


@functools.lru_cache(maxsize=2)  # a mask and a map
def _read(name: str, modified: int, max_pixels: int) -> Sequence[ImageFile]:
    pages = read_pages(name, max_pixels=max_pixels)
    return [pages[0]] if len(pages) == 1 else pages


def page_mask(path: Path | None, number: int, count: int, max_pixels: int) -> Mask | None:
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
    pixels = _page("mask", path, number, count, max_pixels)
    return np.asarray((pixels != 0).any(axis=2) if pixels.ndim == 3 else pixels != 0)


def page_sigmas(path: Path | None, number: int, count: int, max_pixels: int) -> Array | None:
    """Return the map of sigma of a page; parameters are those of `page_mask`.

    Raises
    ------
    InputError
        If it has another number of pages, or colors.
    """
    if path is None:
        return None
    pixels = _page("sigma map", path, number, count, max_pixels)
    if pixels.ndim != 2:
        raise InputError(
            f"The sigma map {os.fspath(path)!r} has {pixels.shape[2]} channels, but must have one."
        )
    return pixels


def _page(what: str, path: Path, number: int, count: int, max_pixels: int) -> Array:
    pages = read_side_file(path, max_pixels)
    if len(pages) not in (1, count):
        wanted = "1 page" if count == 1 else f"1 page or {count}"
        raise InputError(
            f"The {what} {os.fspath(path)!r} has {len(pages)} pages, but must have {wanted}."
        )
    return pages[number if len(pages) > 1 else 0].pixels
