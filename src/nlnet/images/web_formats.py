"""Formats that browsers show beside PNG and JPEG: WebP, AVIF and GIF, through libvips."""

import dataclasses
import functools
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyvips

from nlnet.arrays import Array
from nlnet.errors import FileError
from nlnet.images import exif, libvips
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.libvips import VipsCodec, VipsImage, get_field, to_vips, vips_reason
from nlnet.images.metadata import Metadata
from nlnet.images.writing import PLAIN, WritingOptions

_ICC, _ALPHA, _EXIF, _XMP = 0x20, 0x10, 0x08, 0x04
_EXTENDED = b"VP8X"
_PIXELS = (b"ALPH", b"VP8 ", b"VP8L")
"""Parts of a WebP file: flags of its header, and names of chunks."""

_MOST_BITS = 12
_FIELDS = {"icc": "icc-profile-data", "xmp": "xmp-data", "exif": "exif-data"}
_SEQUENCE = b"avis"
_LONGEST_BRANDS = 200
"""Of AVIF: the most bits it has, libvips' names of metadata, and how a film is marked."""

_RUN = 16
"""Frames that are decoded at a time: each is drawn over those before it."""

_DELAY = 100
"""Milliseconds that a frame is shown, if nothing says how long."""


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
        joined = to_vips(image.bands, image.channels).copy()
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
        found: bytes = get_field(self.load(Source(self.name, data=encoded)), "exif-data", b"")
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


class GifCodec(VipsCodec):
    """GIF; an image whose colors are all grays is a gray one."""

    def load(self, source: Source, **options: Any) -> VipsImage:
        """Read the header; its bits are those of the palette's numbers, not of the colors."""
        header = super().load(source, **options).copy()
        header.remove("bits-per-sample")
        return header

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the kind of image, and return its frames."""
        header = self.load(source)
        self.check(source, header, max_pixels)
        count = get_field(header, "n-pages", 1)
        delays = tuple(get_field(header, "delay", [_DELAY] * count))
        shown = delays, get_field(header, "loop", 0)
        metadata = Metadata(self.name, animation=shown if count > 1 else None)

        @functools.lru_cache(maxsize=1)
        def run(number: int) -> Array:
            frames = min(_RUN, count - number * _RUN)
            bands = self.bands(source, self.load(source, page=number * _RUN, n=frames))
            return bands.reshape(frames, -1, *bands.shape[1:])

        # All frames have what one of them needs.
        color = opacity = False
        for bands in map(run, range(-(-count // _RUN))):
            color |= bands.shape[-1] > 2 and bool((bands[..., :3] != bands[..., :1]).any())
            opacity |= bands.shape[-1] in (2, 4) and bool((bands[..., -1] < 255).any())
        notes = ("its palette of colors becomes RGB",) * color

        def decode(index: int) -> ImageFile:
            bands = run(index // _RUN)[index % _RUN]
            image = ImageFile.of_bands(bands, metadata=metadata, notes=notes)
            pixels = image.pixels if color or image.channels == 1 else image.pixels[..., 0]
            alpha = image.alpha if opacity else None
            return dataclasses.replace(image, pixels=pixels.copy(), alpha=alpha)

        return Pages(count, decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file; several pages are an animation."""
        # libvips takes frames below each other.
        frames = to_vips(np.concatenate([page.bands for page in pages]), pages[0].channels).copy()
        if len(pages) > 1:
            first = pages[0].metadata
            delays, loop = (first and first.animation) or ((), 0)
            if len(delays) != len(pages):
                delays = (_DELAY,) * len(pages)
            frames.set_type(pyvips.GValue.gint_type, "page-height", pages[0].pixels.shape[0])
            frames.set_type(pyvips.GValue.array_int_type, "delay", list(delays))
            frames.set_type(pyvips.GValue.gint_type, "loop", loop)
        return self.save(frames, keep="none")
