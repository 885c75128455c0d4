"""Directories of numbered entries: the structure that TIFF files and EXIF are made of.

Values are kept as bytes, and only interpreted if a caller asks for their numbers.
"""

from __future__ import annotations

import dataclasses
import io
import struct
from collections.abc import Collection, Mapping
from typing import BinaryIO, Literal, TypeAlias

ByteOrder: TypeAlias = Literal["<", ">"]
BYTE, TEXT, SHORT, LONG, FRACTION, UNDEFINED, SIGNED_FRACTION, LONG8 = 1, 2, 3, 4, 5, 7, 10, 16
_TYPE_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
_TYPE_SIZES_BIG = {16: 8, 17: 8, 18: 8}
SIZES = {**_TYPE_SIZES, **_TYPE_SIZES_BIG}
WORD_SIZES = {**SIZES, FRACTION: 4, SIGNED_FRACTION: 4}
"""Bytes that change places between little and big endian: a rational number is two words."""

_DIRECTORIES = {34665, 34853, 40965}  # Exif, GPS, interoperability
_MOST_ENTRIES = 1000
_MOST_BYTES = 2**24
"""More than this is no metadata of an image, but a damaged or hostile file."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """Byte order and width of a TIFF structure."""

    order: ByteOrder
    big: bool = False

    def word(self, size: int) -> str:
        """Return the format of an unsigned number."""
        return self.order + {1: "B", 2: "H", 4: "I", 8: "Q"}[size]

    def pointer(self, place: int) -> bytes:
        """Return an offset as it is stored."""
        return struct.pack(self.word(self.offset_size), place)

    @property
    def count_size(self) -> int:
        """Bytes of the number of entries."""
        return 8 if self.big else 2

    @property
    def offset_size(self) -> int:
        """Bytes of an offset, and of a value that is kept in its entry."""
        return 8 if self.big else 4

    @property
    def offset_kind(self) -> int:
        """The type of offsets."""
        return LONG8 if self.big else LONG

    @property
    def entry_size(self) -> int:
        """Bytes of an entry."""
        return 20 if self.big else 12

    @property
    def header(self) -> bytes:
        """The first bytes of a file, up to the place of its first directory."""
        start = {"<": b"II", ">": b"MM"}[self.order]
        numbers = (43, 8, 0) if self.big else (42,)
        return start + struct.pack(f"{self.order}{len(numbers)}H", *numbers)


@dataclasses.dataclass(frozen=True)
class Entry:
    """A value as it is stored, or another directory.

    `again` are entries of the same tag behind it: tifffile writes two descriptions.
    """

    kind: int
    data: bytes = b""
    directory: Directory | None = None
    again: tuple[Entry, ...] = ()


Directory = dict[int, Entry]


@dataclasses.dataclass(frozen=True)
class Tags:
    """The entries of a directory, and the layout their values have."""

    layout: Layout
    entries: Mapping[int, Entry]

    def __contains__(self, tag: int) -> bool:
        return tag in self.entries

    def data(self, tag: int) -> bytes | None:
        """Return the bytes of a value, None if there is none."""
        entry = self.entries.get(tag)
        return None if entry is None or entry.directory is not None else entry.data

    def numbers(self, tag: int) -> tuple[int, ...]:
        """Return the unsigned numbers of a value, numerators and denominators in turn."""
        entry = self.entries.get(tag)
        if entry is None or entry.directory is not None:
            return ()
        word = self.layout.word(WORD_SIZES[entry.kind])
        return tuple(number for (number,) in struct.iter_unpack(word, entry.data))

    def number(self, tag: int, default: int) -> int:
        """Return the first of the numbers."""
        return next(iter(self.numbers(tag)), default)


def read_layout(stream: BinaryIO) -> tuple[Layout, int]:
    r"""Return a TIFF's layout and its first directory's place; raise ValueError if it is none.

    Examples
    --------
    >>> read_layout(io.BytesIO(b"MM\0*\0\0\0\x08"))
    (Layout(order='>', big=False), 8)
    """
    start = read_at(stream, 0, 8)
    orders: dict[bytes, ByteOrder] = {b"II": "<", b"MM": ">"}
    if start[:2] not in orders:
        raise ValueError("no TIFF")
    layout = Layout(orders[start[:2]], big=43 in start[2:4])
    if layout.big:
        return layout, _number(layout, read_at(stream, 8, 8))
    return layout, _number(layout, start[4:])


def read_directory(
    stream: BinaryIO,
    layout: Layout,
    offset: int,
    tags: Collection[int] | None = None,
    *,
    without: Collection[int] = (),
    damaged: list[int] | None = None,
    depth: int = 3,
) -> Tags:
    """Read a directory and the EXIF directories it refers to.

    Parameters
    ----------
    stream, layout, offset
        The file, and where in it the directory begins.
    tags, without : collections of int
        The entries to read (None for all), and those to leave out.
    damaged : list of int, optional
        Where given, gets the tags of entries that cannot be read; else they raise ValueError.
    depth : int
        How deep directories may be inside of each other.
    """
    count = _number(layout, read_at(stream, offset, layout.count_size))
    if count > _MOST_ENTRIES or depth == 0:
        raise ValueError("too many entries, or a directory inside itself")
    table = read_at(stream, offset + layout.count_size, count * layout.entry_size)
    directory: Directory = {}
    for at in range(0, len(table), layout.entry_size):
        raw = table[at : at + layout.entry_size]
        tag, kind = struct.unpack(layout.order + "HH", raw[:4])
        if tag in without or (tags is not None and tag not in tags):
            continue
        try:
            if tag in _DIRECTORIES:
                size = 8 if kind in _TYPE_SIZES_BIG else 4
                place = _number(layout, raw[-layout.offset_size :][:size])
                inner = read_directory(stream, layout, place, damaged=damaged, depth=depth - 1)
                entry = Entry(LONG, directory=dict(inner.entries))
            else:
                entry = Entry(kind, _read_value(stream, layout, kind, raw))
            if first := directory.get(tag):
                entry = dataclasses.replace(first, again=(*first.again, entry))
            directory[tag] = entry
        except ValueError:
            if damaged is None:
                raise
            damaged.append(tag)
    return Tags(layout, directory)


def following(stream: BinaryIO, layout: Layout, offset: int) -> int:
    """Return the place of the directory after the one at `offset`, 0 if it is the last."""
    return _number(layout, read_at(stream, _link(stream, layout, offset), layout.offset_size))


def page_offsets(stream: BinaryIO, layout: Layout, first: int, most: int) -> list[int]:
    """Return the offsets of a file's directories, at most `most`.

    A broken chain ends with the first directory that cannot be read as a whole.
    """
    offsets: list[int] = []
    place = first
    seen = set()
    try:
        while place and place not in seen and len(offsets) < most:
            seen.add(place)
            offsets.append(place)
            place = following(stream, layout, place)
    except ValueError:
        pass
    return offsets


def unlink_following(data: bytes, layout: Layout, offset: int) -> bytes:
    """Make a directory the last one; nothing else changes its place."""
    place = _link(io.BytesIO(data), layout, offset)
    return data[:place] + layout.pointer(0) + data[place + layout.offset_size :]


def _link(stream: BinaryIO, layout: Layout, offset: int) -> int:
    """Return where a directory says which one follows."""
    count = _number(layout, read_at(stream, offset, layout.count_size))
    return offset + layout.count_size + count * layout.entry_size


def read_at(stream: BinaryIO, offset: int, size: int) -> bytes:
    """Return that many bytes from a place; raise ValueError if there are not as many."""
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


def _read_value(stream: BinaryIO, layout: Layout, kind: int, raw: bytes) -> bytes:
    if kind not in SIZES:
        raise ValueError("an unknown type")
    value = raw[-layout.offset_size :]
    size = SIZES[kind] * _number(layout, raw[4 : -layout.offset_size])
    if size > _MOST_BYTES:
        raise ValueError("too many bytes")
    inline = size <= layout.offset_size
    return value[:size] if inline else read_at(stream, _number(layout, value), size)
