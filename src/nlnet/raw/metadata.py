"""What is written beside the pixels of a developed raw file: its EXIF, and a color profile."""

from __future__ import annotations

from typing import Any

import pyvips

from nlnet.images import exif
from nlnet.images.content import Source
from nlnet.images.libvips import get_field
from nlnet.raw.development import OUTPUT_COLORS

_TIFF_STARTS = (b"II", b"MM")


def metadata_of(source: Source, thumbnail: bytes | None, output_color: str | None) -> Any:
    """Return the metadata of a picture that is developed and upright.

    Parameters
    ----------
    source : Source
        The raw file; most are TIFF files in their structure, with EXIF as those have it.
    thumbnail : bytes or None
        The JPEG file inside of it, whose EXIF is taken if the raw file has none of its own.
    output_color : str or None
        LibRaw's name of the color space; None for gray.
    """
    header = pyvips.Image.black(1, 1).copy()
    found = _exif_of_tiff(source) or _exif_of_jpeg(thumbnail)
    if found is not None:
        header.set_type(pyvips.GValue.blob_type, "exif-data", found)
    # LibRaw has turned the pixels; EXIF may still say that somebody has to.
    header.set_type(pyvips.GValue.gint_type, "orientation", 1)
    if output_color is not None:
        profile = pyvips.Image.profile_load(OUTPUT_COLORS[output_color])
        header.set_type(pyvips.GValue.blob_type, "icc-profile-data", profile)
    return header


def _exif_of_tiff(source: Source) -> bytes | None:
    with source.open() as stream:
        if stream.read(2) not in _TIFF_STARTS:
            return None
        return exif.from_tiff(stream)


def _exif_of_jpeg(thumbnail: bytes | None) -> bytes | None:
    if thumbnail is None:
        return None
    try:
        header = pyvips.Image.jpegload_buffer(thumbnail)
    except pyvips.Error:
        return None
    found: bytes | None = get_field(header, "exif-data", None)
    return found
