"""Results as files: their format, and their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath

from nlnet import images
from nlnet.images import ImageFile, WritingOptions
from nlnet.images.formats import Format, format_of

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".tif": "image/tiff",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".gif": "image/gif",
    ".bmp": "image/bmp",
    ".pgm": "image/x-portable-graymap",
    ".ppm": "image/x-portable-pixmap",
    ".pnm": "image/x-portable-anymap",
    ".npy": "application/octet-stream",
}
"""The formats that come back, each by the suffix of its files."""

_WHITE = (255, 255, 255)


def encode(
    pages: Sequence[ImageFile], suffix: str, quality: int, white: float
) -> tuple[bytes, tuple[str, ...]]:
    """Return pages as the bytes of a file, and what had to be converted for its format.

    Parameters
    ----------
    pages : sequence of ImageFile
        Pages of one size and kind.
    suffix : str
        It names the format.
    quality : int
        Of JPEG files.
    white : float
        The value of white.

    Raises
    ------
    InputError
        If the format cannot hold the pages, and they cannot be converted.
    """
    target = format_of(f"image{suffix}")
    options, notes = _options(pages[0], target, quality)
    if options.depth is not None:
        pages = [dataclasses.replace(page, data_range=white) for page in pages]
    notes += images.losses_of_pages(f"image{suffix}", pages, options)
    return images.encode_pages(pages, suffix, options), notes


def _options(
    page: ImageFile, target: Format, quality: int
) -> tuple[WritingOptions, tuple[str, ...]]:
    """Return options that convert what the format cannot hold, and notes that say so."""
    notes: tuple[str, ...] = ()
    background = None
    if page.alpha is not None and not target.alpha:
        background = _WHITE
        notes += (f"{target.name} holds no transparency, so the image is laid on white",)
    depth = None
    if page.pixels.dtype.name not in target.depths:
        depth = "uint16" if "uint16" in target.depths else "uint8"
        notes += (f"{target.name} holds no {page.pixels.dtype} values, so they become {depth}",)
    return WritingOptions(jpeg_quality=quality, depth=depth, background=background), notes


def result_name(filename: str, suffix: str) -> str:
    r"""Return the name to save the result of an upload under.

    Examples
    --------
    >>> result_name("C:\\photos\\cat.jpeg", ".jpg")
    'cat-denoised.jpg'
    """
    # Some browsers send a whole path, with the separators of their system.
    stem = PurePosixPath(PureWindowsPath(filename).name).stem
    plain = "".join(letter for letter in stem if letter.isprintable())[:100] or "image"
    return f"{plain}-denoised{suffix}"


def describe(image: ImageFile, count: int, suffix: str) -> str:
    """Say size, depth and format of an upload."""
    height, width = image.pixels.shape[:2]
    depth = f"{8 * image.pixels.itemsize}-bit"
    if image.pixels.dtype.kind == "f":
        depth += " float"
    kind = "gray" if image.channels == 1 else "color"
    pages = f", {count} pages" if count > 1 else ""
    return f"{width} x {height}, {depth} {kind} {suffix.removeprefix('.').upper()}{pages}"
