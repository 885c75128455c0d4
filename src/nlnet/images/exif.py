"""EXIF between TIFF files and the others, which libvips does not carry.

EXIF is itself a small TIFF: directories of numbered entries. Here one is cut out of a TIFF file, in
the form JPEG, PNG and WebP keep it in, or added to one; values are bytes that nobody looks into.
"""

from __future__ import annotations

import dataclasses
import io
import struct
from collections.abc import Collection
from typing import BinaryIO

_PREFIX = b"Exif\0\0"
_TYPE_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
_TYPE_SIZES_BIG = {16: 8, 17: 8, 18: 8}
_WORD_SIZES = {**_TYPE_SIZES, **_TYPE_SIZES_BIG, 5: 4, 10: 4}
"""Bytes that change places between little and big endian: a rational number is two words."""

_LONG, _LONG8 = 4, 16
_DIRECTORIES = {34665, 34853, 40965}  # Exif, GPS, interoperability
# Maker, model, software, date, artist, host, ratings, copyright, the two directories, and the
# titles, comments and keywords that Windows writes.
_TAGS = {270, 271, 272, 305, 306, 315, 316, 18246, 18249, 33432, 34665, 34853, *range(40091, 40096)}
# libvips knows inches and centimetres only, but microscopes write other units elsewhere.
_RESOLUTION = {282, 283, 296}
_DEPTH = 3
_MOST_ENTRIES = 1000
_MOST_BYTES = 2**22
"""More than this is no metadata of a photo, but a damaged or hostile file."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """Byte order and width of a TIFF structure."""

    order: str
    big: bool = False

    def word(self, size: int) -> str:
        """Return the format of an unsigned number."""
        return self.order + {1: "B", 2: "H", 4: "I", 8: "Q"}[size]

    @property
    def count_size(self) -> int:
        """Bytes of the number of entries."""
        return 8 if self.big else 2

    @property
    def offset_size(self) -> int:
        """Bytes of an offset, and of a value that is kept in its entry."""
        return 8 if self.big else 4

    @property
    def entry_size(self) -> int:
        """Bytes of an entry."""
        return 20 if self.big else 12


@dataclasses.dataclass(frozen=True)
class Entry:
    """A value as it is stored, or another directory."""

    kind: int
    data: bytes = b""
    directory: Directory | None = None


Directory = dict[int, Entry]


def read_layout(stream: BinaryIO) -> tuple[Layout, int]:
    r"""Return a TIFF's layout and its first directory's place; raise ValueError if it is none.

    Examples
    --------
    >>> read_layout(io.BytesIO(b"MM\0*\0\0\0\x08"))
    (Layout(order='>', big=False), 8)
    """
    start = _read(stream, 0, 8)
    orders = {b"II": "<", b"MM": ">"}
    if start[:2] not in orders:
        raise ValueError("no TIFF")
    layout = Layout(orders[start[:2]], big=43 in start[2:4])
    if layout.big:
        return layout, _number(layout, _read(stream, 8, 8))
    return layout, _number(layout, start[4:])


def read_directory(
    stream: BinaryIO, layout: Layout, offset: int, tags: Collection[int] | None = None
) -> Directory:
    """Read a directory and those it refers to, all of it or some tags; ValueError if it is damaged.

    Types of BigTIFF are left out: EXIF has none of them.
    """
    return _read_directory(stream, layout, offset, tags, _DEPTH)


def numbers(entry: Entry, layout: Layout) -> tuple[int, ...]:
    """Return the unsigned numbers an entry holds."""
    word = layout.word(_TYPE_SIZES[entry.kind])
    return tuple(number for (number,) in struct.iter_unpack(word, entry.data))


def from_tiff(stream: BinaryIO) -> bytes | None:
    """Cut the EXIF out of a TIFF file, None if there is none or it is damaged."""
    try:
        layout, offset = read_layout(stream)
        directory = read_directory(stream, layout, offset, _TAGS | _RESOLUTION)
    except (ValueError, struct.error):
        return None
    if not directory:
        return None
    small = Layout(layout.order)
    head = {"<": b"II*\0", ">": b"MM\0*"}[layout.order] + struct.pack(small.word(4), 8)
    return _PREFIX + head + _encode(directory, small, small, 8)


def into_tiff(tiff: bytes, exif: bytes) -> bytes:
    """Add EXIF to the first page of a TIFF file; but for its resolution, what is there stays.

    The page's directory is written again behind everything else, with more entries.
    """
    stream, small = io.BytesIO(tiff), io.BytesIO(exif.removeprefix(_PREFIX))
    layout, offset = read_layout(stream)
    try:
        exif_layout, exif_offset = read_layout(small)
        added = read_directory(small, exif_layout, exif_offset, _TAGS | _RESOLUTION)
    except (ValueError, struct.error):
        return tiff
    count = _number(layout, _read(stream, offset, layout.count_size))
    table = _read(stream, offset + layout.count_size, count * layout.entry_size)
    following = _read(stream, stream.tell(), layout.offset_size)
    entries = {
        _number(layout, table[at : at + 2]): table[at : at + layout.entry_size]
        for at in range(0, len(table), layout.entry_size)
    }
    if added.keys() >= _RESOLUTION:
        entries = {tag: entry for tag, entry in entries.items() if tag not in _RESOLUTION}
    padding = b"\0" * (-len(tiff) % 8)
    place = len(tiff) + len(padding)
    new = {tag: entry for tag, entry in added.items() if tag not in entries}
    block = _encode(new, layout, exif_layout, place, entries, following)
    header_end = 16 if layout.big else 8
    pointer = struct.pack(layout.word(layout.offset_size), place)
    head = tiff[: header_end - layout.offset_size] + pointer
    return b"".join([head, tiff[header_end:], padding, block])


def _read(stream: BinaryIO, offset: int, size: int) -> bytes:
    try:
        stream.seek(offset)
        data = stream.read(size)
    except (OSError, OverflowError) as error:
        raise ValueError("no such place") from error
    if len(data) < size:
        raise ValueError("too short")
    return data


def _number(layout: Layout, data: bytes) -> int:
    number: int = struct.unpack(layout.word(len(data)), data)[0]
    return number


def _read_directory(
    stream: BinaryIO,
    layout: Layout,
    offset: int,
    tags: Collection[int] | None,
    depth: int,
) -> Directory:
    count = _number(layout, _read(stream, offset, layout.count_size))
    if count > _MOST_ENTRIES or depth == 0:
        raise ValueError("too many entries, or a directory inside itself")
    table = _read(stream, offset + layout.count_size, count * layout.entry_size)
    directory: Directory = {}
    for at in range(0, len(table), layout.entry_size):
        raw = table[at : at + layout.entry_size]
        tag, kind = struct.unpack(layout.order + "HH", raw[:4])
        if tags is not None and tag not in tags:
            continue
        value = raw[-layout.offset_size :]
        size = _TYPE_SIZES.get(kind, _TYPE_SIZES_BIG.get(kind, 0)) * _number(
            layout, raw[4 : -layout.offset_size]
        )
        if size > _MOST_BYTES:
            raise ValueError("too many bytes")
        if tag in _DIRECTORIES:
            place = _number(layout, value[:size] if size in (4, 8) else value)
            inner = _read_directory(stream, layout, place, None, depth - 1)
            directory[tag] = Entry(_LONG, directory=inner)
        elif kind in _TYPE_SIZES:
            inline = size <= layout.offset_size
            data = value[:size] if inline else _read(stream, _number(layout, value), size)
            directory[tag] = Entry(kind, data)
    return directory


def _encode(
    directory: Directory,
    layout: Layout,
    source: Layout,
    place: int,
    kept: dict[int, bytes] | None = None,
    following: bytes | None = None,
) -> bytes:
    """Return a directory as it stands at `place`, its values behind it.

    `kept` are entries that are already encoded, `following` the place of the next directory.
    """
    encoded = dict(kept or {})
    size = layout.count_size + (len(encoded) + len(directory)) * layout.entry_size
    values = bytearray()
    values_at = place + size + layout.offset_size
    for tag, entry in directory.items():
        values += b"\0" * (-len(values) % 8)
        here = values_at + len(values)
        pointer = struct.pack(layout.word(layout.offset_size), here)
        if entry.directory is not None:
            kind, count, value = (_LONG8 if layout.big else _LONG), 1, pointer
            values += _encode(entry.directory, layout, source, here)
        else:
            kind, count = entry.kind, len(entry.data) // _TYPE_SIZES[entry.kind]
            data = _swapped(entry, layout, source)
            inline = len(data) <= layout.offset_size
            value = data.ljust(layout.offset_size, b"\0") if inline else pointer
            values += b"" if inline else data
        number = struct.pack(layout.word(layout.offset_size), count)
        encoded[tag] = struct.pack(layout.order + "HH", tag, kind) + number + value
    table = b"".join(encoded[tag] for tag in sorted(encoded))
    counted = struct.pack(layout.word(layout.count_size), len(encoded))
    return counted + table + (following or b"\0" * layout.offset_size) + bytes(values)


def _swapped(entry: Entry, layout: Layout, source: Layout) -> bytes:
    word = _WORD_SIZES[entry.kind]
    if layout.order == source.order or word == 1:
        return entry.data
    code = layout.word(word)[1]
    words = struct.unpack(f"{source.order}{len(entry.data) // word}{code}", entry.data)
    return struct.pack(f"{layout.order}{len(words)}{code}", *words)
