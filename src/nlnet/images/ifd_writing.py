"""Writing directories of numbered entries, in either byte order."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from nlnet.images.ifd import LONG, SIZES, WORD_SIZES, Directory, Entry, Layout

_LONG8 = 16


def reordered(entries: Mapping[int, Entry], source: Layout, target: Layout) -> Directory:
    """Return entries whose values have the byte order of another layout."""
    if source.order == target.order:
        return dict(entries)
    return {tag: _reordered(entry, source, target) for tag, entry in entries.items()}


def encode_directory(
    entries: Mapping[int, Entry], layout: Layout, place: int, after: int = 0
) -> bytes:
    """Return a directory as it stands at `place`, its values behind it.

    `after` is the place of the next directory.
    """
    every = [(tag, entry) for tag in sorted(entries) for entry in _all(entries[tag])]
    size = layout.count_size + len(every) * layout.entry_size
    values = bytearray()
    values_at = place + size + layout.offset_size
    table = struct.pack(layout.word(layout.count_size), len(every))
    for tag, entry in every:
        values += b"\0" * (-len(values) % 8)
        here = values_at + len(values)
        if entry.directory is not None:
            kind, count = (_LONG8 if layout.big else LONG), 1
            value = layout.pointer(here)
            values += encode_directory(entry.directory, layout, here)
        else:
            kind, count = entry.kind, len(entry.data) // SIZES[entry.kind]
            inline = len(entry.data) <= layout.offset_size
            value = entry.data.ljust(layout.offset_size, b"\0") if inline else layout.pointer(here)
            values += b"" if inline else entry.data
        table += struct.pack(layout.order + "HH", tag, kind) + layout.pointer(count) + value
    return table + layout.pointer(after) + bytes(values)


def _all(entry: Entry) -> tuple[Entry, ...]:
    return (entry, *entry.again)


def _reordered(entry: Entry, source: Layout, target: Layout) -> Entry:
    again = tuple(_reordered(other, source, target) for other in entry.again)
    if entry.directory is None:
        return Entry(entry.kind, _swapped(entry, source, target), again=again)
    inner = reordered(entry.directory, source, target)
    return Entry(entry.kind, directory=inner, again=again)


def _swapped(entry: Entry, source: Layout, target: Layout) -> bytes:
    word = WORD_SIZES[entry.kind]
    if word == 1:
        return entry.data
    code = target.word(word)[1]
    words = struct.unpack(f"{source.order}{len(entry.data) // word}{code}", entry.data)
    return struct.pack(f"{target.order}{len(words)}{code}", *words)
