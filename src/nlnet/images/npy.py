"""Arrays in ``.npy`` files: (H, W) for gray, (H, W, 3) for RGB, or a stack along a first axis.

With alpha there is one channel more: (H, W, 2) or (H, W, 4).
"""

from __future__ import annotations

import dataclasses
import io
import math
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.ifd import ByteOrder
from nlnet.images.metadata import Metadata
from nlnet.images.writing import PLAIN, WritingOptions

_DTYPES = ("uint8", "uint16", "uint32", "int16", "int32", "float16", "float32", "float64")
_SWAPPED: ByteOrder = ">" if sys.byteorder == "little" else "<"
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class NpyCodec:
    """The format of ``numpy.save``, without Python objects."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Sequence[ImageFile]:
        """Check the header; pages are read from the file one by one."""
        shape, fortran, dtype = _read_header(source, stream)
        start = stream.tell()
        if dtype.name not in _DTYPES:
            raise InputError(
                f"{source.name!r} holds {dtype} values, but must hold one of {', '.join(_DTYPES)}."
            )
        stacked, page_shape = _page_shape(source, shape)
        source.check_pixels(page_shape[1], page_shape[0], max_pixels)
        count = shape[0] if stacked else 1
        page_size = math.prod(page_shape) * dtype.itemsize
        if stream.seek(0, os.SEEK_END) < start + count * page_size:
            raise source.damaged("npy", "it is too short")

        def decode(index: int) -> ImageFile:
            with source.open() as stream:
                if fortran:
                    stream.seek(start)
                    flat = np.frombuffer(stream.read(count * page_size), dtype)
                    page = flat.reshape(shape[::-1]).T
                    page = page[index] if stacked else page
                else:
                    stream.seek(start + index * page_size)
                    data = stream.read(page_size)
                    if len(data) < page_size:
                        raise source.damaged("npy", "it is too short")
                    page = np.frombuffer(data, dtype).reshape(page_shape)
            image = _split(page.astype(dtype.newbyteorder("=")), stacked=stacked)
            swapped = not dtype.isnative
            metadata = Metadata("npy", byte_order=_SWAPPED) if swapped else None
            return dataclasses.replace(image, metadata=metadata)

        return Pages(count, decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file with one array, in the byte order it had."""
        arrays = [
            page.pixels if page.alpha is None else np.dstack([page.pixels, page.alpha])
            for page in pages
        ]
        stream = io.BytesIO()
        stacked = len(pages) > 1 or pages[0].stacked
        array = np.stack(arrays) if stacked else arrays[0]
        metadata = pages[0].metadata
        if metadata is not None and metadata.origin == "npy":
            array = array.astype(array.dtype.newbyteorder(metadata.byte_order))
        np.lib.format.write_array(stream, array)
        return stream.getvalue()


def _read_header(source: Source, stream: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read = _HEADERS[np.lib.format.read_magic(stream)]
            shape, fortran, dtype = read(stream)
    # What a mangled header raises depends on where the mangling is.
    except Exception as error:
        raise source.damaged("npy", "its header is wrong") from error
    if any(side < 0 for side in shape):
        raise source.damaged("npy", f"its header says the shape {shape}")
    return shape, fortran, dtype


def _page_shape(source: Source, shape: tuple[int, ...]) -> tuple[bool, tuple[int, ...]]:
    """Tell whether the first axis is one of pages, and return the shape of a page."""
    channels = len(shape) >= 3 and 1 < shape[-1] <= 4
    stacked = len(shape) > 2 + channels
    page = shape[stacked:]
    if len(page) != 2 + channels or 0 in shape:
        raise InputError(
            f"{source.name!r} holds an array of shape {shape}, but must hold (H, W), (H, W, 3), "
            "these with one channel of alpha, or a stack of them along a first axis."
        )
    return stacked, page


def _split(page: Array, *, stacked: bool) -> ImageFile:
    if page.ndim == 2:
        return ImageFile(page, stacked=stacked)
    alpha = page[..., -1] if page.shape[-1] in (2, 4) else None
    pixels = page[..., 0] if page.shape[-1] == 2 else page[..., :3]
    return ImageFile(pixels, alpha, stacked=stacked)
