"""JPEG files: all segments are kept, except those about the pixels and thumbnails."""

from __future__ import annotations

import dataclasses
import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, BinaryIO

from nlnet.defaults import JPEG_QUALITY
from nlnet.images import photoshop
from nlnet.images.content import ImageFile
from nlnet.images.exif import PREFIX as EXIF
from nlnet.images.exif import Resolution
from nlnet.images.ifd import Tags, read_directory, read_layout
from nlnet.images.libvips import VipsCodec, VipsImage
from nlnet.images.metadata import (
    LARGEST_SEGMENT,
    THUMBNAIL_NOTE,
    Metadata,
    Part,
    fits,
    fits_segment,
)
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


@dataclasses.dataclass(frozen=True)
class _Segment:
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

    def read_metadata(
        self, stream: BinaryIO, header: VipsImage
    ) -> tuple[Metadata, tuple[str, ...]]:
        """Return what the segments say, and name those that are left out."""
        metadata, notes = super().read_metadata(stream, header)
        segments = list(_segments(stream))
        resources, small = _resources(segments)
        if (small or _has_jfif_thumbnail(segments)) and THUMBNAIL_NOTE not in notes:
            notes += (THUMBNAIL_NOTE,)
        notes += tuple(_further_images(segments))
        if metadata.xmp is not None and any(mark in metadata.xmp for mark in _MOTION):
            notes += ("its video (motion photo) is left out",)
        unknown = dict.fromkeys(filter(None, map(_unknown_name, segments)))
        if unknown:
            notes += (f"left out, as made for the noisy pixels: JPEG {', '.join(unknown)}",)
        parts = [Part("comment", _body(s)) for s in segments if s.marker == _COMMENT]
        parts += [Part("extended XMP", _body(s)) for s in segments if _begins(s, 1, _MORE_XMP)]
        return dataclasses.replace(
            metadata,
            resources=resources,
            iptc=None if resources is None else photoshop.iptc_of(resources),
            resolution=_resolution(segments),
            parts=tuple(parts),
            encoding=_encoding(segments),
        ), notes

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


def _unknown_name(segment: _Segment) -> str | None:
    """Return the name of a segment that is dropped, None for a segment that is kept."""
    if not _APP <= segment.marker < _APP + 16:
        return None
    known = (_JFIF, _JFXX, EXIF, _XMP, _MORE_XMP, _ICC, _MPF, _RESOURCES, *_ENCODER)
    if segment.body.startswith(known):
        return None
    name = f"APP{segment.marker - _APP}"
    return f"content credentials ({name})" if b"c2pa" in segment.body else name


def _resources(segments: Sequence[_Segment]) -> tuple[bytes | None, bool]:
    """Return Photoshop's resources, and whether small pictures were left out of them."""
    found = [s.body[len(_RESOURCES) :] for s in segments if _begins(s, 13, _RESOURCES)]
    if not found:
        return None, False
    return photoshop.without_thumbnails(b"".join(found))


def _has_jfif_thumbnail(segments: Sequence[_Segment]) -> bool:
    return any(
        _begins(segment, 0, _JFXX) or (_begins(segment, 0, _JFIF) and len(segment.body) > 14)
        for segment in segments
    )


def _further_images(segments: Sequence[_Segment]) -> Iterator[str]:
    """Say what follows the first image: the other view of a stereo camera, a gain map."""
    for segment in segments:
        if not _begins(segment, 2, _MPF):
            continue
        stream = io.BytesIO(segment.body[len(_MPF) :])
        try:
            layout, offset = read_layout(stream)
            count = Tags(layout, read_directory(stream, layout, offset, {_MPF_COUNT})).number(
                _MPF_COUNT, 2
            )
        except (ValueError, struct.error):
            count = 2
        if count > 1:
            which = "second image is" if count == 2 else f"{count - 1} further images are"
            yield f"its {which} left out (MPO: another view, a preview or a gain map)"
        return


def _resolution(segments: Sequence[_Segment]) -> Resolution | None:
    for segment in segments:
        if _begins(segment, 0, _JFIF) and len(segment.body) >= 12:
            unit, x, y = struct.unpack_from(">BHH", segment.body, 7)
            if unit in (_PER_INCH, _PER_CENTIMETRE) and x and y:
                scale = 1 if unit == _PER_INCH else _CENTIMETRES
                return Resolution(Fraction(x * scale), Fraction(y * scale))
    return None


def _jfif(metadata: Metadata) -> _Segment:
    """Return the first segment; where no resolution is known it says none."""
    resolution = metadata.resolution_for("JPEG")
    unit, x, y = 0, 1, 1
    if resolution is not None:
        inches = (round(resolution.x), round(resolution.y))
        metric = (resolution.x / _CENTIMETRES, resolution.y / _CENTIMETRES)
        exact = all(number.denominator == 1 for number in metric)
        whole = inches[0] == resolution.x and inches[1] == resolution.y
        unit = _PER_CENTIMETRE if exact and not whole else _PER_INCH
        x, y = (int(metric[0]), int(metric[1])) if unit == _PER_CENTIMETRE else inches
        if not (1 <= x < 65536 and 1 <= y < 65536):
            unit, x, y = 0, 1, 1
    return _Segment(_APP, _JFIF + struct.pack(">BBBHHBB", 1, 1, unit, x, y, 0, 0))


def _segments_of(metadata: Metadata, channels: int) -> list[_Segment]:
    segments = []
    if metadata.exif is not None and fits_segment(metadata.exif):
        segments.append(_Segment(_APP + 1, EXIF + metadata.exif))
    if metadata.xmp is not None and fits_segment(metadata.xmp):
        segments.append(_Segment(_APP + 1, _XMP + metadata.xmp))
    if metadata.icc is not None and fits(metadata.icc, channels):
        pieces = _pieces(metadata.icc, LARGEST_SEGMENT - len(_ICC) - 2)
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
