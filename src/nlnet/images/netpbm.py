"""PGM and PPM files, which the binary wheel of libvips does not read: a header and the samples."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from nlnet.errors import InputError
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.writing import PLAIN, WritingOptions

_CHANNELS = {b"P2": 1, b"P3": 3, b"P5": 1, b"P6": 3}
_PLAIN = (b"P2", b"P3")
_HEADER = re.compile(rb"(P\d)" + 3 * rb"(?:\s|#[^\n\r]*[\n\r])+(\d{1,9})" + rb"\s")
_LONGEST_HEADER = 4096
_NAME = "PGM or PPM"


class NetpbmCodec:
    """PGM and PPM, plain and binary, of any depth up to 16 bits; the depth is kept."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the header, and return the only page."""
        start = stream.read(_LONGEST_HEADER)
        if start[:2] not in _CHANNELS:
            raise InputError(f"{source.name!r} is black and white (1 bit), but must be PGM or PPM.")
        header = _HEADER.match(start)
        width, height, white = map(int, header.groups()[1:]) if header else (0, 0, 0)
        if header is None or min(width, height, white) < 1 or white > 65535:
            raise source.damaged(_NAME, "its header is wrong")
        source.check_pixels(width, height, max_pixels)
        shape = (height, width, _CHANNELS[header[1]])
        dtype = _sample_dtype(white)
        plain = header[1] in _PLAIN
        size = math.prod(shape) * dtype.itemsize
        if plain:
            # All that is left, in which a sample takes at least a digit and a space.
            size = stream.seek(0, os.SEEK_END) - header.end()
            if size < 2 * math.prod(shape) - 1:
                raise source.damaged(_NAME, "it is too short")

        def decode(data: bytes) -> ImageFile:
            samples = np.frombuffer(data, dtype) if not plain else _plain(data, math.prod(shape))
            if samples.max() > white:
                raise ValueError("a sample is above white")
            native = samples.reshape(shape).astype(dtype.newbyteorder("="))
            return ImageFile.of_bands(native, data_range=float(white))

        return source.stored_page(stream, _NAME, header.end(), size, decode)

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
