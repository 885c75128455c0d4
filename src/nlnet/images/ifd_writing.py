"""Writing directories of numbered entries, and the TIFF files that they make up."""

import struct
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from nlnet.images import ifd
from nlnet.images.ifd import SIZES, WORD_SIZES, Directory, Entry, Layout

Values: TypeAlias = dict[int, tuple[int, Any]]
"""Type and numbers of entries, by tag."""

_CODES = {ifd.BYTE: "B", ifd.SHORT: "H", ifd.LONG: "I", ifd.LONG8: "Q"}
_CODES |= {ifd.FRACTION: "I", ifd.SIGNED_FRACTION: "i"}
_DENOMINATOR = 10_000
_LARGEST = 2**32 - 1


class TiffBytes:
    """The bytes of a TIFF file that is being put together: values first, then their directory."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._link = len(layout.header)
        self._data = bytearray(layout.header + layout.pointer(0))

    def __bytes__(self) -> bytes:
        return bytes(self._data)

    def add(self, data: bytes) -> int:
        """Add bytes, and return their place."""
        place = len(self._data)
        self._data += data
        return place

    def add_directory(self, entries: Mapping[int, Entry]) -> int:
        """Add a directory that others point to, and return its place."""
        self.add(bytes(-len(self._data) % 8))
        return self.add(encode_directory(entries, self.layout, len(self._data)))

    def add_page(self, entries: Mapping[int, Entry]) -> None:
        """Add the directory of the next page."""
        place, size = self.add_directory(entries), self.layout.offset_size
        self._data[self._link : self._link + size] = self.layout.pointer(place)
        count = sum(1 + len(entry.again) for entry in entries.values())
        self._link = place + self.layout.count_size + count * self.layout.entry_size


def entries_of(values: Values, layout: Layout) -> Directory:
    r"""Return numbers as they are stored.

    Examples
    --------
    >>> entries_of({258: (ifd.SHORT, (8, 8))}, Layout("<"))[258].data
    b'\x08\x00\x08\x00'
    """
    directory = {}
    for tag, (kind, given) in values.items():
        numbers = np.ravel(given).tolist()
        if kind in (ifd.FRACTION, ifd.SIGNED_FRACTION):
            near = [Fraction(number).limit_denominator(_DENOMINATOR) for number in numbers]
            pairs = [(min(each.numerator, _LARGEST), each.denominator) for each in near]
            numbers = [number for pair in pairs for number in pair]
        words = struct.pack(f"{layout.order}{len(numbers)}{_CODES[kind]}", *numbers)
        directory[tag] = Entry(kind, words)
    return directory


def reordered(entries: Mapping[int, Entry], source: Layout, target: Layout) -> Directory:
    """Return entries whose values have the byte order of another layout."""
    if source.order == target.order:
        return dict(entries)
    return {tag: _swapped(entry) for tag, entry in entries.items()}


def encode_directory(entries: Mapping[int, Entry], layout: Layout, place: int) -> bytes:
    """Return a directory as it stands at `place`, its values behind it; none follows it."""
    every = [(tag, each) for tag in sorted(entries) for each in (entries[tag], *entries[tag].again)]
    size = layout.count_size + len(every) * layout.entry_size
    values = bytearray()
    values_at = place + size + layout.offset_size
    table = struct.pack(layout.word(layout.count_size), len(every))
    for tag, entry in every:
        values += b"\0" * (-len(values) % 8)
        here = values_at + len(values)
        if entry.directory is not None:
            kind, count = layout.offset_kind, 1
            value = layout.pointer(here)
            values += encode_directory(entry.directory, layout, here)
        else:
            kind, count = entry.kind, len(entry.data) // SIZES[entry.kind]
            inline = len(entry.data) <= layout.offset_size
            value = entry.data.ljust(layout.offset_size, b"\0") if inline else layout.pointer(here)
            values += b"" if inline else entry.data
        table += struct.pack(layout.order + "HH", tag, kind) + layout.pointer(count) + value
    return table + layout.pointer(0) + bytes(values)


def _swapped(entry: Entry) -> Entry:
    data = np.frombuffer(entry.data, f"u{WORD_SIZES[entry.kind]}").byteswap().tobytes()
    inner = entry.directory
    if inner is not None:
        inner = {tag: _swapped(each) for tag, each in inner.items()}
    return Entry(entry.kind, data, inner, tuple(map(_swapped, entry.again)))
