"""Results as files: in the format that is wanted, under a name that says what they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import PurePosixPath, PureWindowsPath

import numpy as np

from nlnet import images
from nlnet.arrays import Array
from nlnet.images import ImageFile
from nlnet.images.formats import Format, check_holds, format_of
from nlnet.images.libvips import VipsCodec
from nlnet.web.display import Range, to_8_bits

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".tif": "image/tiff",
    ".webp": "image/webp",
    ".pgm": "image/x-portable-graymap",
    ".ppm": "image/x-portable-pixmap",
    ".pnm": "image/x-portable-anymap",
    ".npy": "application/octet-stream",
}
"""The formats that come back, each by the suffix of its files."""


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
    converted = [_convert(page, target, white) for page in pages]
    fitting = [page for page, _ in converted]
    check_holds(target, fitting[0], len(fitting))
    codec = target.codec
    if target.name == "JPEG" and isinstance(codec, VipsCodec):
        codec = dataclasses.replace(codec, save_options={"Q": quality})
    notes = converted[0][1] + images.losses(f"image{suffix}", fitting[0])
    return codec.encode(fitting), notes


def _convert(page: ImageFile, target: Format, white: float) -> tuple[ImageFile, tuple[str, ...]]:
    """Return the page with a depth, and without the transparency, that the format cannot hold."""
    notes: tuple[str, ...] = ()
    pixels, alpha = page.pixels, page.alpha
    if alpha is not None and not target.alpha:
        pixels, alpha = _on_white(pixels, alpha, white), None
        notes += (f"{target.name} holds no transparency, so the image is laid on white",)
    if pixels.dtype.name not in target.depths:
        wanted = _depth_for(pixels, target)
        notes += (f"{target.name} holds no {pixels.dtype} values, so they become {wanted}",)
        pixels = _to_depth(pixels, wanted, white)
        alpha = None if alpha is None else _to_depth(alpha, wanted, white)
        page = dataclasses.replace(page, data_range=None)
    return dataclasses.replace(page, pixels=pixels, alpha=alpha), notes


def _depth_for(pixels: Array, target: Format) -> str:
    deeper = [name for name in ("float32", "uint16", "uint8") if name in target.depths]
    return next((name for name in deeper if np.dtype(name).kind == pixels.dtype.kind), deeper[0])


def _to_depth(values: Array, depth: str, white: float) -> Array:
    if depth == "uint8":
        return to_8_bits(values, Range(0.0, white))
    if depth == "float32":
        return values.astype(np.float32)
    scaled = np.clip(values.astype(np.float64) / white, 0, 1) * np.iinfo(depth).max
    return np.asarray(np.rint(scaled).astype(depth))


def _on_white(pixels: Array, alpha: Array, white: float) -> Array:
    share = alpha.astype(np.float32) / np.float32(white)
    share = share if pixels.ndim == 2 else share[..., np.newaxis]
    mixed = white + share * (pixels.astype(np.float32) - white)
    return (np.rint(mixed) if pixels.dtype.kind == "u" else mixed).astype(pixels.dtype)


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
