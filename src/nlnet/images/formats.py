"""The formats: what each is called, how it is recognized, and what it can hold."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from nlnet.errors import FileError, InputError
from nlnet.images.content import ImageFile, PathLike, Source
from nlnet.images.libvips import VipsCodec
from nlnet.images.netpbm import NetpbmCodec
from nlnet.images.npy import NpyCodec
from nlnet.images.png import PngCodec
from nlnet.images.tiff import TiffCodec


class Codec(Protocol):
    """Bytes of a file to pages, and back."""

    def read(self, source: Source, max_pixels: int) -> Sequence[ImageFile]:
        """Check the header, and return the pages, decoded when they are asked for."""

    def encode(self, pages: Sequence[ImageFile]) -> bytes:
        """Return the bytes of a file."""


@dataclasses.dataclass(frozen=True)
class Format:
    """A format and what it can hold."""

    name: str
    suffixes: tuple[str, ...]
    signature: bytes
    codec: Codec
    depths: tuple[str, ...] = ("uint8", "uint16")
    channels: tuple[int, ...] = (1, 3)
    alpha: bool = True
    stacks: bool = False
    metadata: bool = True
    max_side: int = 2**31 - 1

    def obstacle(self, image: ImageFile, count: int) -> str | None:
        """Say what of an image of so many pages it cannot hold, None if it can hold all."""
        side = max(image.pixels.shape[:2])
        kind = "color" if image.channels == 3 else "gray"
        obstacles = {
            f"{image.pixels.dtype} values": image.pixels.dtype.name not in self.depths,
            f"{kind} images": image.channels not in self.channels,
            "transparency": image.alpha is not None and not self.alpha,
            f"stacks ({count} pages)": count > 1 and not self.stacks,
            f"sides of {side} pixels": side > self.max_side,
        }
        return next((obstacle for obstacle, holds in obstacles.items() if holds), None)


_NETPBM = NetpbmCodec()

FORMATS = (
    Format(
        "PNG",
        (".png",),
        rb"\x89PNG\r\n\x1a\n",
        PngCodec("PNG", "pngload", "pngsave"),
    ),
    Format(
        "TIFF",
        (".tif", ".tiff"),
        rb"II[*+]\0|MM\0[*+]",
        TiffCodec(
            "TIFF",
            "tiffload",
            "tiffsave",
            {"compression": "deflate"},
            # Otherwise files with all rows in one compressed strip are refused from 50 MB on.
            {"unlimited": True},
        ),
        depths=("uint8", "uint16", "float32"),
        stacks=True,
    ),
    Format(
        "JPEG",
        (".jpg", ".jpeg"),
        rb"\xff\xd8\xff",
        # A lower quality would put new artefacts where the noise was.
        VipsCodec("JPEG", "jpegload", "jpegsave", {"Q": 95}),
        depths=("uint8",),
        alpha=False,
        max_side=65535,
    ),
    Format(
        "WebP",
        (".webp",),
        rb"RIFF....WEBP",
        # Its lossy kind halves the resolution of color; exact: color under alpha 0 stays.
        VipsCodec("WebP", "webpload", "webpsave", {"lossless": True, "exact": True}),
        depths=("uint8",),
        max_side=16383,
    ),
    Format("PGM", (".pgm",), rb"P[1245]\s", _NETPBM, channels=(1,), alpha=False, metadata=False),
    Format("PPM", (".ppm",), rb"P[36]\s", _NETPBM, channels=(3,), alpha=False, metadata=False),
    Format("PNM", (".pnm",), rb"P[12456]\s", _NETPBM, alpha=False, metadata=False),
    Format(
        "npy",
        (".npy",),
        rb"\x93NUMPY",
        NpyCodec(),
        depths=("uint8", "uint16", "float32", "float64"),
        stacks=True,
        metadata=False,
    ),
)

SUFFIXES = tuple(suffix for known in FORMATS for suffix in known.suffixes)
"""Suffixes of the files that can be read and written, in lower case."""

_SIGNATURE_BYTES = 16


def format_of(path: PathLike) -> Format:
    """Return the format that a name's suffix stands for."""
    suffix = Path(path).suffix
    for known in FORMATS:
        if suffix.lower() in known.suffixes:
            return known
    raise InputError(
        f"{os.fspath(path)!r} has the suffix {suffix!r}, "
        f"but must have one of {', '.join(SUFFIXES)}."
    )


def recognize(source: Source) -> Format:
    """Tell a file's format by its first bytes, not its name."""
    with source.open() as stream:
        try:
            start = stream.read(_SIGNATURE_BYTES)
        except OSError as error:
            raise FileError(f"Cannot read {source.name!r}: {error.strerror or error}.") from error
    if not start:
        raise FileError(f"Cannot read {source.name!r}: the file is empty.")
    for known in FORMATS:
        if re.match(known.signature, start, re.DOTALL):
            return known
    names = ", ".join(known.name for known in FORMATS)
    raise FileError(f"Cannot read {source.name!r}: it is none of {names}.")


def check_holds(target: Format, image: ImageFile, count: int) -> None:
    """Raise InputError, with the formats that would do, if one cannot hold such pages."""
    obstacle = target.obstacle(image, count)
    if obstacle is not None:
        others = [known.name for known in FORMATS if known.obstacle(image, count) is None]
        raise InputError(
            f"{target.name} cannot hold {obstacle}; write {' or '.join(others)} instead."
        )
