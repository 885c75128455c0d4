"""Cameras' raw files, told by name or content: many look like a TIFF file of a thumbnail."""

import re
import struct
from pathlib import Path
from typing import BinaryIO

from nlnet.errors import FileError
from nlnet.images import tiff_tags as tag
from nlnet.images.content import PathLike, Source
from nlnet.images.ifd import Tags, page_offsets, read_directory, read_layout

RAW_SUFFIXES = (
    *(".3fr", ".arw", ".cr2", ".cr3", ".crw", ".dcr", ".dng", ".erf", ".fff"),
    *(".iiq", ".kdc", ".mef", ".mos", ".mrw", ".nef", ".nrw", ".orf", ".pef"),
    *(".raf", ".rw2", ".rwl", ".srf", ".sr2", ".srw", ".x3f"),
)
"""Suffixes of the files that go to LibRaw, in lower case; what they hold, it finds out itself."""

_START_BYTES = 32
_SIGNATURES = {
    "CR2 of Canon": rb"II\*\0.{4}CR\x02",
    "CR3 of Canon": rb".{4}ftypcrx ",
    "CRW of Canon": rb"II\x1a\0\0\0HEAPCCDR",
    "RAF of Fujifilm": rb"FUJIFILMCCD-RAW",
    "ORF of Olympus": rb"IIR[OS]\x08\0|MMOR\0\0",
    "RW2 of Panasonic": rb"IIU\0",
    "X3F of Sigma": rb"FOVb",
    "MRW of Minolta": rb"\0MRM",
}
_MAKERS = {
    b"nikon": "NEF of Nikon",
    b"sony": "ARW of Sony",
    b"pentax": "PEF of Pentax",
    b"ricoh": "PEF of Pentax",
    b"samsung": "SRW of Samsung",
    b"hasselblad": "3FR of Hasselblad",
    b"phase one": "IIQ of Phase One",
    b"epson": "ERF of Epson",
    b"eastman kodak": "DCR of Kodak",
    b"kodak": "DCR of Kodak",
    b"leica": "RWL of Leica",
    b"mamiya": "MEF of Mamiya",
    b"leaf": "MOS of Leaf",
}
_RAW_PHOTOMETRICS = {tag.CFA, tag.LINEAR_RAW}
_RAW_COMPRESSIONS = {32767, 32769, 34713, 65000, 65535}  # of Sony, Nikon, Kodak and Pentax
_MOST_DIRECTORIES = 20
_TAGS = {tag.COMPRESSION, tag.PHOTOMETRIC, tag.SUB_IMAGES, tag.MAKE, tag.DNG_VERSION}


class RawFileError(FileError):
    """The file is the raw data of a camera, which has to be developed first."""


def has_raw_suffix(path: PathLike) -> bool:
    """Tell by its name whether a file is the raw data of a camera.

    Examples
    --------
    >>> has_raw_suffix("shots/IMG_0001.CR3"), has_raw_suffix("IMG_0001.tif")
    (True, False)
    """
    return Path(path).suffix.lower() in RAW_SUFFIXES


def is_raw(path: PathLike) -> bool:
    """Tell by its content whether a file is the raw data of a camera, such as DNG, NEF or CR3.

    Raises
    ------
    FileError
        If it cannot be opened.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "photo.jpg"
    >>> _ = path.write_bytes(b"FUJIFILMCCD-RAW 0201FF383501")
    >>> is_raw(path)
    True
    """
    with Source.of_path(path).open() as stream:
        return raw_kind(stream) is not None


def raw_kind(stream: BinaryIO) -> str | None:
    """Return what kind of raw file it is, such as ``DNG`` or ``NEF of Nikon``; None if it is none.

    Examples
    --------
    >>> import io
    >>> raw_kind(io.BytesIO(b"FUJIFILMCCD-RAW 0201FF383501"))
    'RAF of Fujifilm'
    """
    try:
        start = stream.read(_START_BYTES)
    except OSError:
        return None
    for kind, signature in _SIGNATURES.items():
        if re.match(signature, start, re.DOTALL):
            return kind
    if start[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"):
        try:
            return _tiff_kind(stream)
        except (ValueError, struct.error):
            return None
    return None


def _tiff_kind(stream: BinaryIO) -> str | None:
    """Look for raw pixels in the pages of a TIFF file, and in the sub-images of the first."""
    layout, first = read_layout(stream)

    def tags_at(offset: int) -> Tags:
        try:
            return read_directory(stream, layout, offset, _TAGS, damaged=[])
        except ValueError:
            return Tags(layout, {})

    outer = tags_at(first)
    if tag.DNG_VERSION in outer:
        return "DNG"
    places = page_offsets(stream, layout, first, 4)[1:]
    places += outer.numbers(tag.SUB_IMAGES)[:_MOST_DIRECTORIES]
    directories = [outer, *(tags_at(place) for place in places)]
    raw = any(
        tags.number(tag.PHOTOMETRIC, 0) in _RAW_PHOTOMETRICS
        or tags.number(tag.COMPRESSION, 1) in _RAW_COMPRESSIONS
        for tags in directories
    )
    if not raw:
        return None
    make = (outer.data(tag.MAKE) or b"").strip(b"\0 ").lower()
    known = (kind for maker, kind in _MAKERS.items() if make.startswith(maker))
    return next(known, "of an unknown maker")
