"""AVIF files, through libvips, which rotates the pixels upright."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, BinaryIO

import pyvips

from nlnet.errors import FileError
from nlnet.images import exif, libvips
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.libvips import VipsCodec, VipsImage, vips_reason
from nlnet.images.metadata import Metadata
from nlnet.images.writing import PLAIN, WritingOptions

_MOST_BITS = 12
_FIELDS = {"icc": "icc-profile-data", "xmp": "xmp-data", "exif": "exif-data"}
_SEQUENCE = b"avis"
_LONGEST_BRANDS = 200


class AvifCodec(VipsCodec):
    """AVIF of 8 to 12 bits, written without loss; more bits are rounded."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the kind of image, and return its only page."""
        size = int.from_bytes(stream.read(4), "big")
        brands = stream.read(min(size, _LONGEST_BRANDS))
        if _SEQUENCE in brands:  # libvips would read only the first frame
            raise libvips.animation_error(source)
        return super().read(source, stream, max_pixels)

    def read_metadata(self, stream: BinaryIO, header: VipsImage) -> Metadata:
        """Return what libvips found; EXIF's orientation is done already."""
        metadata = super().read_metadata(stream, header)
        upright = None if metadata.exif is None else exif.set_upright(metadata.exif)
        return dataclasses.replace(metadata, exif=upright)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file."""
        image = pages[0]
        metadata = image.metadata or Metadata(self.name)
        # There are no gray images, so a profile for them has no place either.
        fields = {"icc": metadata.profile_for(3), "xmp": metadata.xmp, "exif": metadata.exif}
        kept = {kind: data for kind, data in fields.items() if data is not None}
        joined = libvips.to_vips(image.bands, image.channels).copy()
        for kind, data in kept.items():
            prefix = exif.PREFIX if kind == "exif" else b""
            joined.set_type(pyvips.GValue.blob_type, _FIELDS[kind], prefix + data)
        joined.set_type(pyvips.GValue.gint_type, "orientation", metadata.orientation)
        bits = 8 if image.pixels.dtype.name == "uint8" else _MOST_BITS
        quality: dict[str, Any] = {"lossless": True}
        if options.avif_quality is not None:
            quality = {"Q": options.avif_quality, "subsample_mode": "off"}
        encoded = self.save(joined, bitdepth=bits, keep="|".join(kept) or "none", **quality)
        return encoded if metadata.exif is None else self._with_exif(encoded, metadata.exif)

    def _with_exif(self, encoded: bytes, given: bytes) -> bytes:
        """Replace the EXIF that libvips has rewritten by the original, if it fits there."""
        found: bytes = libvips.get_field(
            self.load(Source(self.name, data=encoded)), "exif-data", b""
        )
        written = found.removeprefix(exif.PREFIX)
        # The file itself says how to turn the pixels.
        wanted = exif.set_upright(given)
        if not written or encoded.count(written) != 1 or len(wanted) > len(written):
            return encoded
        return encoded.replace(written, wanted.ljust(len(written), b"\0"))

    def unreadable(self, source: Source, error: pyvips.Error) -> FileError:
        """Tell damage from HEVC, the compression of HEIC, which the wheel of libvips lacks."""
        reason = vips_reason(error)
        if "codec" in reason.lower() or "unsupported" in reason.lower():
            return FileError(
                f"Cannot read {source.name!r}: it is compressed in a way that is not supported "
                f"({reason}); convert it to PNG, TIFF or JPEG."
            )
        return super().unreadable(source, error)
