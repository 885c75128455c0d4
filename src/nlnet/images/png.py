"""PNG files, of which libvips would show the first frame of an animation and drop the others."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

from nlnet.errors import InputError
from nlnet.images.content import ImageFile, Source
from nlnet.images.libvips import VipsCodec

_SIGNATURE_SIZE = 8
_CHECKSUM_SIZE = 4


class PngCodec(VipsCodec):
    """PNG without animations."""

    def read(self, source: Source, max_pixels: int) -> Sequence[ImageFile]:
        """Check the kind of image, and return its only page."""
        if _is_animation(source):
            raise InputError(f"{source.name!r} is an animation, but must be a single image.")
        return super().read(source, max_pixels)


def _is_animation(source: Source) -> bool:
    """Look for the chunk that makes an animation; it stands before the pixels."""
    with source.open() as stream:
        stream.seek(_SIGNATURE_SIZE)
        while len(head := stream.read(8)) == 8:
            size, kind = struct.unpack(">I4s", head)
            if kind in (b"acTL", b"IDAT"):
                return bool(kind == b"acTL")
            stream.seek(size + _CHECKSUM_SIZE, os.SEEK_CUR)
    return False
