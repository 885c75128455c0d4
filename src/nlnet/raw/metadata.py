"""What a raw file says about the shot: its EXIF; and the metadata of the picture made of it."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, NamedTuple

import pyvips

from nlnet.images import exif
from nlnet.images.content import Source
from nlnet.images.ifd import LONG, UNDEFINED, Entry, Tags, read_directory, read_layout
from nlnet.images.libvips import get_field
from nlnet.images.metadata import Metadata
from nlnet.raw.development import OUTPUT_COLORS

if TYPE_CHECKING:
    import rawpy

_TIFF_STARTS = (b"II", b"MM")
_CR3 = b"ftypcrx "
_GPS = 34853
# LibRaw turns the pixels, and the resolution of a raw file means nothing.
_TAGS = exif.PHOTO_TAGS - {exif.ORIENTATION, *exif.RESOLUTION}


class Exif(NamedTuple):
    """Entries of a raw file, and the bytes in which makers' own notes know their places."""

    tags: Tags
    data: bytes


def read_exif(source: Source, raw: rawpy.RawPy) -> Exif | None:
    """Return the EXIF of a raw file, None if there is none.

    Most raw files are TIFF files in their structure, with EXIF as those have it; Canon's CR3 has a
    TIFF structure for each directory; of others, EXIF is that of the JPEG file inside.
    """
    with source.open() as stream:
        data = stream.read()
    if data[4:12] == _CR3:
        return _of_cr3(data)
    if data[:2] not in _TIFF_STARTS:
        data = _of_thumbnail(raw)
    try:
        stream = io.BytesIO(data)
        layout, offset = read_layout(stream)
        return Exif(read_directory(stream, layout, offset, _TAGS, damaged=[]), data)
    except (ValueError, struct.error):
        return None


def metadata_of(found: Exif | None, output_color: str | None) -> Metadata:
    """Return the metadata of a picture that is developed and upright.

    Parameters
    ----------
    found : Exif or None
        What the raw file says.
    output_color : str or None
        LibRaw's name of the color space; None for gray.
    """
    profile: bytes | None = None
    if output_color is not None:
        profile = pyvips.Image.profile_load(OUTPUT_COLORS[output_color])
    return Metadata("raw", exif=found and exif.cut_from(found.tags), icc=profile)


def _of_cr3(data: bytes) -> Exif | None:
    """Return the EXIF of Canon's CR3 from its boxes for main, photo, maker and place."""

    def box(name: bytes) -> bytes:
        place = data.find(name)
        size = int.from_bytes(data[max(place - 4, 0) : max(place, 0)], "big")
        return data[place + 4 : place - 4 + size] if place > 0 else b""

    main, photo, place = (exif.read_tags(box(name)) for name in (b"CMT1", b"CMT2", b"CMT4"))
    if not main.entries:
        return None
    entries = {tag: entry for tag, entry in main.entries.items() if tag in _TAGS}
    notes = box(b"CMT3")
    if photo.entries:
        inner = {**photo.entries, exif.MAKER_NOTE: Entry(UNDEFINED, notes[8:])}
        entries[exif.EXIF_DIRECTORY] = Entry(LONG, directory=inner)
    if place.entries:
        entries[_GPS] = Entry(LONG, directory=dict(place.entries))
    return Exif(Tags(main.layout, entries), notes)


def _of_thumbnail(raw: rawpy.RawPy) -> bytes:
    import rawpy

    try:
        thumbnail = raw.extract_thumb()
        if thumbnail.format != rawpy.ThumbFormat.JPEG:
            return b""
        header = pyvips.Image.jpegload_buffer(bytes(thumbnail.data))
    except (rawpy.LibRawError, RuntimeError, OSError, NotImplementedError, pyvips.Error):
        return b""
    found: bytes = get_field(header, "exif-data", b"")
    return found.removeprefix(exif.PREFIX)
