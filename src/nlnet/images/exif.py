"""EXIF in JPEG, PNG and WebP files: a small TIFF structure, copied byte for byte.

Makers' own notes point into it by place, so nothing inside it may move. Only a TIFF file, whose own
directory it becomes a part of, gets its entries one by one.
"""

from __future__ import annotations

import dataclasses
import io
import struct
from fractions import Fraction

from nlnet.images.ifd import (
    Layout,
    Tags,
    following,
    read_directory,
    read_layout,
    unlink_following,
)
from nlnet.images.ifd_writing import encode_directory

PREFIX = b"Exif\0\0"
DESCRIPTION, ORIENTATION = 270, 274
MAKER_NOTE = 37500
EXIF_DIRECTORY = 34665
X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT = RESOLUTION = (282, 283, 296)

# Description, maker, model, orientation, resolution, software, date, artist, host, ratings,
# copyright, the two directories, and the titles, comments and keywords that Windows writes.
PHOTO_TAGS = frozenset(
    {DESCRIPTION, 271, 272, ORIENTATION, *RESOLUTION, 305, 306, 315, 316, 18246, 18249, 33432}
    | {EXIF_DIRECTORY, 34853, *range(40091, 40096)}
)
LONGEST_TEXT = 2**15
"""A longer value, such as OME's description of a stack, would leave no room in a JPEG file."""
_METRES_PER_INCH = Fraction(254, 10_000)
_THUMBNAIL, _THUMBNAIL_SIZE = 513, 514
_JPEG = b"\xff\xd8"
_UNITS = {2: Fraction(1), 3: Fraction(254, 100)}
"""The numbers of TIFF for an inch and a centimetre, and how many of them an inch has."""
_ERRORS = (ValueError, struct.error)


@dataclasses.dataclass(frozen=True)
class Resolution:
    """Pixels per inch."""

    x: Fraction
    y: Fraction

    @classmethod
    def of_metres(cls, x: int, y: int) -> Resolution | None:
        """Return what is said in pixels per metre, None for nothing."""
        return cls(x * _METRES_PER_INCH, y * _METRES_PER_INCH) if min(x, y) > 0 else None

    @property
    def per_metre(self) -> tuple[int, int]:
        """Pixels per metre, 0 for more than fits into 31 bits."""
        x, y = round(self.x / _METRES_PER_INCH), round(self.y / _METRES_PER_INCH)
        return (x, y) if max(x, y) < 2**31 else (0, 0)


def read_tags(exif: bytes) -> Tags:
    """Return the entries of EXIF that can be read; none, if it is no EXIF."""
    stream = io.BytesIO(exif)
    try:
        layout, offset = read_layout(stream)
        return read_directory(stream, layout, offset, damaged=[])
    except _ERRORS:
        return Tags(Layout("<"), {})


def cut_from(tags: Tags) -> bytes | None:
    """Return what EXIF can hold of a TIFF page's entries; types from 16 on are BigTIFF's."""
    kept = {
        tag: entry
        for tag, entry in tags.entries.items()
        if tag in PHOTO_TAGS and entry.kind < 16 and len(entry.data) <= LONGEST_TEXT
    }
    if not kept:
        return None
    layout = Layout(tags.layout.order)
    return layout.header + layout.pointer(8) + encode_directory(kept, layout, 8)


def without_thumbnail(exif: bytes) -> bytes:
    """Return EXIF without the small picture in it; no byte moves."""
    stream = io.BytesIO(exif)
    try:
        layout, offset = read_layout(stream)
        place = following(stream, layout, offset)
        if place == 0:
            return exif
        tags = read_directory(stream, layout, place, {_THUMBNAIL, _THUMBNAIL_SIZE}, damaged=[])
        alone = unlink_following(exif, layout, offset)
    except _ERRORS:
        return exif
    start = tags.number(_THUMBNAIL, 0)
    end = min(start + tags.number(_THUMBNAIL_SIZE, 0), len(alone))
    if alone[start : start + 2] != _JPEG:
        return alone
    # As a rule it is the end; what lies behind it must stay where it is.
    rest = alone[end:]
    return alone[:start] + (bytes(end - start) + rest if rest.strip(b"\0") else b"")


def orientation_of(tags: Tags) -> int:
    """Return the orientation from 1 to 8, 1 if it is not said."""
    number = tags.number(ORIENTATION, 1)
    return number if 1 <= number <= 8 else 1


def set_upright(exif: bytes) -> bytes:
    """Say that the pixels are upright, where EXIF said otherwise; no byte moves."""
    tags = read_tags(exif)
    if orientation_of(tags) == 1:
        return exif
    order = tags.layout.order
    entry = struct.pack(order + "HHI", ORIENTATION, 3, 1)
    at = exif.find(entry)
    if at < 0:
        return exif
    start = at + len(entry)
    return exif[:start] + struct.pack(order + "H", 1) + exif[start + 2 :]


def resolution_of(tags: Tags) -> Resolution | None:
    """Return the resolution, None if it is not said, or in no unit of length."""
    unit = _UNITS.get(tags.number(RESOLUTION_UNIT, 2))
    x, y = tags.numbers(X_RESOLUTION), tags.numbers(Y_RESOLUTION)
    if unit is None or len(x) != 2 or len(y) != 2 or 0 in (*x, *y):
        return None
    return Resolution(Fraction(*x) * unit, Fraction(*y) * unit)
