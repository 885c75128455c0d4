"""TIFF files of doubles (float64), which libvips does not read: strips or tiles of plain values."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import FileError, InputError
from nlnet.images import tiff_tags as tag
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.ifd import Layout, Tags, read_at, read_directory

_NONE, _DEFLATE, _OLD_DEFLATE = 1, 8, 32946
_LARGEST_TILE = 65535
_NAME = "TIFF"
_WRONG = "its strips or tiles are wrong"


def read_pages(
    source: Source, layout: Layout, offsets: Sequence[int], max_pixels: int
) -> Sequence[ImageFile]:
    """Check the pages, which must be alike, and return them, decoded when they are asked for."""
    pages = [_read_tags(source, layout, offset) for offset in offsets]
    height, width, samples = _shape(pages[0])
    source.check_pixels(width, height, max_pixels)
    if any(_shape(tags) != (height, width, samples) for tags in pages):
        raise InputError(
            f"{source.name!r} has pages of different sizes or kinds, but all must be alike."
        )

    def decode(index: int) -> ImageFile:
        values = _decode(source, pages[index])
        channels = 1 if samples < 3 else 3
        pixels = values[..., 0] if channels == 1 else values[..., :3]
        return ImageFile(pixels, values[..., channels] if samples > channels else None)

    return Pages(len(pages), decode)


def _shape(tags: Tags) -> tuple[int, int, int]:
    return tags.number(tag.HEIGHT, 0), tags.number(tag.WIDTH, 0), tags.number(tag.SAMPLES, 1)


def _read_tags(source: Source, layout: Layout, offset: int) -> Tags:
    """Return how a page is stored; refuse what cannot be read."""
    try:
        with source.open() as stream:
            tags = Tags(layout, read_directory(stream, layout, offset, tag.STORAGE))
    except (ValueError, struct.error) as error:
        raise source.damaged(_NAME) from error
    packed = tags.number(tag.COMPRESSION, _NONE) not in (_NONE, _DEFLATE, _OLD_DEFLATE)
    if packed or tags.number(tag.PREDICTOR, 1) != 1:
        raise FileError(
            f"Cannot read {source.name!r}: it is a TIFF file of doubles that are compressed in a "
            "way which is not supported; write it with deflate, without a predictor."
        )
    height, width, samples = _shape(tags)
    if samples not in (1, 2, 3, 4) or tag.PREMULTIPLIED in tags.numbers(tag.EXTRA):
        raise InputError(
            f"{source.name!r} has {samples} channels of doubles, but must be gray or RGB, with or "
            "without one channel of plain transparency."
        )
    if min(height, width) < 1:
        raise source.damaged(_NAME, "its size is wrong")
    return tags


def _decode(source: Source, tags: Tags) -> Array:
    height, width, samples = _shape(tags)
    planes = samples if tags.number(tag.PLANAR, 1) == 2 else 1
    tiled = tag.TILE_OFFSETS in tags
    rows, columns = tags.number(tag.ROWS_PER_STRIP, height), width
    if tiled:
        rows, columns = tags.number(tag.TILE_HEIGHT, 0), tags.number(tag.TILE_WIDTH, 0)
        if max(rows - height, columns - width) > _LARGEST_TILE:
            raise source.damaged(_NAME, _WRONG)
    places = tags.numbers(tag.TILE_OFFSETS if tiled else tag.STRIP_OFFSETS)
    sizes = tags.numbers(tag.TILE_SIZES if tiled else tag.STRIP_SIZES)
    if min(rows, columns) < 1 or not (
        len(places) == len(sizes) == planes * math.ceil(height / rows) * math.ceil(width / columns)
    ):
        raise source.damaged(_NAME, _WRONG)
    values: Array = np.empty((planes, height, width, samples // planes))
    targets = (
        plane[top : top + rows, left : left + columns]
        for plane in values
        for top in range(0, height, rows)
        for left in range(0, width, columns)
    )
    with source.open() as stream:
        for target, place, size in zip(targets, places, sizes, strict=True):
            # A tile is whole where it reaches beyond the image; a strip ends with it.
            shape = (rows if tiled else len(target), columns, target.shape[2])
            data = _unpack(source, tags, stream, place, size, 8 * math.prod(shape))
            block = np.frombuffer(data, np.dtype(np.float64).newbyteorder(tags.layout.order))
            target[...] = block.reshape(shape)[: target.shape[0], : target.shape[1]]
    return values[0] if planes == 1 else np.concatenate(list(values), axis=-1)


def _unpack(
    source: Source, tags: Tags, stream: BinaryIO, place: int, size: int, needed: int
) -> bytes:
    """Return the bytes of a strip or tile that are needed; a hostile file may hold any number."""
    try:
        data = read_at(stream, place, size)
        if tags.number(tag.COMPRESSION, _NONE) != _NONE:
            data = zlib.decompressobj().decompress(data, needed)
    except (zlib.error, ValueError) as error:
        raise source.damaged(_NAME, _WRONG) from error
    if len(data) < needed:
        raise source.damaged(_NAME, "it is too short")
    return data[:needed]
