"""TIFF files of doubles (float64), which libvips does not read: strips or tiles of plain values."""

from __future__ import annotations

import dataclasses
import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import FileError, InputError
from nlnet.images import tiff_tags
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.ifd import Layout, Tags, read_directory

_NONE, _DEFLATE, _OLD_DEFLATE = 1, 8, 32946
_NAME = "TIFF"
_BYTES = 8


@dataclasses.dataclass(frozen=True)
class _Plan:
    """Where the values of a page are, and how they fit together."""

    height: int
    width: int
    samples: int
    planes: int
    rows: int
    columns: int
    compressed: bool
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def across(self) -> int:
        return math.ceil(self.width / self.columns)

    @property
    def down(self) -> int:
        return math.ceil(self.height / self.rows)

    @property
    def together(self) -> int:
        """Samples of a pixel that are stored side by side."""
        return self.samples // self.planes


def read_pages(
    source: Source, layout: Layout, offsets: Sequence[int], max_pixels: int
) -> Sequence[ImageFile]:
    """Check the pages, which must be alike, and return them, decoded when they are asked for."""
    plans = [_plan(source, layout, offset) for offset in offsets]
    first = plans[0]
    source.check_pixels(first.width, first.height, max_pixels)
    alike = {(plan.height, plan.width, plan.samples) for plan in plans}
    if len(alike) > 1:
        raise InputError(
            f"{source.name!r} has pages of different sizes or kinds, but all must be alike."
        )

    def decode(index: int) -> ImageFile:
        values = _decode(source, layout, plans[index])
        channels = 1 if first.samples < 3 else 3
        pixels = values[..., 0] if channels == 1 else values[..., :3]
        return ImageFile(pixels, values[..., channels] if first.samples > channels else None)

    return Pages(len(plans), decode)


def _plan(source: Source, layout: Layout, offset: int) -> _Plan:
    try:
        with source.open() as stream:
            tags = Tags(layout, read_directory(stream, layout, offset, tiff_tags.STORAGE))
    except (ValueError, struct.error) as error:
        raise source.damaged(_NAME) from error
    compression = tags.number(tiff_tags.COMPRESSION, _NONE)
    samples = tags.number(tiff_tags.SAMPLES, 1)
    plain = tags.number(tiff_tags.PREDICTOR, 1) == 1
    if compression not in (_NONE, _DEFLATE, _OLD_DEFLATE) or not plain:
        raise FileError(
            f"Cannot read {source.name!r}: it is a TIFF file of doubles that are compressed in a "
            "way which is not supported; write it with deflate, without a predictor."
        )
    if samples not in (1, 2, 3, 4) or tiff_tags.PREMULTIPLIED in tags.numbers(tiff_tags.EXTRA):
        raise InputError(
            f"{source.name!r} has {samples} channels of doubles, but must be gray or RGB, with or "
            "without one channel of plain transparency."
        )
    height, width = tags.number(tiff_tags.HEIGHT, 0), tags.number(tiff_tags.WIDTH, 0)
    tiled = tiff_tags.TILE_OFFSETS in tags
    plan = _Plan(
        height=height,
        width=width,
        samples=samples,
        planes=samples if tags.number(tiff_tags.PLANAR, 1) == 2 else 1,
        rows=tags.number(tiff_tags.TILE_HEIGHT, 0)
        if tiled
        else min(height, tags.number(tiff_tags.ROWS_PER_STRIP, height)),
        columns=tags.number(tiff_tags.TILE_WIDTH, 0) if tiled else width,
        compressed=compression != _NONE,
        offsets=tags.numbers(tiff_tags.TILE_OFFSETS if tiled else tiff_tags.STRIP_OFFSETS),
        sizes=tags.numbers(tiff_tags.TILE_SIZES if tiled else tiff_tags.STRIP_SIZES),
    )
    sides = (plan.height, plan.width, plan.rows, plan.columns)
    # Tiles may reach beyond the image, but not by more than they are made of.
    sane = min(sides) >= 1 and plan.rows <= height + 65535 and plan.columns <= width + 65535
    if not sane or not (
        len(plan.offsets) == len(plan.sizes) == plan.across * plan.down * plan.planes
    ):
        raise source.damaged(_NAME, "its strips or tiles are wrong")
    return plan


def _decode(source: Source, layout: Layout, plan: _Plan) -> Array:
    values: Array = np.empty((plan.height, plan.width, plan.samples))
    dtype = np.dtype(np.float64).newbyteorder(layout.order)
    per_plane = plan.across * plan.down
    with source.open() as stream:
        for number, (place, size) in enumerate(zip(plan.offsets, plan.sizes, strict=True)):
            plane, position = divmod(number, per_plane)
            top = position // plan.across * plan.rows
            left = position % plan.across * plan.columns
            full = plan.columns == plan.width
            rows = min(plan.rows, plan.height - top) if full else plan.rows
            shape = (rows, plan.columns, plan.together)
            needed = math.prod(shape) * _BYTES
            try:
                stream.seek(place)
                data = stream.read(size)
                if plan.compressed:
                    data = zlib.decompressobj().decompress(data, needed)
            except (zlib.error, OSError, OverflowError, ValueError) as error:
                raise source.damaged(_NAME, "its strips or tiles are wrong") from error
            if len(data) < needed:
                raise source.damaged(_NAME, "it is too short")
            block = np.frombuffer(data, dtype, math.prod(shape)).reshape(shape)
            band = slice(plane, plane + 1) if plan.planes > 1 else slice(None)
            target = values[top : top + plan.rows, left : left + plan.columns, band]
            target[...] = block[: target.shape[0], : target.shape[1]]
    return values
