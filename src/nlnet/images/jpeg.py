"""JPEG files: all segments are kept, except those about the pixels and thumbnails."""

import dataclasses
import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, BinaryIO, NamedTuple

from nlnet.defaults import JPEG_QUALITY
from nlnet.images.content import ImageFile
from nlnet.images.exif import PREFIX as EXIF
from nlnet.images.exif import Resolution, read_tags
from nlnet.images.libvips import VipsCodec, VipsImage
from nlnet.images.metadata import LARGEST_SEGMENT, THUMBNAIL_NOTE, Metadata, Part, fits_segment
from nlnet.images.writing import WritingOptions

_START = b"\xff\xd8"
_APP, _COMMENT, _SCAN, _TABLES = 0xE0, 0xFE, 0xDA, 0xDB
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
_STEPS_AT_50 = 3688
"""Sum of the quantisation steps of luma at quality 50, in the tables that encoders scale."""
_WITHOUT_BODY = {0x01, *range(0xD0, 0xD9)}
_JFIF, _JFXX = b"JFIF\0", b"JFXX\0"
_XMP, _MORE_XMP = b"http://ns.adobe.com/xap/1.0/\0", b"http://ns.adobe.com/xmp/extension/\0"
_ICC, _MPF = b"ICC_PROFILE\0", b"MPF\0"
_RESOURCES = b"Photoshop 3.0\0"
_ENCODER = (b"Adobe", b"Ducky")
"""Segments of the encoder that made the file: they describe its pixels, which are now others."""
_MPF_COUNT = 0xB001
_MOTION = (b"MotionPhoto", b"MicroVideo")
_PER_INCH, _PER_CENTIMETRE = 1, 2
_CENTIMETRES = Fraction(254, 100)


class _Segment(NamedTuple):
    marker: int
    body: bytes

    def encode(self) -> bytes:
        return bytes([0xFF, self.marker]) + struct.pack(">H", len(self.body) + 2) + self.body


class JpegCodec(VipsCodec):
    """JPEG."""

    def options(self, options: WritingOptions) -> Mapping[str, Any]:
        """Return the quality, and the size of chroma."""
        modes = {None: "auto", True: "on", False: "off"}
        quality = options.jpeg_quality or JPEG_QUALITY
        return {"Q": quality, "subsample_mode": modes[options.halved_chroma]}

    def read_metadata(self, stream: BinaryIO, header: VipsImage) -> Metadata:
        """Return what the segments say, and name those that are left out."""
        segments = list(_segments(stream))
        resources = [s.body[len(_RESOURCES) :] for s in segments if _begins(s, 13, _RESOURCES)]
        parts = [Part("comment", _body(s)) for s in segments if s.marker == _COMMENT]
        parts += [Part("extended XMP", _body(s)) for s in segments if _begins(s, 1, _MORE_XMP)]
        return dataclasses.replace(
            self.common_metadata(header),
            resources=b"".join(resources) if resources else None,
            resolution=_resolution(segments),
            parts=tuple(parts),
            encoding=_encoding(segments),
            notes=tuple(_notes(segments)),
        ).cleaned()

    def embed(self, encoded: bytes, image: ImageFile, metadata: Metadata) -> bytes:
        """Put the segments of metadata before those of the pixels."""
        stream = io.BytesIO(encoded)
        written = [s for s in _segments(stream) if not _begins(s, 0, _JFIF)]
        end = stream.tell()
        added = [_jfif(metadata), *_segments_of(metadata, image.channels)]
        if metadata.origin == self.name:
            added += [_Segment(part.data[0], part.data[1:]) for part in metadata.parts]
        return b"".join([_START, *(s.encode() for s in [*added, *written]), encoded[end:]])


def _segments(stream: BinaryIO) -> Iterator[_Segment]:
    """Yield the segments before the first scan, at which the stream stays; damage ends it."""
    stream.seek(len(_START))
    while True:
        place = stream.tell()
        head = stream.read(2)
        if len(head) < 2 or head[0] != 0xFF or head[1] == _SCAN:
            stream.seek(place)
            return
        if head[1] == 0xFF:  # bytes to fill up
            stream.seek(place + 1)
            continue
        if head[1] in _WITHOUT_BODY:
            continue
        size = stream.read(2)
        length = struct.unpack(">H", size)[0] - 2 if len(size) == 2 else -1
        body = stream.read(max(length, 0))
        if length < 0 or len(body) < length:
            stream.seek(place)
            return
        yield _Segment(head[1], body)


def _body(segment: _Segment) -> bytes:
    return bytes([segment.marker]) + segment.body


def _begins(segment: _Segment, number: int, start: bytes | tuple[bytes, ...]) -> bool:
    return segment.marker == _APP + number and segment.body.startswith(start)


def _encoding(segments: Sequence[_Segment]) -> tuple[int, bool] | None:
    """Return the quality, as encoders count it, and whether chroma is halved."""
    tables = [s.body for s in segments if s.marker == _TABLES]
    frames = [s.body for s in segments if s.marker in _FRAMES]
    if not tables or not frames or len(tables[0]) < 65 or len(frames[0]) < 8:
        return None
    wide = tables[0][0] >> 4  # steps of two bytes each
    steps = struct.unpack_from(">64H" if wide else ">64B", tables[0].ljust(129, b"\0"), 1)
    scale = 100 * sum(steps) / _STEPS_AT_50
    quality = round(100 - scale / 2 if scale <= 100 else 5000 / scale)
    return min(max(quality, 1), 100), frames[0][7] != 0x11


def _notes(segments: Sequence[_Segment]) -> Iterator[str]:
    """Say what is left out."""
    if any(_begins(s, 0, _JFXX) or (_begins(s, 0, _JFIF) and len(s.body) > 14) for s in segments):
        yield THUMBNAIL_NOTE
    # What follows the first image: the other view of a stereo camera, a gain map.
    for body in [s.body for s in segments if _begins(s, 2, _MPF)][:1]:
        count = read_tags(body[len(_MPF) :]).number(_MPF_COUNT, 2)
        if count > 1:
            which = "second image is" if count == 2 else f"{count - 1} further images are"
            yield f"its {which} left out (MPO: another view, a preview or a gain map)"
    if any(_begins(s, 1, _XMP) and any(mark in s.body for mark in _MOTION) for s in segments):
        yield "its video (motion photo) is left out"
    known = (_JFIF, _JFXX, EXIF, _XMP, _MORE_XMP, _ICC, _MPF, _RESOURCES, *_ENCODER)
    unknown = [s for s in segments if _APP <= s.marker < _APP + 16 and not s.body.startswith(known)]
    names = [(f"APP{s.marker - _APP}", b"c2pa" in s.body) for s in unknown]
    if names:
        listed = dict.fromkeys(f"content credentials ({n})" if c2pa else n for n, c2pa in names)
        yield f"left out, as made for the noisy pixels: JPEG {', '.join(listed)}"


def _resolution(segments: Sequence[_Segment]) -> Resolution | None:
    for body in (s.body for s in segments if _begins(s, 0, _JFIF) and len(s.body) >= 12):
        unit, x, y = struct.unpack_from(">BHH", body, 7)
        scale = {_PER_INCH: Fraction(1), _PER_CENTIMETRE: _CENTIMETRES}.get(unit)
        if scale is not None and x and y:
            return Resolution(x * scale, y * scale)
    return None


def _jfif(metadata: Metadata) -> _Segment:
    """Return the first segment; where no resolution is known it says none."""
    resolution = metadata.resolution_for("JPEG")
    unit, x, y = 0, 1, 1
    if resolution is not None:
        given = resolution.x, resolution.y
        metric = [number / _CENTIMETRES for number in given]
        whole, exact = (all(n.denominator == 1 for n in numbers) for numbers in (given, metric))
        in_metres = exact and not whole
        width, height = map(round, metric if in_metres else given)
        if min(width, height) >= 1 and max(width, height) < 65536:
            unit, x, y = _PER_CENTIMETRE if in_metres else _PER_INCH, width, height
    return _Segment(_APP, _JFIF + struct.pack(">BBBHHBB", 1, 1, unit, x, y, 0, 0))


def _segments_of(metadata: Metadata, channels: int) -> list[_Segment]:
    segments = []
    for mark, data in ((EXIF, metadata.exif), (_XMP, metadata.xmp)):
        if data is not None and fits_segment(len(data)):
            segments.append(_Segment(_APP + 1, mark + data))
    profile = metadata.profile_for(channels)
    if profile is not None:
        pieces = _pieces(profile, LARGEST_SEGMENT - len(_ICC) - 2)
        segments += [
            _Segment(_APP + 2, _ICC + bytes([number, len(pieces)]) + piece)
            for number, piece in enumerate(pieces, 1)
        ]
    resources = metadata.all_resources()
    if resources is not None:
        pieces = _pieces(resources, LARGEST_SEGMENT - len(_RESOURCES))
        segments += [_Segment(_APP + 13, _RESOURCES + piece) for piece in pieces]
    return segments


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]
