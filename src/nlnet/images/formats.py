"""The formats: what each is called, how it is recognized, and what it can hold."""

import dataclasses
import functools
import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

from nlnet.errors import FileError, InputError, trying
from nlnet.images.content import ImageFile, Pages, PathLike, Source
from nlnet.images.jpeg import JpegCodec
from nlnet.images.libraries import FitsCodec, HeicCodec, JxlCodec
from nlnet.images.npy import NpyCodec, NpzCodec
from nlnet.images.plain_formats import BmpCodec, NetpbmCodec
from nlnet.images.png import PngCodec
from nlnet.images.raw_files import RawFileError, raw_kind
from nlnet.images.tiff import TiffCodec
from nlnet.images.web_formats import AvifCodec, GifCodec, WebpCodec
from nlnet.images.writing import PLAIN, WritingOptions, depth_of, has_alpha


class Codec(Protocol):
    """Bytes of a file to pages, and back."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the header, and return the pages, decoded when they are asked for."""

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file."""


_SHALLOW = ("uint8",)
_ALL = ("uint8", "uint16", "int16", "int32", "uint32", "float16", "float32", "float64")
_FITS_DEPTHS = tuple(depth for depth in _ALL if depth != "float16")
_NO_IPTC = ("exif", "icc", "xmp")


@dataclasses.dataclass(frozen=True)
class Format:
    """A format and what it can hold.

    `metadata` lists the kinds of metadata it holds. `gray` tells whether gray images stay gray, and
    `white` whether a file can name its value of white. A format that is not `exact` changes pixels,
    or needs a library that may be missing, so messages do not suggest it.
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
            "new images, as it is only read": not self.depths,
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


# Without `unlimited`, files with all rows in one compressed strip are refused from 50 MB on.
_TIFF = TiffCodec("TIFF", "tiffload", "", load_options={"unlimited": True})
_JPEG = JpegCodec("JPEG", "jpegload", "jpegsave")
_WEBP = WebpCodec("WebP", "webpload", "webpsave")
_AVIF = AvifCodec("AVIF", "heifload", "heifsave", {"compression": "av1"})
_AVIF_START = rb".{4}ftyp(avi[fs]|mif1.{4}(.{4}){0,2}avif)"
# Every frame has a palette of its own, where one of another frame would change its colors.
_GIF_SAVING = {"dither": 0.0, "effort": 10, "interpalette_maxerror": 0.0}
_GIF = GifCodec("GIF", "gifload", "gifsave", _GIF_SAVING)
_HEIC_START, _JXL_START = rb".{4}ftyp(hei|hev|mif1|msf1)", rb"\xff\x0a|\0\0\0\x0cJXL "
_NPZ_START = rb"PK\x03\x04.{26}[^\0]{1,200}?\.npy"
_JXL_DEPTHS = ("uint8", "uint16", "float32")
_RGB = functools.partial(Format, metadata=_NO_IPTC, gray=False)
_BARE = functools.partial(Format, metadata=())
_PLAIN = functools.partial(_BARE, codec=NetpbmCodec(), alpha=False, white=True)
_FITS = functools.partial(_BARE, depths=_FITS_DEPTHS, stacks=True, white=True, exact=False)

FORMATS = (
    Format("PNG", (".png",), rb"\x89PNG\r\n\x1a\n", PngCodec("PNG", "pngload", "pngsave")),
    Format("TIFF", (".tif", ".tiff"), rb"II[*+]\0|MM\0[*+]", _TIFF, _ALL, stacks=True),
    Format(
        "JPEG", (".jpg", ".jpeg"), rb"\xff\xd8\xff", _JPEG, _SHALLOW, alpha=False, max_side=65535
    ),
    _RGB("WebP", (".webp",), rb"RIFF....WEBP", _WEBP, _SHALLOW, max_side=16383),
    _RGB("AVIF", (".avif",), _AVIF_START, _AVIF, exact=False, max_side=16384),
    _RGB("HEIC", (".heic", ".heif", ".hif"), _HEIC_START, HeicCodec(), depths=(), exact=False),
    Format(
        "JPEG XL", (".jxl",), _JXL_START, JxlCodec(), _JXL_DEPTHS, metadata=_NO_IPTC, exact=False
    ),
    _BARE(
        "GIF", (".gif",), rb"GIF8[79]a", _GIF, _SHALLOW, stacks=True, exact=False, max_side=65535
    ),
    _BARE("BMP", (".bmp",), rb"BM.{4}", BmpCodec(), _SHALLOW, max_side=2**15),
    _PLAIN("PGM", (".pgm",), rb"P[1245]\s", channels=(1,)),
    _PLAIN("PPM", (".ppm",), rb"P[36]\s", channels=(3,)),
    _PLAIN("PNM", (".pnm",), rb"P[12456]\s"),
    _BARE("npy", (".npy",), rb"\x93NUMPY", NpyCodec(), _ALL, stacks=True, white=True),
    _BARE("npz", (".npz",), _NPZ_START, NpzCodec(), _ALL, stacks=True, white=True, exact=False),
    _FITS(
        "FITS", (".fits", ".fit", ".fts"), rb"SIMPLE  =", FitsCodec(), channels=(1,), alpha=False
    ),
)

SUFFIXES = tuple(suffix for known in FORMATS for suffix in known.suffixes)
"""Suffixes of the files that can be read and written, in lower case."""

_SIGNATURE_BYTES = 256
_VIDEO = "video"
_FRAMES = (
    "get its frames with 'ffmpeg -i {name} frames/%05d.png', denoise them with 'nlnet denoise "
    "frames -o clean --along files', and make a film of them with 'ffmpeg -i clean/%05d.png OUT'"
)
_OTHERS: dict[str, tuple[bytes, tuple[str, ...], str | None]] = {
    "JPEG 2000": (rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51", (".jp2", ".j2k", ".jpx"), None),
    "PSD": (rb"8BPS", (".psd",), None),
    "OpenEXR": (rb"v/1\x01", (".exr",), None),
    "Radiance HDR": (rb"#\?RADIANCE|#\?RGBE", (".hdr",), None),
    "PDF": (rb"%PDF", (".pdf",), None),
    "SVG": (rb"<svg|<\?xml.*<svg", (".svg",), None),
    "PAM": (rb"P7\s", (".pam",), None),
    "PFM": (rb"P[Ff]\s", (".pfm",), None),
    "HDF5": (rb"\x89HDF\r\n\x1a\n", (".h5", ".hdf5"), "h5py.File({name})['DATASET'][()]"),
    "MRC": (rb".{208}MAP[ \0]", (".mrc",), "mrcfile.read({name})"),
    "DICOM": (rb".{128}DICM", (".dcm",), "pydicom.dcmread({name}).pixel_array"),
    "CZI": (rb"ZISRAWFILE", (".czi",), "czifile.imread({name}).squeeze()"),
    "ND2": (rb"\xda\xce\xbe\x0a", (".nd2",), "nd2.imread({name})"),
    "LIF": (rb"\x70\0\0\0.{4}\x2a", (".lif",), "liffile.imread({name})"),
    _VIDEO: (
        rb".{4}(ftyp|moov|mdat|wide|free)|\x1aE\xdf\xa3|RIFF.{4}AVI |FLV\x01|\0\0\x01\xba",
        (),
        None,
    ),
}
"""Formats that are not read, so that messages can name them.

How files begin, how names end, and how a Python library reads them as arrays, if one does.
"""

OTHER_SUFFIXES = tuple(suffix for _, suffixes, _ in _OTHERS.values() for suffix in suffixes)
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


def result_suffix(suffix: str) -> str:
    """Return the suffix of what such a file becomes: HEIC, which is only read, becomes AVIF.

    Examples
    --------
    >>> result_suffix(".png"), result_suffix(".heic")
    ('.png', '.avif')
    """
    return suffix if format_of(f"image{suffix}").depths else ".avif"


def read_source(source: Source, max_pixels: int) -> Pages:
    """Check a file, which is opened once, and return its pages, decoded when they are asked for."""
    with source.open() as stream:
        known = recognize(source, stream)
        stream.seek(0)
        pages = known.codec.read(source, stream, max_pixels)
        pages.format = known.name
        return pages


def recognize(source: Source, stream: BinaryIO) -> Format:
    """Tell a file's format by its first bytes, not its name.

    Raises
    ------
    RawFileError
        If it is the raw file of a camera.
    FileError
        If it is of no known format, or cannot be read.
    """
    with trying(f"read {source.name!r}"):
        start = stream.read(_SIGNATURE_BYTES)
    if not start:
        raise FileError(f"Cannot read {source.name!r}: the file is empty.")
    stream.seek(0)
    raw = raw_kind(stream)
    if raw is not None:
        hint = ", but needs rawpy, which is not installed: pip install 'nlnet[raw]'"
        hint = "" if importlib.util.find_spec("rawpy") is not None else hint
        raise RawFileError(
            f"Cannot read {source.name!r}: it is a camera's raw file ({raw}), not yet a picture; "
            f"'nlnet denoise' makes a TIFF file of it{hint}."
        )
    for known in FORMATS:
        if re.match(known.signature, start, re.DOTALL):
            return known
    for name, (signature, _, call) in _OTHERS.items():
        if re.match(signature, start, re.DOTALL):
            way = "convert it to PNG, TIFF or JPEG"
            if call is not None:
                library, array = call.partition(".")[0], call.format(name=repr(source.name))
                lines = f"import {library}, nlnet; clean = nlnet.denoise_stack({array})"
                way = f"with the library {library}, in Python: {lines}"
            elif name == _VIDEO:
                way = _FRAMES.format(name=source.name)
            raise FileError(f"Cannot read {source.name!r}: {name} files are not supported; {way}.")
    names = ", ".join(known.name for known in FORMATS)
    raise FileError(f"Cannot read {source.name!r}: it is none of {names}.")


def check_format(
    path: PathLike, image: ImageFile, count: int = 1, options: WritingOptions = PLAIN
) -> None:
    """Raise InputError unless the suffix is known and its format can hold `count` such pages."""
    target = format_of(path)
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
