"""Image files as arrays, with their bit depth, alpha and metadata kept.

Files go through libvips (pyvips with its binary wheel): it reads and writes 16-bit RGB PNG, which
Pillow silently cuts to 8 bits, and keeps color profiles and EXIF (of which TIFF files get the
orientation only). Pillow plus tifffile would be two code paths, still without 16-bit RGB PNG, and
import no faster (both about 0.02 s).
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyvips

from nlnet.arrays import Array
from nlnet.errors import FileError, InputError
from nlnet.files import write_atomically

PathLike: TypeAlias = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True)
class _Format:
    """How libvips reads and writes a format, and what the format can hold."""

    name: str
    suffixes: tuple[str, ...]
    signatures: tuple[bytes, ...]
    loader: str
    saver: str
    save_options: Mapping[str, Any]
    depths: tuple[str, ...] = ("uint8", "uint16")
    alpha: bool = True


_FORMATS = (
    _Format("PNG", (".png",), (b"\x89PNG\r\n\x1a\n",), "pngload", "pngsave_buffer", {}),
    _Format(
        "TIFF",
        (".tif", ".tiff"),
        (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
        "tiffload",
        "tiffsave_buffer",
        {"compression": "deflate", "predictor": "horizontal"},
    ),
    _Format(
        "JPEG",
        (".jpg", ".jpeg"),
        (b"\xff\xd8\xff",),
        "jpegload",
        "jpegsave_buffer",
        # A lower quality would put new artefacts where the noise was.
        {"Q": 95},
        depths=("uint8",),
        alpha=False,
    ),
)

SUFFIXES = tuple(suffix for known in _FORMATS for suffix in known.suffixes)
"""Suffixes of the files that can be read and written, in lower case."""

_COLOR_SPACES = {"b-w": 1, "grey16": 1, "srgb": 3, "rgb16": 3}
_KEPT_METADATA = ("exif-", "icc-profile-data", "iptc-data", "orientation", "xmp-data")


@dataclasses.dataclass(frozen=True, eq=False)
class ImageFile:
    """The content of an image file.

    Parameters
    ----------
    pixels : array
        (H, W) for gray or (H, W, 3) for RGB; uint8 or uint16.
    alpha : array or None
        (H, W) of the same dtype, if the file has transparency.
    source : pyvips.Image or None
        The image as it was read, for its metadata.
    """

    pixels: Array
    alpha: Array | None = None
    source: Any = None


def read_image(path: PathLike) -> ImageFile:
    """Read a PNG, JPEG or TIFF file of 8 or 16 bits, gray or RGB, with or without alpha.

    Raises
    ------
    FileError
        If it cannot be opened, is no such image, or is damaged or cut short.
    InputError
        If it is an image of another kind, such as CMYK or a stack of pages.
    """
    known = _recognize(path)
    try:
        # Not `new_from_file`: it takes brackets in a name for options. Without `revalidate`,
        # libvips would answer from its cache when the file has changed since.
        source = getattr(pyvips.Image, known.loader)(
            os.fsencode(path), fail_on="error", revalidate=True
        )
        _check_kind(path, source)
        bands = source.numpy()
    except pyvips.Error as error:
        raise FileError(
            f"Cannot read {os.fspath(path)!r}: it is a damaged or incomplete {known.name} file."
        ) from error
    channels = _COLOR_SPACES[source.interpretation]
    if bands.ndim == 2:
        return ImageFile(bands, None, source)
    pixels = bands[..., 0] if channels == 1 else bands[..., :3]
    alpha = bands[..., channels] if source.bands > channels else None
    return ImageFile(pixels, alpha, source)


def write_image(path: PathLike, image: ImageFile) -> None:
    """Write an image in the format its suffix names, whole or not at all.

    Raises
    ------
    FileError
        If it cannot be written; a file that was there is then unharmed.
    InputError
        If the suffix is unknown, or the format cannot hold the image.
    """
    check_format(path, image)
    known = _format_of(path)
    try:
        encoded = getattr(_assemble(image), known.saver)(**known.save_options)
    except pyvips.Error as error:
        raise FileError(f"Cannot encode {os.fspath(path)!r} as {known.name}: {error}.") from error
    write_atomically(path, encoded)


def check_format(path: PathLike, image: ImageFile) -> None:
    """Raise InputError unless the suffix is known and its format can hold the image."""
    known = _format_of(path)
    others = " or ".join(other.name for other in _FORMATS if other.alpha)
    if image.pixels.dtype.name not in known.depths:
        raise InputError(
            f"{known.name} cannot hold {image.pixels.dtype} values; write {others} instead."
        )
    if image.alpha is not None and not known.alpha:
        raise InputError(f"{known.name} cannot hold transparency; write {others} instead.")


def _format_of(path: PathLike) -> _Format:
    suffix = Path(path).suffix
    for known in _FORMATS:
        if suffix.lower() in known.suffixes:
            return known
    raise InputError(
        f"{os.fspath(path)!r} has the suffix {suffix!r}, "
        f"but must have one of {', '.join(SUFFIXES)}."
    )


def _recognize(path: PathLike) -> _Format:
    """Tell a file's format by its first bytes, not its name."""
    name = os.fspath(path)
    try:
        with open(path, "rb") as stream:
            start = stream.read(8)
    except OSError as error:
        raise FileError(f"Cannot read {name!r}: {error.strerror or error}.") from error
    if not start:
        raise FileError(f"Cannot read {name!r}: the file is empty.")
    for known in _FORMATS:
        if start.startswith(known.signatures):
            return known
    names = ", ".join(known.name for known in _FORMATS)
    raise FileError(f"Cannot read {name!r}: it is none of {names}.")


def _check_kind(path: PathLike, source: Any) -> None:
    channels = _COLOR_SPACES.get(source.interpretation)
    known_depth = source.format in ("uchar", "ushort")
    if channels is None or not known_depth or source.bands not in (channels, channels + 1):
        raise InputError(
            f"{os.fspath(path)!r} is a {source.interpretation} image of {source.bands} "
            f"{source.format} channels, but must be gray or RGB with 8 or 16 bits."
        )
    pages = source.get("n-pages") if source.get_typeof("n-pages") else 1
    if pages > 1:
        raise InputError(f"{os.fspath(path)!r} has {pages} pages, but must have one.")


def _assemble(image: ImageFile) -> Any:
    """Join pixels, alpha and the metadata of the source into one libvips image."""
    pixels = image.pixels if image.pixels.ndim == 3 else image.pixels[..., np.newaxis]
    bands = pixels if image.alpha is None else np.dstack([pixels, image.alpha])
    color = pixels.shape[-1] == 3
    if image.pixels.dtype == np.uint16:
        space = "rgb16" if color else "grey16"
    else:
        space = "srgb" if color else "b-w"
    joined = pyvips.Image.new_from_array(np.ascontiguousarray(bands), interpretation=space)
    if image.source is None:
        return joined
    joined = joined.copy(xres=image.source.xres, yres=image.source.yres)
    for field in image.source.get_fields():
        if field.startswith(_KEPT_METADATA):
            joined.set_type(image.source.get_typeof(field), field, image.source.get(field))
    return joined
