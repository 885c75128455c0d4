"""BMP files, which the binary wheel of libvips does not read: 8-bit palettes, 24 and 32 bits."""

from __future__ import annotations

import dataclasses
import os
import struct
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.exif import METRES_PER_INCH, Resolution
from nlnet.images.metadata import Metadata
from nlnet.images.writing import PLAIN, WritingOptions

_NAME = "BMP"
_FILE_HEADER, _SMALLEST_HEADER, _MASKS_HEADER, _ALPHA_HEADER = 14, 40, 52, 56
_LARGEST_HEADER = 124
_PLAIN, _BIT_FIELDS, _ALPHA_BIT_FIELDS = 0, 3, 6


class _Header:
    """What the first bytes say; numbers are those of the Windows headers."""

    def __init__(self, source: Source, stream: BinaryIO) -> None:
        start = stream.read(_FILE_HEADER + _LARGEST_HEADER)
        if len(start) < _FILE_HEADER + _SMALLEST_HEADER:
            raise source.damaged(_NAME, "its header is wrong")
        self.offset, self.size = struct.unpack_from("<II", start, 10)
        if not _SMALLEST_HEADER <= self.size <= _LARGEST_HEADER:
            raise InputError(
                f"{source.name!r} is a BMP file with a header of {self.size} bytes, "
                "but must have one of 40 to 124, as all programs write since 1990."
            )
        self.width, height, _, self.bits, self.compression = struct.unpack_from("<iiHHI", start, 18)
        self.top_down, self.height = height < 0, abs(height)
        self.per_metre = struct.unpack_from("<ii", start, 38)
        self.colors = struct.unpack_from("<I", start, 46)[0] or 256
        if min(self.width, self.height) < 1:
            raise source.damaged(_NAME, "its header is wrong")
        self.palette_at = _FILE_HEADER + self.size
        self.masks = self._masks(start)

    @property
    def row_size(self) -> int:
        """Bytes of a row, which are a multiple of four."""
        size: int = (self.width * self.bits + 31) // 32 * 4
        return size

    @property
    def metadata(self) -> Metadata | None:
        """The resolution, which is all that there is."""
        if min(self.per_metre) < 1:
            return None
        x, y = (number * METRES_PER_INCH for number in self.per_metre)
        return Metadata(_NAME, resolution=Resolution(x, y))

    def _masks(self, start: bytes) -> tuple[int, ...]:
        """Return where red, green, blue and alpha are in the number of a pixel."""
        if self.bits == 32 and self.compression in (_BIT_FIELDS, _ALPHA_BIT_FIELDS):
            alpha = self.size >= _ALPHA_HEADER or self.compression == _ALPHA_BIT_FIELDS
            masks = struct.unpack_from("<4I", start.ljust(_FILE_HEADER + _ALPHA_HEADER, b"\0"), 54)
            return masks if alpha else masks[:3]
        return (0xFF0000, 0xFF00, 0xFF)


class BmpCodec:
    """BMP, not compressed; it is written with 8, 24 or 32 bits per pixel."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Sequence[ImageFile]:
        """Check the header, and return the only page."""
        header = _Header(source, stream)
        _check(source, header)
        source.check_pixels(header.width, header.height, max_pixels)
        if stream.seek(0, os.SEEK_END) < header.offset + header.height * header.row_size:
            raise source.damaged(_NAME, "it is too short")

        def decode(index: int) -> ImageFile:
            with source.open() as stream:
                stream.seek(header.palette_at)
                palette = stream.read(4 * min(header.colors, 256))
                stream.seek(header.offset)
                data = stream.read(header.height * header.row_size)
            if len(data) < header.height * header.row_size:
                raise source.damaged(_NAME, "it is too short")
            rows = np.frombuffer(data, np.uint8).reshape(header.height, header.row_size)
            rows = rows if header.top_down else rows[::-1]
            rows = rows[:, : header.width * header.bits // 8]
            image = _decode(source, header, rows, palette)
            return dataclasses.replace(image, metadata=header.metadata)

        return Pages(1, decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file."""
        image = pages[0]
        height, width = image.pixels.shape[:2]
        palette, masks = b"", b""
        if image.alpha is not None:
            color = image.pixels if image.channels == 3 else np.dstack([image.pixels] * 3)
            bands = np.dstack([color[..., ::-1], image.alpha])
            size, compression = 108, _BIT_FIELDS
            masks = struct.pack("<4I4s48x", 0xFF0000, 0xFF00, 0xFF, 0xFF000000, b"BGRs")
        else:
            gray = image.channels == 1
            bands = image.pixels[..., np.newaxis] if gray else image.pixels[..., ::-1]
            size, compression = _SMALLEST_HEADER, _PLAIN
            if gray:
                palette = b"".join(bytes([value, value, value, 0]) for value in range(256))
        bits = 8 * bands.shape[2]
        rows: Array = bands[::-1].reshape(height, -1)
        rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
        start = _FILE_HEADER + size + len(palette)
        header = struct.pack("<2sIII", b"BM", start + rows.size, 0, start)
        header += struct.pack("<IiiHHII", size, width, height, 1, bits, compression, rows.size)
        header += struct.pack("<iiII", *_per_metre(image.metadata), len(palette) // 4, 0)
        return header + masks + palette + rows.tobytes()


def _check(source: Source, header: _Header) -> None:
    plain = header.compression == _PLAIN and header.bits in (8, 24, 32)
    fields = header.bits == 32 and header.compression in (_BIT_FIELDS, _ALPHA_BIT_FIELDS)
    whole = all(mask in (0, 0xFF, 0xFF00, 0xFF0000, 0xFF000000) for mask in header.masks)
    if not (plain or fields) or not whole or 0 in header.masks[:3]:
        raise InputError(
            f"{source.name!r} is a BMP file of {header.bits} bits per pixel and kind "
            f"{header.compression}, but must have 8, 24 or 32 bits that are not compressed."
        )


def _decode(source: Source, header: _Header, rows: Array, palette: bytes) -> ImageFile:
    if header.bits == 8:
        return _with_palette(source, rows, palette)
    bands = rows.reshape(header.height, header.width, -1)
    if header.bits == 24:
        return ImageFile(np.ascontiguousarray(bands[..., ::-1]))
    planes = [_plane(bands, mask) for mask in header.masks if mask]
    alpha = planes[3] if len(planes) == 4 else None
    return ImageFile(np.dstack(planes[:3]), alpha)


def _per_metre(metadata: Metadata | None) -> tuple[int, int]:
    """Return the resolution to write, 0 where it is not known."""
    resolution = None if metadata is None else metadata.resolution_for(_NAME)
    if resolution is None:
        return 0, 0
    x, y = (round(number / METRES_PER_INCH) for number in (resolution.x, resolution.y))
    return (x, y) if max(x, y) < 2**31 else (0, 0)


def _plane(bands: Array, mask: int) -> Array:
    plane: Array = bands[..., (mask.bit_length() - 1) // 8]
    return plane


def _with_palette(source: Source, indices: Array, palette: bytes) -> ImageFile:
    colors = np.frombuffer(palette[: len(palette) // 4 * 4], np.uint8).reshape(-1, 4)[:, 2::-1]
    if indices.max() >= len(colors):
        raise source.damaged(_NAME, "its palette is too short")
    if (colors == colors[:, :1]).all():
        return ImageFile(colors[indices, 0])
    return ImageFile(colors[indices], notes=("its palette of colors becomes RGB",))
