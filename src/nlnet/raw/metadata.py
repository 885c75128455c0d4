"""Metadata of a developed raw file: its EXIF, and a color profile."""

from __future__ import annotations

import struct

import pyvips

from nlnet.images import exif
from nlnet.images.content import Source
from nlnet.images.ifd import Tags, read_directory, read_layout
from nlnet.images.libvips import get_field
from nlnet.images.metadata import Metadata
from nlnet.raw.development import OUTPUT_COLORS

_TIFF_STARTS = (b"II", b"MM")
# LibRaw has turned the pixels, and the resolution of a raw file means nothing.
_TAGS = exif.PHOTO_TAGS - {exif.ORIENTATION, *exif.RESOLUTION}


def metadata_of(source: Source, thumbnail: bytes | None, output_color: str | None) -> Metadata:
    """Return the metadata of a picture that is developed and upright.

    Parameters
    ----------
    source : Source
        The raw file; most are TIFF files in their structure, with EXIF as those have it.
    thumbnail : bytes or None
        The JPEG file inside it; its EXIF is used if the raw file has no EXIF itself.
    output_color : str or None
        LibRaw's name of the color space; None for gray.
    """
    profile: bytes | None = None
    if output_color is not None:
        profile = pyvips.Image.profile_load(OUTPUT_COLORS[output_color])
    return Metadata("raw", exif=_exif_of_tiff(source) or _exif_of_jpeg(thumbnail), icc=profile)


def _exif_of_tiff(source: Source) -> bytes | None:
    with source.open() as stream:
        if stream.read(2) not in _TIFF_STARTS:
            return None
        try:
            layout, offset = read_layout(stream)
            entries = read_directory(stream, layout, offset, _TAGS, damaged=[])
            return exif.cut_from(Tags(layout, entries))
        except (ValueError, struct.error):
            return None


def _exif_of_jpeg(thumbnail: bytes | None) -> bytes | None:
    if thumbnail is None:
        return None
    try:
        header = pyvips.Image.jpegload_buffer(thumbnail)
    except pyvips.Error:
        return None
    found: bytes | None = get_field(header, "exif-data", None)
    if found is None:
        return None
    return exif.set_upright(exif.without_thumbnail(found.removeprefix(exif.PREFIX)))
