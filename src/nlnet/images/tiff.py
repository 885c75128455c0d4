"""TIFF files: several depths, and stacks of pages, each with its own entries, tiles and pyramid."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from nlnet.errors import FileError, InputError
from nlnet.images import exif, photoshop, tiff_planes, xmp
from nlnet.images import tiff_tags as tag
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.exif import resolution_of
from nlnet.images.ifd import Entry, Layout, Tags, page_offsets, read_directory, read_layout
from nlnet.images.libvips import VipsCodec, VipsImage, to_vips
from nlnet.images.metadata import THUMBNAIL_NOTE, Metadata, Tiling
from nlnet.images.tiff_writing import encode_pages
from nlnet.images.writing import PLAIN, WritingOptions

_UNSIGNED, _SIGNED, _FLOAT = 1, 2, 3
_PALETTE = 3
_PHOTOMETRICS = {0: "gray", 1: "gray", 2: "RGB", _PALETTE: "palette", 6: "YCbCr"}
_PLAIN_PHOTOMETRICS = (1, 2)
_OTHER_PHOTOMETRICS = {4: "mask", 5: "CMYK", 8: "CIELAB", 9: "CIELAB", 10: "CIELAB"}
_DEPTHS = {_UNSIGNED: (1, 2, 4, 8, 16, 32), _SIGNED: (16, 32), _FLOAT: (16, 32, 64)}
_READ_BY_LIBVIPS = {1, 2, 3, 4, 5, 7, 8, 32771, 32773, 32946}
_COMPRESSIONS = {
    6: "old-style JPEG",
    **dict.fromkeys((33003, 33005, 34712), "JPEG 2000"),
    34661: "JBIG",
    **dict.fromkeys((34676, 34677), "SGI LogLuv"),
    34887: "LERC",
    34892: "lossy JPEG",
    50001: "WebP",
    **dict.fromkeys((50002, 52546), "JPEG XL"),
}
_MOST_PAGES = 1_000_000
_MOST_LEVELS = 32
_LARGEST_TILE = 4096
_ERRORS = (ValueError, struct.error)


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What a page says of its samples."""

    width: int
    height: int
    bits: int
    sample_format: int
    photometric: int
    samples: int
    compression: int = dataclasses.field(compare=False)
    extra: tuple[int, ...] = dataclasses.field(compare=False)
    predictor: int = dataclasses.field(compare=False)
    reduced: bool = dataclasses.field(compare=False)
    apart: bool = dataclasses.field(compare=False)

    @classmethod
    def of(cls, tags: Tags) -> _Kind:
        planar = tags.number(tag.PLANAR, 1) == 2
        return cls(
            width=tags.number(tag.WIDTH, 0),
            height=tags.number(tag.HEIGHT, 0),
            bits=tags.number(tag.BITS, 1),
            sample_format=tags.number(tag.SAMPLE_FORMAT, _UNSIGNED),
            photometric=tags.number(tag.PHOTOMETRIC, 1),
            samples=tags.number(tag.SAMPLES, 1),
            compression=tags.number(tag.COMPRESSION, 1),
            extra=tags.numbers(tag.EXTRA),
            predictor=tags.number(tag.PREDICTOR, 1),
            reduced=bool(tags.number(tag.SUBFILE, 0) & tag.REDUCED),
            apart=planar and tag.TILE_WIDTH in tags,
        )

    @property
    def doubles(self) -> bool:
        return (self.sample_format, self.bits) == (_FLOAT, 64)

    @property
    def rearranged(self) -> bool:
        """Whether libvips reads samples of it only one by one."""
        return self.doubles or self.apart

    @property
    def repacked(self) -> bool:
        return self.rearranged or self.compression in tiff_planes.DECOMPRESSORS


class TiffCodec(VipsCodec):
    """TIFF and BigTIFF."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Sequence[ImageFile]:
        """Check the kind of image, and return its pages, which are decoded one by one."""
        try:
            layout, offset = read_layout(stream)
            offsets = page_offsets(stream, layout, offset, _MOST_PAGES)
            kinds = [
                _Kind.of(Tags(layout, read_directory(stream, layout, place, _KIND_TAGS)))
                for place in offsets
            ]
        except _ERRORS as error:
            raise source.damaged(self.name) from error
        if not kinds:
            raise source.damaged(self.name, "it has no pages")
        numbers = [n for n, each in enumerate(kinds) if not each.reduced] or [0]
        kind = kinds[numbers[0]]
        _check_kind(source, kind)
        source.check_pixels(kind.width, kind.height, max_pixels)
        if any(kinds[number] != kind for number in numbers):
            raise InputError(
                f"{source.name!r} has pages of different sizes or kinds, but all must be alike."
            )
        if not kind.repacked:
            self.check(source, self.load(source, page=numbers[0]), max_pixels)

        def metadata_of(stream: BinaryIO, index: int) -> tuple[Metadata | None, tuple[str, ...]]:
            start, end = numbers[index], [*numbers[1:], len(kinds)][index]
            widths = [kinds[level].width for level in range(start + 1, end)]
            return _read_metadata(stream, layout, offsets[start], kind.width, widths)

        first = metadata_of(stream, 0)

        def decode(index: int) -> ImageFile:
            header = self._load_page(source, layout, offsets, numbers[index], kind)
            self.check(source, header, max_pixels)
            page = self.decode(source, header)
            if kind.sample_format == _FLOAT and kind.bits == 16:
                page = _as_half(page)
            metadata, notes = first
            if index:
                with source.open() as stream:
                    metadata, notes = metadata_of(stream, index)
            notes = page.notes + _notes(kind) + notes
            leading = (len(numbers),) if len(numbers) > 1 else ()
            return dataclasses.replace(page, metadata=metadata, notes=notes, leading=leading)

        return Pages(len(numbers), decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file."""
        return encode_pages(pages, options)

    def _load_page(
        self, source: Source, layout: Layout, offsets: Sequence[int], number: int, kind: _Kind
    ) -> VipsImage:
        if not kind.repacked:
            return self.load(source, page=number)
        try:
            with source.open() as stream:
                files = list(tiff_planes.repack(stream, layout, offsets[number]))
        except _ERRORS as error:
            raise source.damaged(self.name, error) from error
        planes = [self.load(Source(source.name, data=data)) for data in files]
        if not kind.rearranged:
            return planes[0]
        bands = [self.bands(source, plane) for plane in planes]
        if kind.doubles:
            bands = [band.view(np.dtype(np.float64).newbyteorder(layout.order)) for band in bands]
        values = np.concatenate(bands, axis=2)
        native = values.astype(values.dtype.newbyteorder("="), copy=False)
        return to_vips(native, 3 if kind.photometric == 2 else 1)


_KIND_TAGS = frozenset(
    {tag.WIDTH, tag.HEIGHT, tag.BITS, tag.COMPRESSION, tag.PHOTOMETRIC, tag.SAMPLES, tag.EXTRA}
    | {tag.SAMPLE_FORMAT, tag.PREDICTOR, tag.PLANAR, tag.TILE_WIDTH, tag.SUBFILE}
)


def _check_kind(source: Source, kind: _Kind) -> None:
    readable = _PLAIN_PHOTOMETRICS if kind.rearranged else _PHOTOMETRICS
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
    if kind.rearranged and (kind.samples not in (1, 2, 3, 4) or tag.PREMULTIPLIED in kind.extra):
        raise InputError(
            f"{source.name!r} has {kind.samples} channels, but must be gray or RGB, with or "
            "without one channel of plain transparency."
        )
    if min(kind.width, kind.height) < 1:
        raise source.damaged("TIFF", "its size is wrong")
    _check_compression(source, kind)


def _check_compression(source: Source, kind: _Kind) -> None:
    if kind.doubles and kind.predictor != 1:
        raise FileError(
            f"Cannot read {source.name!r}: it is a TIFF file of doubles that are compressed with a "
            "predictor, which is not supported; write it without one."
        )
    if kind.compression in tiff_planes.ZSTD:
        tiff_planes.zstd(f"Cannot read {source.name!r}: ")
    if kind.compression not in _READ_BY_LIBVIPS | tiff_planes.DECOMPRESSORS.keys():
        name = _COMPRESSIONS.get(kind.compression, f"method {kind.compression}")
        raise FileError(
            f"Cannot read {source.name!r}: it is a TIFF file compressed with {name}, which is not "
            "supported; write it with deflate, LZW or no compression."
        )


def _as_half(page: ImageFile) -> ImageFile:
    """Return half-precision values as they were: libvips reads them as float32."""
    alpha = None if page.alpha is None else page.alpha.astype(np.float16)
    return dataclasses.replace(page, pixels=page.pixels.astype(np.float16), alpha=alpha)


def _read_metadata(
    stream: BinaryIO, layout: Layout, offset: int, width: int, chained: Sequence[int]
) -> tuple[Metadata | None, tuple[str, ...]]:
    """Return what a page says besides the pixels, and name what of it is left out.

    `chained` are the widths of the smaller versions behind it.
    """
    damaged: list[int] = []
    try:
        entries = read_directory(
            stream, layout, offset, without=tag.STORAGE - tag.TILE, damaged=damaged
        )
    except _ERRORS:
        return None, ("its damaged metadata is left out",)
    levels = _sub_levels(stream, Tags(layout, entries))
    tiling = _tiling(Tags(layout, entries), width, chained or levels or (), bool(chained))
    if levels is not None:
        del entries[tag.SUB_IMAGES]
    notes = []
    dropped = (entries.keys() | set(damaged)) & tag.NOT_KEPT.keys()
    lost = [tag.NOT_KEPT[each] for each in sorted(dropped)]
    lost += [f"TIFF tag {each}" for each in sorted(set(damaged) - dropped)]
    if lost:
        notes.append(f"left out, as they do not fit the new file: {', '.join(dict.fromkeys(lost))}")
    left_out = tag.NOT_KEPT.keys() | tag.TILE
    kept = {each: entry for each, entry in entries.items() if each not in left_out}
    cleaners = {tag.RESOURCES: photoshop.without_thumbnails, tag.XMP: xmp.without_thumbnails}
    for each in cleaners.keys() & kept.keys():
        data, had_thumbnail = cleaners[each](kept[each].data)
        kept[each] = Entry(kept[each].kind, data)
        if had_thumbnail and THUMBNAIL_NOTE not in notes:
            notes.append(THUMBNAIL_NOTE)
    tags = Tags(layout, kept)
    metadata = Metadata(
        "TIFF",
        exif=exif.cut_from(tags),
        icc=tags.data(tag.ICC),
        xmp=tags.data(tag.XMP),
        iptc=tags.data(tag.IPTC),
        resources=tags.data(tag.RESOURCES),
        resolution=resolution_of(tags),
        tags=tags,
        tiling=tiling,
    )
    return metadata, tuple(notes)


def _sub_levels(stream: BinaryIO, tags: Tags) -> list[int] | None:
    """Return the widths of a page's sub-images, None unless all are smaller versions of it."""
    widths = []
    for place in tags.numbers(tag.SUB_IMAGES)[:_MOST_LEVELS]:
        try:
            found = read_directory(stream, tags.layout, place, {tag.WIDTH, tag.SUBFILE})
        except _ERRORS:
            return None
        level = Tags(tags.layout, found)
        if not level.number(tag.SUBFILE, 0) & tag.REDUCED:
            return None
        widths.append(level.number(tag.WIDTH, 0))
    return widths or None


def _tiling(tags: Tags, width: int, levels: Sequence[int], chained: bool) -> Tiling:
    """Return the tiles of a page, and how many times smaller its levels are."""
    tile = tags.number(tag.TILE_HEIGHT, 0), tags.number(tag.TILE_WIDTH, 0)
    usual = all(0 < side <= _LARGEST_TILE and side % 16 == 0 for side in tile)
    factors = [round(width / level) for level in levels if 0 < level < width]
    return Tiling(tile if usual else None, tuple(f for f in factors if f > 1), chained)


def _notes(kind: _Kind) -> tuple[str, ...]:
    notes = []
    if kind.photometric == _PALETTE:
        notes.append("its palette of colors becomes RGB")
    if tag.PREMULTIPLIED in kind.extra:
        notes.append("its premultiplied alpha becomes plain alpha")
    return tuple(notes)
