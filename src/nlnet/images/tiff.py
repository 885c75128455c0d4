"""TIFF files: several depths, and stacks of pages, each with its own entries."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
import pyvips

from nlnet.errors import FileError, InputError
from nlnet.images import exif, photoshop, tiff_doubles, tiff_tags, xmp
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.exif import resolution_of
from nlnet.images.ifd import Entry, Layout, Tags, page_offsets, read_directory, read_layout
from nlnet.images.libvips import THUMBNAIL_NOTE, VipsCodec, get_field, vips_reason
from nlnet.images.metadata import Metadata
from nlnet.images.tiff_writing import encode_pages
from nlnet.images.writing import PLAIN, WritingOptions

_UNSIGNED, _SIGNED, _FLOAT = 1, 2, 3
_PALETTE = 3
_PHOTOMETRICS = {0: "gray", 1: "gray", 2: "RGB", _PALETTE: "palette", 6: "YCbCr"}
_PLAIN_PHOTOMETRICS = (1, 2)
_OTHER_PHOTOMETRICS = {4: "mask", 5: "CMYK", 8: "CIELAB", 9: "CIELAB", 10: "CIELAB"}
_DEPTHS = {_UNSIGNED: (1, 2, 4, 8, 16, 32), _SIGNED: (16, 32), _FLOAT: (16, 32, 64)}
_READABLE = {1, 2, 3, 4, 5, 7, 8, 32771, 32773, 32946, 50001}
_COMPRESSIONS = {
    6: "old-style JPEG",
    33003: "JPEG 2000",
    33005: "JPEG 2000",
    34661: "JBIG",
    34676: "SGI LogLuv",
    34677: "SGI LogLuv",
    34712: "JPEG 2000",
    34887: "LERC",
    34892: "lossy JPEG",
    34925: "LZMA",
    34926: "Zstandard",
    50000: "Zstandard",
    50002: "JPEG XL",
    52546: "JPEG XL",
}
_MOST_PAGES = 1_000_000


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What the first page says of its samples."""

    bits: int
    sample_format: int
    photometric: int
    samples: int
    extra: tuple[int, ...]

    @property
    def doubles(self) -> bool:
        return (self.sample_format, self.bits) == (_FLOAT, 64)


class TiffCodec(VipsCodec):
    """TIFF and BigTIFF."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Sequence[ImageFile]:
        """Check the kind of image, and return its pages, which are decoded one by one."""
        try:
            layout, offset = read_layout(stream)
            offsets = page_offsets(stream, layout, offset, _MOST_PAGES)
            kind = _kind(Tags(layout, read_directory(stream, layout, offset, _KIND_TAGS)))
        except (ValueError, struct.error) as error:
            raise source.damaged(self.name) from error
        _check_kind(source, kind)
        if kind.doubles:
            pages = tiff_doubles.read_pages(source, layout, offsets, max_pixels)
        else:
            pages = self._pages(source, max_pixels)
        first = _read_metadata(stream, layout, offset)

        def decode(index: int) -> ImageFile:
            page = pages[index]
            if kind.sample_format == _FLOAT and kind.bits == 16:
                page = _as_half(page)
            metadata, notes = first if index == 0 else (None, ())
            if 0 < index < len(offsets):
                with source.open() as stream:
                    metadata, notes = _read_metadata(stream, layout, offsets[index])
            return dataclasses.replace(
                page,
                metadata=metadata,
                notes=page.notes + _notes(kind) + notes,
                stacked=len(pages) > 1,
            )

        return Pages(len(pages), decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file."""
        return encode_pages(pages)

    def unreadable(self, source: Source, error: pyvips.Error) -> FileError:
        """Tell damage from a way of compressing that libvips does not know."""
        try:
            with source.open() as stream:
                layout, offset = read_layout(stream)
                tags = {tiff_tags.COMPRESSION}
                found = Tags(layout, read_directory(stream, layout, offset, tags))
                compression = found.number(tiff_tags.COMPRESSION, 1)
        except (ValueError, struct.error):
            compression = 1
        if compression in _READABLE:
            return source.damaged(self.name, vips_reason(error))
        name = _COMPRESSIONS.get(compression, f"method {compression}")
        return FileError(
            f"Cannot read {source.name!r}: it is a TIFF file compressed with {name}, which is not "
            "supported; write it with deflate, LZW or no compression."
        )

    def _pages(self, source: Source, max_pixels: int) -> Sequence[ImageFile]:
        first = self.load(source)
        self.check(source, first, max_pixels)
        count = get_field(first, "n-pages", 1)
        if count > 1:
            self._check_pages(source)

        def decode(index: int) -> ImageFile:
            header = self.load(source, page=index)
            self.check(source, header, max_pixels)
            return self.decode(source, header)

        return Pages(count, decode)

    def _check_pages(self, source: Source) -> None:
        try:
            self.load(source, n=-1)
        except FileError as error:
            cause = error.__cause__
            if isinstance(cause, pyvips.Error) and "differs" in vips_reason(cause):
                raise InputError(
                    f"{source.name!r} has pages of different sizes or kinds, but all must be alike."
                ) from error
            raise


_KIND_TAGS = frozenset(
    {tiff_tags.BITS, tiff_tags.PHOTOMETRIC, tiff_tags.SAMPLES, tiff_tags.EXTRA}
    | {tiff_tags.SAMPLE_FORMAT}
)


def _kind(tags: Tags) -> _Kind:
    return _Kind(
        bits=tags.number(tiff_tags.BITS, 1),
        sample_format=tags.number(tiff_tags.SAMPLE_FORMAT, _UNSIGNED),
        photometric=tags.number(tiff_tags.PHOTOMETRIC, 1),
        samples=tags.number(tiff_tags.SAMPLES, 1),
        extra=tags.numbers(tiff_tags.EXTRA),
    )


def _check_kind(source: Source, kind: _Kind) -> None:
    readable = _PLAIN_PHOTOMETRICS if kind.doubles else _PHOTOMETRICS
    if kind.photometric not in readable:
        names = {**_PHOTOMETRICS, **_OTHER_PHOTOMETRICS, 0: "white-is-zero"}
        name = names.get(kind.photometric, f"kind {kind.photometric}")
        raise InputError(f"{source.name!r} is a {name} image, but must be gray or RGB.")
    if kind.bits not in _DEPTHS.get(kind.sample_format, ()):
        formats = {_UNSIGNED: "unsigned", _SIGNED: "signed", _FLOAT: "floating"}
        name = formats.get(kind.sample_format, "other")
        raise InputError(
            f"{source.name!r} has {name} values of {kind.bits} bits, but must have unsigned ones "
            "of 8, 16 or 32, signed ones of 16 or 32, or floating ones of 16, 32 or 64 bits."
        )
    if _PHOTOMETRICS[kind.photometric] == "gray" and kind.samples > 1 and not any(kind.extra):
        raise InputError(
            f"{source.name!r} has {kind.samples} gray channels in one image, "
            "but must be gray or RGB; write each channel to a file or page of its own."
        )


def _as_half(page: ImageFile) -> ImageFile:
    """Return half-precision values as they were: libvips reads them as float32."""
    alpha = None if page.alpha is None else page.alpha.astype(np.float16)
    return dataclasses.replace(page, pixels=page.pixels.astype(np.float16), alpha=alpha)


def _read_metadata(
    stream: BinaryIO, layout: Layout, offset: int
) -> tuple[Metadata | None, tuple[str, ...]]:
    """Return what a page says besides the pixels, and name what of it is left out."""
    damaged: list[int] = []
    try:
        entries = read_directory(stream, layout, offset, without=tiff_tags.STORAGE, damaged=damaged)
    except (ValueError, struct.error):
        return None, ("its damaged metadata is left out",)
    notes = []
    dropped = (entries.keys() | set(damaged)) & tiff_tags.NOT_KEPT.keys()
    lost = [tiff_tags.NOT_KEPT[tag] for tag in sorted(dropped)]
    lost += [f"TIFF tag {tag}" for tag in sorted(set(damaged) - dropped)]
    if lost:
        notes.append(f"left out, as they do not fit the new file: {', '.join(dict.fromkeys(lost))}")
    kept = {tag: entry for tag, entry in entries.items() if tag not in tiff_tags.NOT_KEPT}
    cleaners = {
        tiff_tags.RESOURCES: photoshop.without_thumbnails,
        tiff_tags.XMP: xmp.without_thumbnails,
    }
    for tag in cleaners.keys() & kept.keys():
        data, had_thumbnail = cleaners[tag](kept[tag].data)
        kept[tag] = Entry(kept[tag].kind, data)
        if had_thumbnail and THUMBNAIL_NOTE not in notes:
            notes.append(THUMBNAIL_NOTE)
    tags = Tags(layout, kept)
    metadata = Metadata(
        "TIFF",
        exif=exif.cut_from(tags),
        icc=tags.data(tiff_tags.ICC),
        xmp=tags.data(tiff_tags.XMP),
        iptc=tags.data(tiff_tags.IPTC),
        resources=tags.data(tiff_tags.RESOURCES),
        resolution=resolution_of(tags),
        tags=tags,
    )
    return metadata, tuple(notes)


def _notes(kind: _Kind) -> tuple[str, ...]:
    notes = []
    if kind.photometric == _PALETTE:
        notes.append("its palette of colors becomes RGB")
    if tiff_tags.PREMULTIPLIED in kind.extra:
        notes.append("its premultiplied alpha becomes plain alpha")
    return tuple(notes)
