"""TIFF files: several depths, stacks of pages, and EXIF, which libvips leaves behind."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence

import pyvips

from nlnet.errors import InputError
from nlnet.images import exif
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.libvips import VipsCodec, assemble, get_field, reason_of

_BITS, _PHOTOMETRIC, _SAMPLES, _EXTRA, _SAMPLE_FORMAT = 258, 262, 277, 338, 339
_UNSIGNED, _FLOAT = 1, 3
_PALETTE = 3
_PHOTOMETRICS = {0: "gray", 1: "gray", 2: "RGB", _PALETTE: "palette", 6: "YCbCr"}
_OTHER_PHOTOMETRICS = {4: "mask", 5: "CMYK", 8: "CIELAB", 9: "CIELAB", 10: "CIELAB"}
_PREMULTIPLIED = 1
_BIG = 2**31
"""Above so many bytes of pixels it becomes a BigTIFF, whose offsets do not end at 4 GB."""


@dataclasses.dataclass(frozen=True)
class _Kind:
    """What the first page says of its samples."""

    bits: int
    sample_format: int
    photometric: int
    samples: int
    extra: tuple[int, ...]


class TiffCodec(VipsCodec):
    """TIFF and BigTIFF."""

    def read(self, source: Source, max_pixels: int) -> Sequence[ImageFile]:
        """Check the kind of image, and return its pages, which are decoded one by one."""
        kind = self._read_kind(source)
        _check_kind(source, kind)
        first = self.load(source)
        self.check(source, first, max_pixels)
        count = get_field(first, "n-pages", 1)
        if count > 1:
            self._check_pages(source)
        metadata = self._exif(source)

        def decode(index: int) -> ImageFile:
            header = self.load(source, page=index)
            self.check(source, header, max_pixels)
            if index == 0 and metadata is not None:
                header = header.copy()
                header.set_type(pyvips.GValue.blob_type, "exif-data", metadata)
            page = self.decode(source, header)
            notes = page.notes + _notes(kind)
            return dataclasses.replace(page, notes=notes, stacked=count > 1)

        return Pages(count, decode)

    def encode(self, pages: Sequence[ImageFile]) -> bytes:
        """Return the bytes of a file."""
        images = [assemble(page) for page in pages]
        joined = pyvips.Image.arrayjoin(images, across=1) if len(images) > 1 else images[0]
        if len(images) > 1:
            joined = joined.copy(xres=images[0].xres, yres=images[0].yres)
            joined.set_type(pyvips.GValue.gint_type, "page-height", images[0].height)
        size = sum(page.pixels.nbytes for page in pages)
        # The predictor for floating values is one that few other programs know.
        whole_numbers = pages[0].pixels.dtype.kind == "u"
        predictor = "horizontal" if whole_numbers else "none"
        encoded = self.save(joined, predictor=predictor, bigtiff=size > _BIG)
        metadata: bytes | None = get_field(images[0], "exif-data", None)
        return encoded if metadata is None else exif.into_tiff(encoded, metadata)

    def _read_kind(self, source: Source) -> _Kind:
        try:
            with source.open() as stream:
                layout, offset = exif.read_layout(stream)
                tags = {_BITS, _PHOTOMETRIC, _SAMPLES, _EXTRA, _SAMPLE_FORMAT}
                found = exif.read_directory(stream, layout, offset, tags)
            values = {tag: exif.numbers(entry, layout) for tag, entry in found.items()}
        except (ValueError, struct.error) as error:
            raise source.damaged(self.name) from error

        def first(tag: int, default: int) -> int:
            return next(iter(values.get(tag, ())), default)

        return _Kind(
            bits=first(_BITS, 1),
            sample_format=first(_SAMPLE_FORMAT, _UNSIGNED),
            photometric=first(_PHOTOMETRIC, 1),
            samples=first(_SAMPLES, 1),
            extra=values.get(_EXTRA, ()),
        )

    def _check_pages(self, source: Source) -> None:
        try:
            self.load(source, n=-1)
        except Exception as error:
            cause = error.__cause__
            if isinstance(cause, pyvips.Error) and "differs" in reason_of(cause):
                raise InputError(
                    f"{source.name!r} has pages of different sizes or kinds, but all must be alike."
                ) from error
            raise

    @staticmethod
    def _exif(source: Source) -> bytes | None:
        with source.open() as stream:
            return exif.from_tiff(stream)


def _check_kind(source: Source, kind: _Kind) -> None:
    if kind.photometric not in _PHOTOMETRICS:
        name = _OTHER_PHOTOMETRICS.get(kind.photometric, f"kind {kind.photometric}")
        raise InputError(f"{source.name!r} is a {name} image, but must be gray or RGB.")
    if kind.sample_format == _UNSIGNED:
        known = kind.bits in (1, 2, 4, 8, 16)
    else:
        known = kind.sample_format == _FLOAT and kind.bits in (16, 32)
    if not known:
        formats = {_UNSIGNED: "unsigned", 2: "signed", _FLOAT: "floating"}
        name = formats.get(kind.sample_format, "other")
        raise InputError(
            f"{source.name!r} has {name} values of {kind.bits} bits, "
            "but must have unsigned ones of 8 or 16 or floating ones of 32 bits."
        )
    if _PHOTOMETRICS[kind.photometric] == "gray" and kind.samples > 1 and not any(kind.extra):
        raise InputError(
            f"{source.name!r} has {kind.samples} gray channels in one image, "
            "but must be gray or RGB; write each channel to a file or page of its own."
        )


def _notes(kind: _Kind) -> tuple[str, ...]:
    notes = []
    if kind.photometric == _PALETTE:
        notes.append("its palette of colors becomes RGB")
    if kind.sample_format == _FLOAT and kind.bits == 16:
        notes.append("its half-precision values become float32")
    if _PREMULTIPLIED in kind.extra:
        notes.append("its premultiplied alpha becomes plain alpha")
    return tuple(notes)
