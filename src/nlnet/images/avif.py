"""AVIF files, through libvips, which turns the pixels upright."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pyvips

from nlnet.errors import FileError
from nlnet.images import exif
from nlnet.images.content import ImageFile, Source
from nlnet.images.libvips import VipsCodec, VipsImage, animation_error, assemble, reason_of
from nlnet.images.metadata import Metadata, fits
from nlnet.images.writing import WritingOptions

_MOST_BITS = 12
_SEQUENCE = b"avis"
_LONGEST_BRANDS = 200


class AvifCodec(VipsCodec):
    """AVIF of 8 to 12 bits, written without loss; more bits are rounded."""

    def read(self, source: Source, max_pixels: int) -> Sequence[ImageFile]:
        """Check the kind of image, and return its only page."""
        with source.open() as stream:
            size = int.from_bytes(stream.read(4), "big")
            brands = stream.read(min(size, _LONGEST_BRANDS))
        if _SEQUENCE in brands:  # of which libvips would read the first frame
            raise animation_error(source)
        return super().read(source, max_pixels)

    def read_metadata(self, source: Source, header: VipsImage) -> tuple[Metadata, tuple[str, ...]]:
        """Return what libvips found; EXIF's orientation is done already."""
        metadata, notes = super().read_metadata(source, header)
        if metadata.exif is not None:
            metadata = dataclasses.replace(metadata, exif=exif.set_upright(metadata.exif))
        return metadata, notes

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions) -> bytes:
        """Return the bytes of a file."""
        image = pages[0]
        metadata: Metadata | None = image.metadata
        joined = assemble(image)
        if metadata is not None:
            fields = {"icc-profile-data": metadata.icc, "xmp-data": metadata.xmp}
            if metadata.exif is not None:
                fields["exif-data"] = exif.PREFIX + metadata.exif
            # There are no gray images, so a profile for them has no place either.
            if metadata.icc is not None and not fits(metadata.icc, 3):
                del fields["icc-profile-data"]
            joined = joined.copy()
            for name, data in fields.items():
                if data is not None:
                    joined.set_type(pyvips.GValue.blob_type, name, data)
            joined.set_type(pyvips.GValue.gint_type, "orientation", metadata.orientation)
        bits = 8 if image.pixels.dtype.name == "uint8" else _MOST_BITS
        return self.save(joined, bitdepth=bits)

    def unreadable(self, source: Source, error: pyvips.Error) -> FileError:
        """Tell damage from HEVC, the compression of HEIC, which the wheel of libvips lacks."""
        if "codec" in reason_of(error).lower() or "unsupported" in reason_of(error).lower():
            return FileError(
                f"Cannot read {source.name!r}: it is compressed in a way that is not supported "
                f"({reason_of(error)}); convert it to PNG, TIFF or JPEG."
            )
        return super().unreadable(source, error)
