"""Writing TIFF files: every page keeps its own entries, and the file its byte order.

Libvips writes one set of entries for all pages, and no doubles. The pixels are strips, compressed
without loss (deflate).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from nlnet.arrays import Array
from nlnet.images import exif, tiff_tags
from nlnet.images.content import ImageFile
from nlnet.images.ifd import LONG, UNDEFINED, Entry, Layout, Tags
from nlnet.images.ifd_writing import encode_directory, reordered
from nlnet.images.metadata import Metadata, fits

_BIG = 2**31
"""Above this many bytes of pixels, a BigTIFF is written, whose offsets have 64 bits."""
_STRIP_BYTES = 2**18
_DEFLATE = 8
_LEVEL = 4
_DIFFERENCES = 2
_SAMPLE_FORMATS = {"u": 1, "i": 2, "f": 3}
_BLACK_IS_ZERO, _RGB = 1, 2
_UNASSOCIATED_ALPHA = 2
_SHORT = 3


def encode_pages(pages: Sequence[ImageFile]) -> bytes:
    """Return the bytes of a file."""
    layout = _layout(pages)
    start = 16 if layout.big else 8
    pieces = [b""]  # the header, once the place of the first directory is known
    place = start
    offsets: list[int] = []
    directories: list[tuple[int, dict[int, Entry]]] = []
    for page in pages:
        strips = list(_strips(page, layout))
        places = []
        for strip in strips:
            places.append(place)
            pieces.append(strip)
            place += len(strip)
        entries = _kept_entries(page, layout) | _storage(page, layout, places, strips)
        size = len(encode_directory(entries, layout, 0))
        padding = -place % 8
        pieces.append(bytes(padding))
        place += padding
        directories.append((len(pieces), entries))
        pieces.append(b"")
        offsets.append(place)
        place += size
    for number, (piece, entries) in enumerate(directories):
        after = offsets[number + 1] if number + 1 < len(offsets) else 0
        pieces[piece] = encode_directory(entries, layout, offsets[number], after)
    pieces[0] = layout.header + layout.pointer(offsets[0])
    return b"".join(pieces)


def _layout(pages: Sequence[ImageFile]) -> Layout:
    """Return the layout of the file the pages come from, if they come from one."""
    metadata = pages[0].metadata
    given = Layout("<")
    if metadata is not None and metadata.tags is not None:
        given = metadata.tags.layout
    size = sum(page.pixels.nbytes // page.channels * _sample_count(page) for page in pages)
    return Layout(given.order, big=given.big or size > _BIG)


def _strips(page: ImageFile, layout: Layout) -> Iterator[bytes]:
    pixels = page.pixels.reshape(*page.pixels.shape[:2], -1)
    for rows in _row_ranges(page):
        samples = pixels[rows]
        if page.alpha is not None:
            samples = np.dstack([samples, page.alpha[rows]])
        if samples.dtype.kind in "ui":
            samples = _differences(samples)
        stored = samples.astype(samples.dtype.newbyteorder(layout.order), copy=False)
        yield _deflate(stored.tobytes(), differences=samples.dtype.kind in "ui")


def _deflate(data: bytes, *, differences: bool) -> bytes:
    """Compress; of differences in photos, only runs repeat, and to look for more takes long."""
    strategy = zlib.Z_RLE if differences else zlib.Z_DEFAULT_STRATEGY
    packer = zlib.compressobj(_LEVEL, strategy=strategy)
    return packer.compress(data) + packer.flush()


def _row_ranges(page: ImageFile) -> list[slice]:
    height = page.pixels.shape[0]
    rows = _rows_per_strip(page)
    return [slice(start, start + rows) for start in range(0, height, rows)]


def _rows_per_strip(page: ImageFile) -> int:
    height, width = page.pixels.shape[:2]
    row: int = width * _sample_count(page) * page.pixels.itemsize
    return min(int(height), max(1, _STRIP_BYTES // row))


def _sample_count(page: ImageFile) -> int:
    return page.channels + (page.alpha is not None)


def _differences(samples: Array) -> Array:
    """Return each sample's difference from the one to its left, as the predictor wants it."""
    unsigned = np.ascontiguousarray(samples).view(f"u{samples.itemsize}")
    result: Array = unsigned.copy()
    result[:, 1:] -= unsigned[:, :-1]
    return result


def _storage(
    page: ImageFile, layout: Layout, places: Sequence[int], strips: Sequence[bytes]
) -> dict[int, Entry]:
    """Return the entries about the pixels."""
    dtype, samples = page.pixels.dtype, _sample_count(page)
    height, width = page.pixels.shape[:2]

    def short(*numbers: int) -> Entry:
        return Entry(_SHORT, struct.pack(f"{layout.order}{len(numbers)}H", *numbers))

    def places_entry(numbers: Sequence[int]) -> Entry:
        kind, code = (16, "Q") if layout.big else (LONG, "I")
        return Entry(kind, struct.pack(f"{layout.order}{len(numbers)}{code}", *numbers))

    def long(number: int) -> Entry:
        return Entry(LONG, struct.pack(layout.order + "I", number))

    entries = {
        tiff_tags.WIDTH: long(width),
        tiff_tags.HEIGHT: long(height),
        tiff_tags.BITS: short(*[8 * dtype.itemsize] * samples),
        tiff_tags.COMPRESSION: short(_DEFLATE),
        tiff_tags.PHOTOMETRIC: short(_RGB if page.channels == 3 else _BLACK_IS_ZERO),
        tiff_tags.STRIP_OFFSETS: places_entry(places),
        tiff_tags.SAMPLES: short(samples),
        tiff_tags.ROWS_PER_STRIP: long(_rows_per_strip(page)),
        tiff_tags.STRIP_SIZES: places_entry([len(strip) for strip in strips]),
        tiff_tags.PLANAR: short(1),
        tiff_tags.SAMPLE_FORMAT: short(*[_SAMPLE_FORMATS[dtype.kind]] * samples),
    }
    # The predictor for floating values is one that few other programs know.
    if dtype.kind in "ui":
        entries[tiff_tags.PREDICTOR] = short(_DIFFERENCES)
    if page.alpha is not None:
        entries[tiff_tags.EXTRA] = short(_UNASSOCIATED_ALPHA)
    return entries


def _kept_entries(page: ImageFile, layout: Layout) -> dict[int, Entry]:
    """Return the entries that say the rest."""
    metadata: Metadata | None = page.metadata
    if metadata is None:
        return {}
    if metadata.tags is not None:
        source, entries = metadata.tags.layout, dict(metadata.tags.entries)
    else:
        source, entries = _translated(metadata)
    if metadata.icc is not None and not fits(metadata.icc, page.channels):
        entries.pop(tiff_tags.ICC, None)
    return reordered(entries, source, layout)


def _translated(metadata: Metadata) -> tuple[Layout, dict[int, Entry]]:
    """Return the entries that say what a file of another format said."""
    tags = metadata.exif_tags or Tags(Layout("<"), {})
    entries = {
        tag: entry
        for tag, entry in tags.entries.items()
        if tag not in tiff_tags.STORAGE and tag not in tiff_tags.NOT_KEPT
    }
    resolution = metadata.resolution
    if resolution is not None:
        entries |= exif.resolution_entries(resolution, tags.layout)
    resources = metadata.all_resources()
    values = {
        tiff_tags.ICC: metadata.icc,
        tiff_tags.XMP: metadata.xmp,
        tiff_tags.IPTC: metadata.iptc,
        tiff_tags.RESOURCES: resources,
    }
    entries |= {
        tag: Entry(UNDEFINED if tag != tiff_tags.XMP else 1, data)
        for tag, data in values.items()
        if data is not None
    }
    return tags.layout, entries
