"""Results as files: their format, their names, forms of several, and 8 bits for the screen."""

import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath, PureWindowsPath
from urllib.parse import quote

import numpy as np

from nlnet import images
from nlnet.arrays import Array
from nlnet.files.data_range import Range
from nlnet.images import ImageFile, WritingOptions
from nlnet.images.formats import Format, format_of
from nlnet.images.png import PngCodec

_PLAIN_NAMES = ("png", "webp", "avif", "jxl", "fits", "gif", "bmp")
MEDIA_TYPES = {f".{name}": f"image/{name}" for name in _PLAIN_NAMES} | {
    ".jpg": "image/jpeg",
    ".tif": "image/tiff",
    ".pgm": "image/x-portable-graymap",
    ".ppm": "image/x-portable-pixmap",
    ".pnm": "image/x-portable-anymap",
    **dict.fromkeys((".npy", ".npz"), "application/octet-stream"),
}
"""The formats that come back, each by the suffix of its files."""

_WHITE = (255, 255, 255)

_BAND_VALUES = 2**20
"""Values that are scaled at once: floating copies of a whole image would be large."""

_FAST_PNG = PngCodec("PNG", "pngload", "pngsave", {"compression": 1})
"""Previews are made to be seen at once, not to be kept."""


def encode(
    pages: Sequence[ImageFile], suffix: str, writing: WritingOptions, white: float
) -> tuple[bytes, tuple[str, ...]]:
    """Return pages as the bytes of a file, and what had to be converted for its format.

    Parameters
    ----------
    pages : sequence of ImageFile
        Pages of one size and kind.
    suffix : str
        It names the format.
    writing : WritingOptions
        How to write it; what the format cannot hold is converted.
    white : float
        The value of white.

    Raises
    ------
    InputError
        If the format cannot hold the pages, and they cannot be converted.
    """
    target = format_of(f"image{suffix}")
    options, notes = _converting(pages[0], target, writing)
    if options.depth is not None:
        pages = [dataclasses.replace(page, data_range=white) for page in pages]
    notes += images.losses(f"image{suffix}", pages, options)
    return images.encode(pages, suffix, options), notes


def _converting(
    page: ImageFile, target: Format, writing: WritingOptions
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
    return dataclasses.replace(writing, depth=depth, background=background), notes


def to_8_bits(values: Array, shown: Range) -> Array:
    """Scale values to 0-255, a band of rows at a time.

    Examples
    --------
    >>> to_8_bits(np.array([[0, 2048, 4095, 9999]], np.uint16), Range(0, 4095)).tolist()
    [[0, 128, 255, 255]]
    """
    scaled = np.empty(values.shape, np.uint8)
    rows = max(1, _BAND_VALUES // max(1, values[:1].size))
    for start in range(0, len(values), rows):
        band = values[start : start + rows].astype(np.float32)
        # Infinite values are shown too; float32 is precise enough for 256 levels.
        finite = np.nan_to_num(band, posinf=shown.high, neginf=shown.low)
        scaled[start : start + rows] = np.rint(np.clip(shown.on_255(finite), 0, 255))
    return scaled


def to_png(image: ImageFile, shown: Range, white: float) -> bytes:
    """Return the image as a PNG file of 8 bits, for the screen."""
    pixels = to_8_bits(image.pixels, shown)
    alpha = None if image.alpha is None else to_8_bits(image.alpha, Range(0.0, white))
    return _FAST_PNG.encode([dataclasses.replace(image, pixels=pixels, alpha=alpha)])


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


def disposition(filename: str) -> str:
    """Return a Content-Disposition that names a file, for old programs and for new ones.

    Examples
    --------
    >>> disposition("cat.png")
    'attachment; filename="cat.png"'
    >>> print(disposition("Käse.png"))
    attachment; filename="K_se.png"; filename*=UTF-8''K%C3%A4se.png
    """
    odd = set('"\\%')
    plain = "".join("_" if letter in odd or not letter.isascii() else letter for letter in filename)
    named = f'attachment; filename="{plain}"'
    # Programs such as curl know the first name only.
    return named if plain == filename else f"{named}; filename*=UTF-8''{quote(filename, safe='')}"


def join_form(parts: Mapping[str, tuple[str, str, bytes]]) -> tuple[str, bytes]:
    """Return files as a form, as browsers read it with ``Response.formData()``.

    Parameters
    ----------
    parts : mapping
        For each field a name of a file, its media type, and its bytes.

    Returns
    -------
    tuple of str and bytes
        The form's media type, and the form.
    """
    boundary = secrets.token_hex(16)
    pieces = []
    for field, (filename, media_type, data) in parts.items():
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"; '
            f'filename="{quote(filename)}"\r\nContent-Type: {media_type}\r\n\r\n'
        )
        pieces += [head.encode(), data, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}", b"".join(pieces)
