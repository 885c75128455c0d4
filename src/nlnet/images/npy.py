"""Arrays in ``.npy`` and ``.npz`` files: (H, W) for gray, (H, W, 3) for RGB, or stacks of them.

With alpha there is one channel more: (H, W, 2) or (H, W, 4). The pages of a stack are counted by
any number of axes before these.
"""

import io
import math
import os
from collections.abc import Sequence
from typing import Any, BinaryIO, Literal, TypeAlias

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError, trying
from nlnet.images.content import ImageFile, Pages, Source, joined
from nlnet.images.ifd import ByteOrder
from nlnet.images.metadata import Metadata, Part
from nlnet.images.writing import PLAIN, WritingOptions

_DTYPES = ("uint8", "uint16", "uint32", "int16", "int32", "float16", "float32", "float64")
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


_Layout: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], np.dtype[Any], bool]
"""What the header says: axes that count pages, those of a page, dtype, and order of the values."""


class NpyCodec:
    """The format of ``numpy.save``, without Python objects."""

    name = "npy"

    def read(
        self, source: Source, stream: BinaryIO, max_pixels: int, parts: tuple[Part, ...] = ()
    ) -> Pages:
        """Check the header; pages are read from the file one by one."""
        leading, page_shape, dtype, fortran = _read_layout(source, stream)
        source.check_pixels(page_shape[1], page_shape[0], max_pixels)
        start, shape = stream.tell(), (*leading, *page_shape)
        if stream.seek(0, os.SEEK_END) < start + math.prod(shape) * dtype.itemsize:
            raise source.damaged("npy", "it is too short")
        byte_order: ByteOrder = ">" if dtype.str[0] == ">" else "<"
        metadata = Metadata(self.name, byte_order=byte_order, parts=parts)
        order: Literal["F", "C"] = "F" if fortran else "C"

        def decode(index: int) -> ImageFile:
            with trying(f"read {source.name!r}"):
                data = source.data if source.path is None else np.memmap(source.path, mode="r")
            array: Array = np.ndarray(shape, dtype, data, start, order=order)
            page = array[np.unravel_index(index, leading)] if leading else array
            native = np.array(page, dtype.newbyteorder("="), order="C")
            bands = native.reshape(*page_shape[:2], -1)
            return ImageFile.of_bands(bands, metadata=metadata, leading=leading)

        return Pages(math.prod(leading), decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file with one array, in the byte order it had."""
        stream = io.BytesIO()
        np.lib.format.write_array(stream, _in_file_order(pages))
        return stream.getvalue()


class NpzCodec(NpyCodec):
    """The format of ``numpy.savez``, of one array that keeps its name."""

    name = "npz"

    def read(
        self, source: Source, stream: BinaryIO, max_pixels: int, parts: tuple[Part, ...] = ()
    ) -> Pages:
        """Unpack the only array, whose pixels all count as those of one image."""
        import zipfile  # only where it is needed: it takes milliseconds

        with source.reading("npz"), zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
            if len(names) != 1:
                raise InputError(
                    f"{source.name!r} holds {len(names)} arrays ({', '.join(names[:10])}), but "
                    "must hold one; write the others to a file of their own."
                )
            with archive.open(names[0]) as member:
                leading, page, *_ = _read_layout(source, member)
            source.check_pixels(page[1], page[0] * math.prod(leading), max_pixels)
            unpacked = Source(source.name, data=archive.read(names[0]))
        name = Part("", names[0].removesuffix(".npy").encode())
        return super().read(unpacked, io.BytesIO(unpacked.data), max_pixels, (name,))

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of an archive."""
        stream = io.BytesIO()
        metadata = pages[0].metadata
        name = "arr_0"
        if metadata is not None and metadata.origin == "npz":
            name = metadata.parts[0].data.decode()
        arrays: dict[str, Any] = {name: _in_file_order(pages)}
        np.savez_compressed(stream, **arrays)
        return stream.getvalue()


def _in_file_order(pages: Sequence[ImageFile]) -> Array:
    """Return the pages as one array, in the byte order of the file they are from."""
    array, metadata = joined(pages), pages[0].metadata
    if metadata is None or metadata.origin not in ("npy", "npz"):
        return array
    return array.astype(array.dtype.newbyteorder(metadata.byte_order))


def _read_layout(source: Source, stream: Any) -> _Layout:
    with source.reading("npy"):
        shape, fortran, dtype = _HEADERS[np.lib.format.read_magic(stream)](stream)
        if any(side < 0 for side in shape):
            raise ValueError(f"its header says the shape {shape}")
    if dtype.name not in _DTYPES:
        raise InputError(
            f"{source.name!r} holds {dtype} values, but must hold one of {', '.join(_DTYPES)}."
        )
    axes = 3 if len(shape) >= 3 and 1 < shape[-1] <= 4 else 2
    if len(shape) < axes or 0 in shape:
        raise InputError(
            f"{source.name!r} holds an array of shape {shape}, but must hold (H, W), (H, W, 3), "
            "these with one channel of alpha, or a stack of them along axes before."
        )
    return shape[:-axes], shape[-axes:], dtype, fortran
