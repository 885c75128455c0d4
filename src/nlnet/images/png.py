"""PNG files: all chunks are kept, except those about how the pixels are stored."""

import dataclasses
import io
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from nlnet.images import photoshop
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.exif import Resolution
from nlnet.images.libvips import VipsCodec, VipsImage, animation_error
from nlnet.images.metadata import THUMBNAIL_NOTE, Metadata, Part

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHECKSUM_SIZE = 4
_MOST_BYTES = 2**24
"""Of one chunk: longer ones are no metadata."""

_PIXELS = {b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"hIST"}
_ANIMATION = b"acTL"
_KNOWN = {b"tIME", b"pHYs", b"oFFs", b"pCAL", b"sCAL", b"sTER", b"sPLT", b"tEXt", b"zTXt", b"iTXt"}
_COLOR = {b"gAMA", b"cHRM", b"cICP", b"sRGB", b"iCCP", b"mDCV", b"cLLI"}
_OF_PIXEL_FORMAT = {b"sBIT", b"bKGD"}
_SAFE_TO_COPY = 0x20
"""The bit of a name's last letter which says that other pixels do not make a chunk wrong."""
_TEXT = {b"tEXt": "text", b"zTXt": "text", b"iTXt": "text"}
_XMP = b"XML:com.adobe.xmp\0"
_RAW_IPTC = b"Raw profile type iptc\0"
"""How ImageMagick, Exiv2 and ExifTool keep IPTC, for which PNG has no chunk."""


class _Chunk(NamedTuple):
    kind: bytes
    body: bytes

    def encode(self) -> bytes:
        check = zlib.crc32(self.kind + self.body)
        return struct.pack(">I", len(self.body)) + self.kind + self.body + struct.pack(">I", check)


class PngCodec(VipsCodec):
    """PNG without animations."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the kind of image, and return its only page."""
        if any(chunk.kind == _ANIMATION for chunk in _chunks(stream)):
            raise animation_error(source)
        return super().read(source, stream, max_pixels)

    def read_metadata(self, stream: BinaryIO, header: VipsImage) -> Metadata:
        """Return the chunks that can be kept, and name the others."""
        chunks = list(_chunks(stream))
        kept = [chunk for chunk in chunks if _is_kept(chunk.kind)]
        metadata = dataclasses.replace(
            self.common_metadata(header),
            icc=_icc(kept),
            resources=_resources(kept),
            resolution=_resolution(kept),
            pixel_format=_pixel_format(stream),
        ).cleaned()
        if metadata.xmp is not None and THUMBNAIL_NOTE in metadata.notes:
            # The chunk still has the thumbnail; write one with the cleaned packet.
            packet = _xmp_chunk(metadata.xmp)
            kept = [packet if chunk.body.startswith(_XMP) else chunk for chunk in kept]
        parts = tuple(Part(_name(chunk), chunk.kind + chunk.body) for chunk in kept)
        metadata = dataclasses.replace(metadata, parts=parts)
        unknown = [chunk.kind.decode("latin-1") for chunk in chunks if not _is_kept(chunk.kind)]
        if not unknown:
            return metadata
        names = ", ".join(dict.fromkeys(unknown))
        return metadata.noting(f"left out, as made for the noisy pixels: PNG {names}")

    def embed(self, encoded: bytes, image: ImageFile, metadata: Metadata) -> bytes:
        """Put the chunks of metadata before the pixels."""
        stream = io.BytesIO(encoded)
        written = list(_chunks(stream, pixels=True))
        added = _chunks_of(metadata)
        if metadata.origin == self.name:
            added = [_Chunk(part.data[:4], part.data[4:]) for part in metadata.parts]
            if metadata.pixel_format != _pixel_format(stream):
                added = [chunk for chunk in added if chunk.kind not in _OF_PIXEL_FORMAT]
        if metadata.profile_for(image.channels) is None and metadata.icc is not None:
            added = [chunk for chunk in added if chunk.kind != b"iCCP"]
        if metadata.exif is not None:
            added.append(_Chunk(b"eXIf", metadata.exif))
        chunks = [written[0], *added, *written[1:]]
        return _SIGNATURE + b"".join(chunk.encode() for chunk in chunks)


def _chunks(stream: BinaryIO, *, pixels: bool = False) -> Iterator[_Chunk]:
    """Yield the undamaged chunks, either those of the pixels or all others but EXIF."""
    stream.seek(len(_SIGNATURE))
    while len(head := stream.read(8)) == 8:
        size, kind = struct.unpack(">I4s", head)
        wanted = (kind in _PIXELS) == pixels and kind != b"eXIf"
        if not wanted or (size > _MOST_BYTES and not pixels):
            stream.seek(size + _CHECKSUM_SIZE, os.SEEK_CUR)
            continue
        body, check = stream.read(size), stream.read(_CHECKSUM_SIZE)
        if check == struct.pack(">I", zlib.crc32(kind + body)):
            yield _Chunk(kind, body)


def _pixel_format(stream: BinaryIO) -> bytes:
    """Return the header's bytes of bit depth and color type."""
    stream.seek(24)
    return stream.read(2)


def _is_kept(kind: bytes) -> bool:
    return kind in _KNOWN | _COLOR | _OF_PIXEL_FORMAT or bool(kind[3] & _SAFE_TO_COPY)


def _name(chunk: _Chunk) -> str:
    """Return the name of a chunk for messages; empty if other formats hold its content as well."""
    if chunk.kind in _TEXT and chunk.body.startswith((_XMP, _RAW_IPTC)):
        return ""
    return _TEXT.get(chunk.kind, chunk.kind.decode("latin-1"))


def _first(chunks: Sequence[_Chunk], *kinds: bytes, start: bytes = b"") -> _Chunk | None:
    """Return the first chunk of one of these kinds whose body begins so."""
    found = (each for each in chunks if each.kind in kinds and each.body.startswith(start))
    return next(found, None)


def _unpacked(data: bytes) -> bytes:
    """Return what is compressed behind a byte that says so; raise zlib.error if it is damaged."""
    return zlib.decompressobj().decompress(data[1:], _MOST_BYTES)


def _resources(chunks: Sequence[_Chunk]) -> bytes | None:
    """Return Photoshop's resources, if the file has IPTC in the way other programs write it."""
    chunk = _first(chunks, b"tEXt", b"zTXt", start=_RAW_IPTC)
    if chunk is None:
        return None
    text = chunk.body[len(_RAW_IPTC) :]
    try:
        text = _unpacked(text) if chunk.kind == b"zTXt" else text
        data = bytes.fromhex(b"".join(text.split()[2:]).decode("ascii"))
    except (zlib.error, ValueError):
        return None
    return data if data.startswith(b"8BIM") else photoshop.with_iptc(data)


def _icc(chunks: Sequence[_Chunk]) -> bytes | None:
    """Return the color profile, also one that libpng finds fault with."""
    chunk = _first(chunks, b"iCCP")
    try:
        return None if chunk is None else _unpacked(chunk.body.partition(b"\0")[2])
    except zlib.error:
        return None


def _resolution(chunks: Sequence[_Chunk]) -> Resolution | None:
    chunk = _first(chunks, b"pHYs")
    if chunk is None or len(chunk.body) != 9:
        return None
    x, y, unit = struct.unpack(">IIB", chunk.body)
    return Resolution.of_metres(x, y) if unit == 1 else None


def _chunks_of(metadata: Metadata) -> list[_Chunk]:
    """Return the chunks that say what a file of another format said."""
    chunks = []
    if metadata.icc is not None:
        chunks.append(_Chunk(b"iCCP", b"ICC profile\0\0" + zlib.compress(metadata.icc)))
    resolution = metadata.resolution_for("PNG")
    if resolution is not None and max(resolution.per_metre):
        chunks.append(_Chunk(b"pHYs", struct.pack(">IIB", *resolution.per_metre, 1)))
    resources = metadata.all_resources()
    if resources is not None:
        text = f"\niptc\n{len(resources):8d}\n{resources.hex(chr(10), -36)}\n"
        chunks.append(_Chunk(b"zTXt", _RAW_IPTC + b"\0" + zlib.compress(text.encode())))
    if metadata.xmp is not None:
        chunks.append(_xmp_chunk(metadata.xmp))
    return chunks


def _xmp_chunk(packet: bytes) -> _Chunk:
    return _Chunk(b"iTXt", _XMP + bytes(4) + packet)
