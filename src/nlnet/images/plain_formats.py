"""BMP, PGM and PPM files, which the binary wheel of libvips does not read: header and samples."""

import math
import os
import re
import struct
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.exif import Resolution
from nlnet.images.metadata import Metadata
from nlnet.images.writing import PLAIN, WritingOptions

_START = struct.Struct("<10xIIii2xHI4xiiI")
"""Offset of the pixels, header size, width, height, bits, compression, pixels per metre, colors."""
_FILE_HEADER, _SMALLEST_HEADER, _ALPHA_HEADER, _LARGEST_HEADER = 14, 40, 56, 124
_PLAIN, _BIT_FIELDS, _ALPHA_BIT_FIELDS = 0, 3, 6
_MASKS = (0xFF0000, 0xFF00, 0xFF, 0xFF000000)
"""Where red, green, blue and alpha are in the number of a pixel."""

_CHANNELS = {b"P2": 1, b"P3": 3, b"P5": 1, b"P6": 3}
_TEXT = (b"P2", b"P3")
_HEADER = re.compile(rb"(P\d)" + 3 * rb"(?:\s|#[^\n\r]*[\n\r])+(\d{1,9})" + rb"\s")
_LONGEST_HEADER = 4096


class BmpCodec:
    """BMP, not compressed; it is written with 8, 24 or 32 bits per pixel."""

    name = "BMP"

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the header, and return the only page."""
        start = stream.read(_FILE_HEADER + _LARGEST_HEADER)
        if len(start) < _FILE_HEADER + _SMALLEST_HEADER:
            raise source.damaged(self.name, "its header is wrong")
        offset, size, width, height, bits, compression, x, y, colors = _START.unpack_from(start)
        if not _SMALLEST_HEADER <= size <= _LARGEST_HEADER:
            raise InputError(
                f"{source.name!r} is a BMP file with a header of {size} bytes, "
                "but must have one of 40 to 124, as all programs write since 1990."
            )
        order = _byte_order(start, size, bits, compression)
        if order is None:
            raise InputError(
                f"{source.name!r} is a BMP file of {bits} bits per pixel and kind {compression}, "
                "but must have 8, 24 or 32 bits that are not compressed."
            )
        if min(width, abs(height)) < 1:
            raise source.damaged(self.name, "its header is wrong")
        source.check_pixels(width, abs(height), max_pixels)
        stream.seek(_FILE_HEADER + size)
        palette = stream.read(4 * min(colors or 256, 256)) if bits == 8 else b""
        metadata = Metadata(self.name, resolution=Resolution.of_metres(x, y))
        row = (width * bits + 31) // 32 * 4  # a multiple of four bytes

        def decode(data: bytes) -> ImageFile:
            rows = np.frombuffer(data, np.uint8).reshape(-1, row)[:, : width * bits // 8]
            rows = rows if height < 0 else rows[::-1]
            if bits == 8:
                return _with_palette(rows, palette, metadata)
            bands = rows.reshape(len(rows), width, -1)
            return ImageFile.of_bands(np.ascontiguousarray(bands[..., order]), metadata=metadata)

        return source.stored_page(stream, self.name, offset, abs(height) * row, decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file."""
        image = pages[0]
        bands = image.bands
        palette, masks, size, compression = b"", b"", _SMALLEST_HEADER, _PLAIN
        if image.alpha is not None:
            bands = bands[..., [2, 1, 0, 3]] if image.channels == 3 else bands[..., [0, 0, 0, 1]]
            size, compression = 108, _BIT_FIELDS
            masks = struct.pack("<4I4s48x", *_MASKS, b"BGRs")
        elif image.channels == 3:
            bands = bands[..., ::-1]
        else:
            palette = b"".join(bytes([value, value, value, 0]) for value in range(256))
        height, width, count = bands.shape
        rows = np.pad(bands[::-1].reshape(height, -1), ((0, 0), (0, -width * count % 4)))
        start = _FILE_HEADER + size + len(palette)
        resolution = (image.metadata or Metadata(self.name)).resolution_for(self.name)
        per_metre = (0, 0) if resolution is None else resolution.per_metre
        sizes = size, width, height, 1, 8 * count, compression, rows.size
        header = struct.pack("<2sIII", b"BM", start + rows.size, 0, start)
        header += struct.pack("<IiiHHIIiiII", *sizes, *per_metre, len(palette) // 4, 0)
        return header + masks + palette + rows.tobytes()


def _byte_order(start: bytes, size: int, bits: int, compression: int) -> list[int] | None:
    """Return which bytes of a pixel are red, green, blue and maybe alpha; None if none are."""
    if compression == _PLAIN and bits in (8, 24, 32):
        return [2, 1, 0]
    if bits != 32 or compression not in (_BIT_FIELDS, _ALPHA_BIT_FIELDS):
        return None
    alpha = size >= _ALPHA_HEADER or compression == _ALPHA_BIT_FIELDS
    masks = struct.unpack_from("<4I", start.ljust(_FILE_HEADER + _ALPHA_HEADER, b"\0"), 54)
    masks = masks if alpha and masks[3] else masks[:3]
    if not all(mask in _MASKS for mask in masks):
        return None
    return [(mask.bit_length() - 1) // 8 for mask in masks]


def _with_palette(indices: Array, palette: bytes, metadata: Metadata) -> ImageFile:
    colors = np.frombuffer(palette[: len(palette) // 4 * 4], np.uint8).reshape(-1, 4)[:, 2::-1]
    if indices.max() >= len(colors):
        raise ValueError("its palette is too short")
    if (colors == colors[:, :1]).all():
        return ImageFile(colors[indices, 0], metadata=metadata)
    notes = ("its palette of colors becomes RGB",)
    return ImageFile(colors[indices], metadata=metadata, notes=notes)


class NetpbmCodec:
    """PGM and PPM, plain and binary, of any depth up to 16 bits; the depth is kept."""

    name = "PGM or PPM"

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the header, and return the only page."""
        start = stream.read(_LONGEST_HEADER)
        if start[:2] not in _CHANNELS:
            raise InputError(f"{source.name!r} is black and white (1 bit), but must be PGM or PPM.")
        header = _HEADER.match(start)
        width, height, white = map(int, header.groups()[1:]) if header else (0, 0, 0)
        if header is None or min(width, height, white) < 1 or white > 65535:
            raise source.damaged(self.name, "its header is wrong")
        source.check_pixels(width, height, max_pixels)
        shape = (height, width, _CHANNELS[header[1]])
        dtype = _sample_dtype(white)
        plain = header[1] in _TEXT
        size = math.prod(shape) * dtype.itemsize
        if plain:
            # All that is left, in which a sample takes at least a digit and a space.
            size = stream.seek(0, os.SEEK_END) - header.end()
            if size < 2 * math.prod(shape) - 1:
                raise source.damaged(self.name, "it is too short")

        def decode(data: bytes) -> ImageFile:
            samples = np.frombuffer(data, dtype) if not plain else _plain(data, math.prod(shape))
            if samples.max() > white:
                raise ValueError("a sample is above white")
            native = samples.reshape(shape).astype(dtype.newbyteorder("="))
            return ImageFile.of_bands(native, data_range=float(white))

        return source.stored_page(stream, self.name, header.end(), size, decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a binary file."""
        image = pages[0]
        pixels = image.pixels
        white = np.iinfo(pixels.dtype).max
        # The data range of a file like this one is its white; one that pixels exceed is not.
        given = image.data_range
        if given is not None and given == int(given) and pixels.max(initial=0) <= given <= white:
            white = int(given)
        height, width = pixels.shape[:2]
        header = f"{'P5' if image.channels == 1 else 'P6'}\n{width} {height}\n{white}\n"
        return header.encode() + np.ascontiguousarray(pixels, _sample_dtype(white)).tobytes()


def _sample_dtype(white: int) -> np.dtype[np.uint8] | np.dtype[np.uint16]:
    return np.dtype(np.uint8) if white < 256 else np.dtype(">u2")


def _plain(data: bytes, count: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """Return numbers in text, which may have comments to the end of a line."""
    numbers = (int(word) for line in data.splitlines() for word in line.split(b"#")[0].split())
    return np.fromiter(numbers, np.uint32, count)
