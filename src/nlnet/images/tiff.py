"""TIFF files: several depths, and stacks of pages, each with its own entries, tiles and pyramid."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from nlnet.errors import FileError, InputError
from nlnet.images import exif, tiff_planes
from nlnet.images import tiff_tags as tag
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.ifd import Entry, Layout, Tags, page_offsets, read_directory, read_layout
from nlnet.images.libvips import VipsCodec, VipsImage, to_vips
from nlnet.images.metadata import Metadata, Tiling
from nlnet.images.tiff_writing import encode_pages
from nlnet.images.writing import PLAIN, WritingOptions

_FORMATS = {1: "unsigned", 2: "signed", 3: "floating"}
_DEPTHS = {1: (1, 2, 4, 8, 16, 32), 2: (16, 32), 3: (16, 32, 64)}
_HALF, _DOUBLE = (3, 16), (3, 64)
_GRAY = (tag.WHITE_IS_ZERO, tag.BLACK_IS_ZERO)
_PHOTOMETRICS = {0: "white-is-zero", tag.PALETTE: "palette", 4: "mask", 5: "CMYK", 6: "YCbCr"}
_PHOTOMETRICS |= dict.fromkeys((8, 9, 10), "CIELAB")
_READABLE = {1, 2, 3, 4, 5, 7, 8, 32771, 32773, 32946, *tiff_planes.UNPACKED}
_COMPRESSIONS = {6: "old-style JPEG", 34661: "JBIG", 34887: "LERC", 34892: "JPEG", 50001: "WebP"}
_COMPRESSIONS |= dict.fromkeys((33003, 33005, 34712), "JPEG 2000")
_COMPRESSIONS |= dict.fromkeys((50002, 52546), "JPEG XL")
_MOST_PAGES = 1_000_000
_MOST_LEVELS = 32
_LARGEST_TILE = 4096
_ERRORS = (ValueError, struct.error)
_KIND_TAGS = frozenset(
    {tag.WIDTH, tag.HEIGHT, tag.BITS, tag.COMPRESSION, tag.PHOTOMETRIC, tag.SAMPLES, tag.EXTRA}
    | {tag.SAMPLE_FORMAT, tag.PREDICTOR, tag.PLANAR, tag.TILE_WIDTH, tag.SUBFILE}
)


class _Kind:
    """What a page says of its samples."""

    def __init__(self, tags: Tags) -> None:
        self.width, self.height = tags.number(tag.WIDTH, 0), tags.number(tag.HEIGHT, 0)
        self.depth = tags.number(tag.SAMPLE_FORMAT, 1), tags.number(tag.BITS, 1)
        self.photometric = tags.number(tag.PHOTOMETRIC, 1)
        self.samples = tags.number(tag.SAMPLES, 1)
        self.compression = tags.number(tag.COMPRESSION, 1)
        self.predictor = tags.number(tag.PREDICTOR, 1)
        self.extra = tags.numbers(tag.EXTRA)
        self.reduced = bool(tags.number(tag.SUBFILE, 0) & tag.REDUCED)
        apart = tags.number(tag.PLANAR, 1) == 2 and tag.TILE_WIDTH in tags
        self.rearranged = apart or self.depth == _DOUBLE
        """Whether libvips reads samples of it only one by one."""
        self.repacked = self.rearranged or self.compression in tiff_planes.UNPACKED

    def is_like(self, other: _Kind) -> bool:
        """Tell whether two pages can be those of a stack."""
        names = ("width", "height", "depth", "photometric", "samples")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is converted."""
        palette = ("its palette of colors becomes RGB",) * (self.photometric == tag.PALETTE)
        plain = tag.PREMULTIPLIED not in self.extra
        return palette + (() if plain else ("its premultiplied alpha becomes plain alpha",))


class TiffCodec(VipsCodec):
    """TIFF and BigTIFF."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the kind of image, and return its pages, which are decoded one by one."""
        with source.reading(self.name):
            layout, offset = read_layout(stream)
            offsets = page_offsets(stream, layout, offset, _MOST_PAGES)
            kinds = [_Kind(read_directory(stream, layout, at, _KIND_TAGS)) for at in offsets]
            if not kinds:
                raise ValueError("it has no pages")
        numbers = [n for n, each in enumerate(kinds) if not each.reduced] or [0]
        kind = kinds[numbers[0]]
        _check_kind(source, kind)
        source.check_pixels(kind.width, kind.height, max_pixels)
        if not all(kinds[number].is_like(kind) for number in numbers):
            raise InputError(
                f"{source.name!r} has pages of different sizes or kinds, but all must be alike."
            )

        def load(index: int) -> VipsImage:
            header = self._load_page(source, layout, offsets, numbers[index], kind)
            self.check(source, header, max_pixels)
            return header

        opened = None if kind.repacked else load(0)

        def metadata_of(stream: BinaryIO, index: int) -> Metadata:
            start, end = numbers[index], [*numbers[1:], len(kinds)][index]
            widths = [kinds[level].width for level in range(start + 1, end)]
            return _read_metadata(stream, layout, offsets[start], kind.width, widths)

        first = metadata_of(stream, 0)

        def decode(index: int) -> ImageFile:
            header = load(index) if index or opened is None else opened
            page = self.decode(source, header)
            if kind.depth == _HALF:  # libvips reads them as float32
                page = ImageFile.of_bands(page.bands.astype(np.float16), notes=page.notes)
            metadata = first
            if index:
                with source.open() as stream:
                    metadata = metadata_of(stream, index)
            notes = page.notes + kind.notes + metadata.notes
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
        with source.reading(self.name), source.open() as stream:
            files = list(tiff_planes.repack(stream, layout, offsets[number]))
        planes = [self.load(Source(source.name, data=data)) for data in files]
        if not kind.rearranged:
            return planes[0]
        bands = [self.bands(source, plane) for plane in planes]
        if kind.depth == _DOUBLE:
            bands = [band.view(np.dtype(np.float64).newbyteorder(layout.order)) for band in bands]
        values = np.concatenate(bands, axis=2)
        native = values.astype(values.dtype.newbyteorder("="), copy=False)
        return to_vips(native, 3 if kind.photometric == tag.RGB else 1)


def _check_kind(source: Source, kind: _Kind) -> None:
    """Refuse what cannot be read."""
    readable = (
        (tag.BLACK_IS_ZERO, tag.RGB)
        if kind.rearranged
        else (*_GRAY, tag.RGB, tag.PALETTE, tag.YCBCR)
    )
    sample_format, bits = kind.depth
    if kind.photometric not in readable:
        name = _PHOTOMETRICS.get(kind.photometric, f"kind {kind.photometric}")
        raise InputError(f"{source.name!r} is a {name} image, but must be gray or RGB.")
    if bits not in _DEPTHS.get(sample_format, ()):
        raise InputError(
            f"{source.name!r} has {_FORMATS.get(sample_format, 'other')} values of {bits} bits, "
            "but must have unsigned ones of 8, 16 or 32, signed ones of 16 or 32, or floating ones "
            "of 16, 32 or 64 bits."
        )
    if kind.photometric in _GRAY and kind.samples > 1 and not any(kind.extra):
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
    if kind.compression in tiff_planes.ZSTD:
        tiff_planes.zstd(f"Cannot read {source.name!r}: ")
    way = None
    if kind.compression not in _READABLE:
        way = _COMPRESSIONS.get(kind.compression, f"method {kind.compression}")
    elif kind.depth == _DOUBLE and kind.predictor != 1:
        way = "a predictor for doubles"
    if way is not None:
        raise FileError(
            f"Cannot read {source.name!r}: it is a TIFF file compressed with {way}, which is not "
            "supported; write it with deflate, LZW or no compression."
        )


def _read_metadata(
    stream: BinaryIO, layout: Layout, offset: int, width: int, chained: Sequence[int]
) -> Metadata:
    """Return what a page says besides the pixels, and name what of it is left out.

    `chained` are the widths of the smaller versions behind it.
    """
    damaged: list[int] = []
    try:
        storage = tag.STORAGE - tag.TILE
        every = read_directory(stream, layout, offset, without=storage, damaged=damaged)
    except _ERRORS:
        return Metadata("TIFF", notes=("its damaged metadata is left out",))
    levels = _sub_levels(stream, every)
    entries = every.entries
    dropped = (entries.keys() | set(damaged)) & tag.NOT_KEPT.keys()
    if levels is not None:
        dropped -= {tag.SUB_IMAGES}
    lost = [tag.NOT_KEPT[each] for each in sorted(dropped)]
    lost += [f"TIFF tag {each}" for each in sorted(set(damaged) - dropped)]
    listed = f"left out, as they do not fit the new file: {', '.join(dict.fromkeys(lost))}"
    left_out = tag.NOT_KEPT.keys() | tag.TILE
    tags = Tags(layout, {each: entries[each] for each in entries.keys() - left_out})
    metadata = Metadata(
        "TIFF",
        exif=exif.cut_from(tags),
        icc=tags.data(tag.ICC),
        xmp=tags.data(tag.XMP),
        iptc=tags.data(tag.IPTC),
        resources=tags.data(tag.RESOURCES),
        resolution=exif.resolution_of(tags),
        tiling=_tiling(every, width, chained or levels or (), bool(chained)),
        notes=(listed,) if lost else (),
    ).cleaned()
    clean = {tag.XMP: metadata.xmp, tag.RESOURCES: metadata.resources}
    kept = {
        each: Entry(tags.entries[each].kind, data)
        for each, data in clean.items()
        if data is not None
    }
    return dataclasses.replace(metadata, tags=Tags(layout, {**tags.entries, **kept}))


def _sub_levels(stream: BinaryIO, tags: Tags) -> list[int] | None:
    """Return the widths of a page's sub-images, None unless all are smaller versions of it."""
    widths = []
    for place in tags.numbers(tag.SUB_IMAGES)[:_MOST_LEVELS]:
        try:
            level = read_directory(stream, tags.layout, place, {tag.WIDTH, tag.SUBFILE})
        except _ERRORS:
            return None
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
