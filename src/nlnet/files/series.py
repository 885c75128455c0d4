"""Which pages of a file are neighbors: the axes that its description names."""

import json
import math
import re

from nlnet.denoising.pages import find_axis, series_of_pages
from nlnet.errors import InputError
from nlnet.images import ImageFile
from nlnet.images.exif import DESCRIPTION

PAGES, FILES = "pages", "files"
"""Axes that are no names of a file's own: all its pages, and the images of a folder."""

CHANNELS = "c"
"""The axis whose pages differ in their noise."""


def series_of_file(first: ImageFile, count: int, along: str | int) -> list[list[int]]:
    """Return the numbers of the pages of every series of a file.

    Parameters
    ----------
    first : ImageFile
        Its first page, whose description may name axes.
    count : int
        Number of pages.
    along : str or int
        A name that the file has, such as ``"t"``; the number of an axis; or ``"pages"`` for all
        pages in their order.

    Raises
    ------
    InputError
        If the file has no such axis.

    Examples
    --------
    >>> import numpy as np
    >>> series_of_file(ImageFile(np.zeros((8, 8))), 3, "pages")
    [[0, 1, 2]]
    """
    if along == FILES:
        raise InputError("--along files is for several images that go into a folder.")
    axes = {PAGES: count} if along == PAGES else axes_of(first, count)
    pages = tuple(axes.values())
    return series_of_pages(pages, find_axis(along, pages, tuple(axes)))


def axes_of(first: ImageFile, count: int) -> dict[str, int]:
    """Return names and lengths of the axes of a file's pages, as OME, ImageJ or tifffile say.

    If its description says nothing, or something that does not fit, there is one axis, ``pages``.
    """
    tags = None if first.metadata is None else first.metadata.tags
    data = (tags and tags.data(DESCRIPTION)) or b""
    text = data.decode("utf-8", "replace").strip("\0 ")
    axes: dict[str, int] = {}
    if "<OME" in text:
        sizes = {name: int(size) for name, size in re.findall(r'\bSize([TCZ])="(\d+)"', text)}
        order = re.search(r'DimensionOrder="XY([CTZ]{3})"', text)
        if order and len(sizes) == 3:
            sizes["C"] = max(1, sizes["C"] // first.channels)
            axes = {name.lower(): sizes[name] for name in reversed(order[1])}
    elif text.startswith("ImageJ="):
        told = dict(re.findall(r"^(frames|slices|channels)=(\d+)", text, re.MULTILINE))
        words = {"t": "frames", "z": "slices", "c": "channels"}
        axes = {name: int(told.get(word, 1)) for name, word in words.items()}
    elif text.startswith("{"):
        try:
            told = json.loads(text)
            named = zip(str(told["axes"]).lower(), told["shape"], strict=True)
            axes = {name: int(length) for name, length in named if name not in "yxs"}
        except (ValueError, KeyError, TypeError):
            axes = {}
    axes = {name: length for name, length in axes.items() if length > 1}
    return axes if axes and math.prod(axes.values()) == count else {PAGES: count}
