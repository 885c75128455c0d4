"""Pages of TIFF files that libvips does not read, as small TIFF files that it does.

It knows neither doubles, nor tiles with a plane for each channel, nor Zstandard and LZMA. Strips
and tiles are copied as they are, or unpacked; what is said about them changes.
"""

import contextlib
import importlib
import math
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from nlnet.images import tiff_tags as tag
from nlnet.images.ifd import SHORT, Layout, Tags, read_at, read_directory
from nlnet.images.ifd_writing import TiffBytes, Values, entries_of
from nlnet.images.libraries import need

_DOUBLE = 64
_SPARE = 2**24
"""Bytes that compressed blocks, and pixels that tiles, may have beyond what an image needs."""
_WRONG = "its strips or tiles are wrong"


def zstd(reading: str = "") -> Any:
    """Return the module of Python 3.14, or the same for older versions."""
    with contextlib.suppress(ImportError):
        return importlib.import_module("compression.zstd")
    what = f"{reading}TIFF files compressed with Zstandard"
    return need("backports.zstd", "backports.zstd", "zstd", what)


ZSTD = {34926, 50000}
UNPACKED = {34925, *ZSTD}
"""Compressions, by their number in TIFF files, that are undone here: LZMA and Zstandard."""


def _unpack(data: bytes, size: int, compression: int) -> bytes:
    """Return what is packed, of which there are at most so many bytes."""
    if compression in ZSTD:
        decompressor = zstd().ZstdDecompressor()
    else:
        import lzma  # only where it is needed: it takes milliseconds

        decompressor = lzma.LZMADecompressor()
    unpacked: bytes = decompressor.decompress(data, max_length=size)
    return unpacked


def repack(stream: BinaryIO, layout: Layout, offset: int) -> Iterator[bytes]:
    """Yield a page as files that libvips reads: one for each plane, of doubles the single bytes.

    Damaged pages raise ValueError, or what the libraries raise.
    """
    tags = read_directory(stream, layout, offset, tag.STORAGE)
    tiled = tag.TILE_OFFSETS in tags
    at, of_size = tag.STRIP_OFFSETS, tag.STRIP_SIZES
    height, width = tags.number(tag.HEIGHT, 0), tags.number(tag.WIDTH, 0)
    rows, columns = tags.number(tag.ROWS_PER_STRIP, height), width
    if tiled:
        at, of_size = tag.TILE_OFFSETS, tag.TILE_SIZES
        rows, columns = tags.number(tag.TILE_HEIGHT, 0), tags.number(tag.TILE_WIDTH, 0)
    samples, bits = tags.number(tag.SAMPLES, 1), tags.number(tag.BITS, 1)
    planes = samples if tags.number(tag.PLANAR, 1) == 2 else 1
    places, sizes = tags.numbers(at), tags.numbers(of_size)
    if min(rows, columns, planes) < 1:
        raise ValueError(_WRONG)
    rows = rows if tiled else min(rows, height)
    count = math.ceil(height / rows) * math.ceil(width / columns)
    block = math.ceil(columns * bits * samples / planes / 8) * rows
    if (
        len(places) != planes * count
        or len(sizes) != planes * count
        or rows * columns > 4 * height * width + _SPARE
        or sum(sizes) > 2 * planes * count * block + _SPARE
    ):
        raise ValueError(_WRONG)
    compression = tags.number(tag.COMPRESSION, 1)
    packed = compression in UNPACKED
    for plane in range(planes):
        part = slice(plane * count, (plane + 1) * count)
        file = TiffBytes(layout)
        blocks = [read_at(stream, *where) for where in zip(places[part], sizes[part], strict=True)]
        if packed:
            # Stored as deflate, since the differences of a predictor stay.
            blocks = [zlib.compress(_unpack(each, block, compression), 0) for each in blocks]
        values = _samples(tags, samples // planes, alone=planes > 1) | {
            at: (layout.offset_kind, [file.add(each) for each in blocks]),
            of_size: (layout.offset_kind, [*map(len, blocks)]),
        }
        if packed:
            values[tag.COMPRESSION] = SHORT, tag.DEFLATE
        file.add_page({**tags.entries, **entries_of(values, layout)})
        yield bytes(file)


def _samples(tags: Tags, count: int, *, alone: bool) -> Values:
    """Return the numbers about the samples of a pixel, where they are to be read as others."""
    bits, sample_format = tags.number(tag.BITS, 1), tags.number(tag.SAMPLE_FORMAT, 1)
    if bits == _DOUBLE:
        count, bits, sample_format = 8 * count, 8, 1
    elif not alone:
        return {}
    return {
        tag.BITS: (SHORT, [bits] * count),
        tag.SAMPLE_FORMAT: (SHORT, [sample_format] * count),
        tag.SAMPLES: (SHORT, count),
        tag.PHOTOMETRIC: (SHORT, 1),
        tag.PLANAR: (SHORT, 1),
        tag.EXTRA: (SHORT, [0] * (count - 1)),
    }
