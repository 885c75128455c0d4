"""The formats: what each is called, how it is recognized, and what it can hold."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from nlnet.errors import FileError, InputError, cannot
from nlnet.images.avif import AvifCodec
from nlnet.images.bmp import BmpCodec
from nlnet.images.content import ImageFile, PathLike, Source
from nlnet.images.gif import GifCodec
from nlnet.images.jpeg import JpegCodec
from nlnet.images.netpbm import NetpbmCodec
from nlnet.images.npy import NpyCodec
from nlnet.images.png import PngCodec
from nlnet.images.raw_files import RawFileError, raw_kind
from nlnet.images.tiff import TiffCodec
from nlnet.images.webp import WebpCodec
from nlnet.images.writing import PLAIN, WritingOptions, depth_of, has_alpha


class Codec(Protocol):
    """Bytes of a file to pages, and back."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Sequence[ImageFile]:
        """Check the header, and return the pages, decoded when they are asked for."""

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file."""


_INTEGERS = ("int16", "int32", "uint32")
_FLOATS = ("float16", "float32", "float64")


@dataclasses.dataclass(frozen=True)
class Format:
    """A format and what it can hold.

    `metadata` lists the kinds of metadata it holds. `gray` tells whether gray images stay gray, and
    `white` whether a file can name its value of white. A format that is not `exact` changes pixels,
    so messages do not suggest it.
    """

    name: str
    suffixes: tuple[str, ...]
    signature: bytes
    codec: Codec
    depths: tuple[str, ...] = ("uint8", "uint16")
    channels: tuple[int, ...] = (1, 3)
    alpha: bool = True
    stacks: bool = False
    metadata: tuple[str, ...] = ("exif", "icc", "xmp", "iptc")
    gray: bool = True
    white: bool = False
    exact: bool = True
    max_side: int = 2**31 - 1

    def obstacle(self, image: ImageFile, count: int, options: WritingOptions) -> str | None:
        """Name what it cannot hold of an image with `count` pages, None if it can hold all."""
        side = max(image.pixels.shape[:2])
        kind = "color" if image.channels == 3 else "gray"
        depth = depth_of(image, options)
        obstacles = {
            f"{depth} values": depth not in self.depths,
            f"{kind} images": image.channels not in self.channels,
            "transparency": has_alpha(image, options) and not self.alpha,
            f"stacks ({count} pages)": count > 1 and not self.stacks,
            f"sides of {side} pixels": side > self.max_side,
        }
        return next((obstacle for obstacle, holds in obstacles.items() if holds), None)

    def way_out(self, image: ImageFile, count: int, options: WritingOptions) -> str:
        """Suggest options with which it could hold the image; empty if there are none."""
        shallow = dataclasses.replace(options, depth="uint8")
        white = (255, 255, 255)
        offers = {
            "--depth 8": shallow,
            "--background white": dataclasses.replace(options, background=white),
            "--depth 8 --background white": dataclasses.replace(shallow, background=white),
        }
        for words, offer in offers.items():
            if self.obstacle(image, count, offer) is None:
                return f", or convert it with {words}"
        return ""


_NETPBM = NetpbmCodec()

FORMATS = (
    Format("PNG", (".png",), rb"\x89PNG\r\n\x1a\n", PngCodec("PNG", "pngload", "pngsave")),
    Format(
        "TIFF",
        (".tif", ".tiff"),
        rb"II[*+]\0|MM\0[*+]",
        # Otherwise files with all rows in one compressed strip are refused from 50 MB on.
        TiffCodec("TIFF", "tiffload", "", load_options={"unlimited": True}),
        depths=("uint8", "uint16", *_INTEGERS, *_FLOATS),
        stacks=True,
    ),
    Format(
        "JPEG",
        (".jpg", ".jpeg"),
        rb"\xff\xd8\xff",
        JpegCodec("JPEG", "jpegload", "jpegsave"),
        depths=("uint8",),
        alpha=False,
        max_side=65535,
    ),
    Format(
        "WebP",
        (".webp",),
        rb"RIFF....WEBP",
        WebpCodec("WebP", "webpload", "webpsave"),
        depths=("uint8",),
        metadata=("exif", "icc", "xmp"),
        gray=False,
        max_side=16383,
    ),
    Format(
        "AVIF",
        (".avif",),
        rb".{4}ftyp(avi[fs]|mif1.{4}(.{4}){0,2}avif)",
        AvifCodec("AVIF", "heifload", "heifsave", {"compression": "av1", "lossless": True}),
        metadata=("exif", "icc", "xmp"),
        gray=False,
        exact=False,
        max_side=16384,
    ),
    Format(
        "GIF",
        (".gif",),
        rb"GIF8[79]a",
        GifCodec("GIF", "gifload", "gifsave", {"dither": 0.0, "effort": 10}),
        depths=("uint8",),
        metadata=(),
        exact=False,
        max_side=65535,
    ),
    Format(
        "BMP",
        (".bmp",),
        rb"BM.{4}",
        BmpCodec(),
        depths=("uint8",),
        metadata=(),
        max_side=2**15,
    ),
    Format(
        "PGM",
        (".pgm",),
        rb"P[1245]\s",
        _NETPBM,
        channels=(1,),
        alpha=False,
        metadata=(),
        white=True,
    ),
    Format(
        "PPM", (".ppm",), rb"P[36]\s", _NETPBM, channels=(3,), alpha=False, metadata=(), white=True
    ),
    Format("PNM", (".pnm",), rb"P[12456]\s", _NETPBM, alpha=False, metadata=(), white=True),
    Format(
        "npy",
        (".npy",),
        rb"\x93NUMPY",
        NpyCodec(),
        depths=("uint8", "uint16", *_INTEGERS, *_FLOATS),
        stacks=True,
        metadata=(),
        white=True,
    ),
)

SUFFIXES = tuple(suffix for known in FORMATS for suffix in known.suffixes)
"""Suffixes of the files that can be read and written, in lower case."""

_SIGNATURE_BYTES = 32
_OTHERS: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "HEIC": (rb".{4}ftyp(hei|hev|mif1|msf1)", (".heic", ".heif", ".hif")),
    "JPEG 2000": (rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", (".jp2", ".j2k", ".jpx")),
    "JPEG XL": (rb"\xff\x0a|\0\0\0\x0cJXL ", (".jxl",)),
    "PSD": (rb"8BPS", (".psd",)),
    "OpenEXR": (rb"v/1\x01", (".exr",)),
    "Radiance HDR": (rb"#\?RADIANCE|#\?RGBE", (".hdr",)),
    "FITS": (rb"SIMPLE  =", (".fits", ".fit")),
    "PDF": (rb"%PDF", (".pdf",)),
    "SVG": (rb"<svg|<\?xml.*<svg", (".svg",)),
    "PAM": (rb"P7\s", (".pam",)),
    "PFM": (rb"P[Ff]\s", (".pfm",)),
}
"""Formats that are not read, so that messages can name them: how files begin, and names end."""

OTHER_SUFFIXES = tuple(suffix for _, suffixes in _OTHERS.values() for suffix in suffixes)
"""Suffixes of images that are not read, in lower case."""


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


def read_source(source: Source, max_pixels: int) -> Sequence[ImageFile]:
    """Check a file, which is opened once, and return its pages, decoded when they are asked for."""
    with source.open() as stream:
        known = recognize(source, stream)
        stream.seek(0)
        return known.codec.read(source, stream, max_pixels)


def recognize(source: Source, stream: BinaryIO) -> Format:
    """Tell a file's format by its first bytes, not its name.

    Raises
    ------
    RawFileError
        If it is the raw file of a camera.
    FileError
        If it is of no known format, or cannot be read.
    """
    try:
        start = stream.read(_SIGNATURE_BYTES)
    except OSError as error:
        raise cannot(f"read {source.name!r}", error) from error
    if not start:
        raise FileError(f"Cannot read {source.name!r}: the file is empty.")
    stream.seek(0)
    raw = raw_kind(stream)
    if raw is not None:
        raise RawFileError(
            f"Cannot read {source.name!r}: it is a camera's raw file ({raw}), not yet a picture; "
            f"'nlnet denoise' makes a TIFF file of it{_rawpy_hint()}."
        )
    for known in FORMATS:
        if re.match(known.signature, start, re.DOTALL):
            return known
    for name, (signature, _) in _OTHERS.items():
        if re.match(signature, start, re.DOTALL):
            raise FileError(
                f"Cannot read {source.name!r}: {name} files are not supported; "
                "convert it to PNG, TIFF or JPEG."
            )
    names = ", ".join(known.name for known in FORMATS)
    raise FileError(f"Cannot read {source.name!r}: it is none of {names}.")


def _rawpy_hint() -> str:
    """Say what is missing to develop raw files, if it is."""
    if importlib.util.find_spec("rawpy") is not None:
        return ""
    return ", but needs rawpy, which is not installed: pip install 'nlnet[raw]'"


def check_holds(
    target: Format, image: ImageFile, count: int, options: WritingOptions = PLAIN
) -> None:
    """Raise InputError, with the formats that would do, if one cannot hold such pages."""
    obstacle = target.obstacle(image, count, options)
    if obstacle is not None:
        others = [
            known.name
            for known in FORMATS
            if known.exact and known.obstacle(image, count, options) is None
        ]
        instead = f"write {' or '.join(others)} instead" if others else "no format can"
        raise InputError(
            f"{target.name} cannot hold {obstacle}; {instead}"
            f"{target.way_out(image, count, options)}."
        )
