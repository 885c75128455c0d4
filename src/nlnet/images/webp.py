"""WebP files: chunks of color profile, EXIF and XMP around the pixels."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

from nlnet.images.content import ImageFile
from nlnet.images.libvips import VipsCodec
from nlnet.images.metadata import Metadata
from nlnet.images.writing import WritingOptions

_ICC, _ALPHA, _EXIF, _XMP = 0x20, 0x10, 0x08, 0x04
_EXTENDED = b"VP8X"
_PIXELS = (b"ALPH", b"VP8 ", b"VP8L")


class WebpCodec(VipsCodec):
    """WebP without animations."""

    def options(self, options: WritingOptions) -> Mapping[str, Any]:
        """Return the quality; without one nothing is lost."""
        if options.webp_quality is None:
            # Its lossy kind halves the resolution of color; exact: color under alpha 0 stays.
            return {"lossless": True, "exact": True}
        return {"Q": options.webp_quality, "smart_subsample": True}

    def embed(self, encoded: bytes, image: ImageFile, metadata: Metadata) -> bytes:
        """Put color profile, EXIF and XMP around the pixels, which takes another header."""
        # There are no gray images, so a profile for them has no place either.
        icc = metadata.profile_for(3)
        flags = 0
        for flag, part in ((_ICC, icc), (_EXIF, metadata.exif), (_XMP, metadata.xmp)):
            flags |= flag if part is not None else 0
        if not flags:
            return encoded
        flags |= _ALPHA if image.alpha is not None else 0
        height, width = image.pixels.shape[:2]
        size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
        chunks = [
            (_EXTENDED, bytes([flags, 0, 0, 0]) + size),
            (b"ICCP", icc),
            *((kind, body) for kind, body in _split(encoded) if kind in _PIXELS),
            (b"EXIF", metadata.exif),
            (b"XMP ", metadata.xmp),
        ]
        body = b"WEBP" + b"".join(
            kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
            for kind, data in chunks
            if data is not None
        )
        return b"RIFF" + struct.pack("<I", len(body)) + body


def _split(encoded: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 12
    while place + 8 <= len(encoded):
        kind, size = struct.unpack_from("<4sI", encoded, place)
        yield kind, encoded[place + 8 : place + 8 + size]
        place += 8 + size + size % 2
