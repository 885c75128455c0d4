"""Formats that other libraries read, each an extra: HEIC, JPEG XL and FITS."""

import dataclasses
import importlib
import io
import math
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

import nlnet
from nlnet.arrays import Array
from nlnet.errors import FileError, InputError
from nlnet.images import exif
from nlnet.images.content import ImageFile, Pages, Source, joined
from nlnet.images.metadata import Metadata, Part
from nlnet.images.writing import PLAIN, WritingOptions


def need(module: str, library: str, extra: str, what: str) -> Any:
    """Import a module; raise FileError that says how to install its library if it is missing.

    Examples
    --------
    >>> need("no_such", "no-such-library", "future", "Cannot read 'a.xyz': XYZ files")
    Traceback (most recent call last):
    nlnet.errors.FileError: Cannot read 'a.xyz': XYZ files need no-such-library, which is not \
installed: pip install 'nlnet[future]'.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise FileError(
            f"{what} need {library}, which is not installed: pip install 'nlnet[{extra}]'."
        ) from error


class Photo(NamedTuple):
    """What a library says about a file before its pixels are decoded."""

    width: int
    height: int
    metadata: Metadata
    decode: Callable[[], Array]


class LibraryCodec:
    """A format that a library reads; a subclass names both, and the extra that installs it."""

    name = module = extra = ""

    def need(self, reading: str = "") -> Any:
        """Return the library; raise FileError if it is not installed."""
        library = self.module.partition(".")[0].replace("_", "-")
        return need(self.module, library, self.extra, f"{reading}{self.name} files")


class PhotoCodec(LibraryCodec):
    """A format of photos, which its library turns upright."""

    def open(self, library: Any, data: bytes) -> Photo:
        """Return what the library says; it may raise anything."""
        raise NotImplementedError

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the size, and return the only page."""
        library = self.need(f"Cannot read {source.name!r}: ")
        with source.reading(self.name):
            photo = self.open(library, stream.read())
        source.check_pixels(photo.width, photo.height, max_pixels)
        metadata = photo.metadata.cleaned()
        if metadata.exif is not None:
            metadata = dataclasses.replace(metadata, exif=exif.set_upright(metadata.exif))

        def decode(index: int) -> ImageFile:
            with source.reading(self.name):
                bands = photo.decode()
            bands = bands.reshape(*bands.shape[:2], -1)
            return ImageFile.of_bands(bands, metadata=metadata, notes=metadata.notes)

        return Pages(1, decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file."""
        raise InputError(f"{self.name} files are read, but not written.")


class HeicCodec(PhotoCodec):
    """HEIC of 8 bits, and of more, which become 16."""

    name, module, extra = "HEIC", "pi_heif", "heic"

    def open(self, library: Any, data: bytes) -> Photo:
        """Return what pi-heif says."""
        file = library.open_heif(io.BytesIO(data), convert_hdr_to_8bit=False)
        info = file.info
        found = info.get("exif")
        metadata = Metadata(
            self.name,
            exif=found.removeprefix(exif.PREFIX) if found else None,
            icc=info.get("icc_profile"),
            xmp=info.get("xmp"),
        )
        further = {"images": len(file) - 1, "depth maps": len(info.get("depth_images", ()))}
        named = ", ".join(f"{count} {what}" for what, count in further.items() if count)
        if named:
            metadata = metadata.noting(f"left out: {named} beside its main image")
        width, height = file.size
        # A copy, since the memory of the pixels goes with the file.
        return Photo(width, height, metadata, lambda: np.array(file[file.primary_index]))


class JxlCodec(PhotoCodec):
    """JPEG XL, written without loss."""

    name, module, extra = "JPEG XL", "pyjpegxl", "jxl"

    def open(self, library: Any, data: bytes) -> Photo:
        """Return what libjxl says."""
        found = library.probe(data)
        box = found.exif  # begins with where in it EXIF does
        start = 4 + int.from_bytes(box[:4], "big") if box else 0
        metadata = Metadata(
            self.name, exif=box[start:] if box else None, icc=found.icc, xmp=found.xmp
        )
        size = found.width, found.height
        return Photo(*size, metadata, lambda: library.decode_to_numpy(data)[1])

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file, which is upright since EXIF does not turn it."""
        image, kept = pages[0], pages[0].metadata or Metadata("")
        bands = np.ascontiguousarray(image.upright(image.bands))
        encoded: bytes = self.need().encode_from_numpy(
            bands,
            lossless=True,
            exif=None if kept.exif is None else bytes(4) + exif.set_upright(kept.exif),
            xmp=kept.xmp,
            icc=kept.profile_for(image.channels),
        )
        return encoded


class FitsCodec(LibraryCodec):
    """FITS of integers, scaled by BZERO and BSCALE or not, and of floating values."""

    name, module, extra = "FITS", "astropy.io.fits", "fits"

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the headers, and return the planes of the first image."""
        fits = self.need(f"Cannot read {source.name!r}: ")
        data = stream.read()
        with source.reading(self.name):
            hdus = fits.open(io.BytesIO(data), memmap=False, lazy_load_hdus=False)
            number = _image_number(hdus)
            shape: tuple[int, ...] = () if number is None else hdus[number].shape
        if number is None:
            raise InputError(
                f"{source.name!r} is a FITS file without an image of two axes or more."
            )
        source.check_pixels(shape[-1], shape[-2], max_pixels)
        metadata = Metadata(self.name, parts=(Part("the FITS header", data),))
        leading = shape[:-2]

        def decode(index: int) -> ImageFile:
            with source.reading(self.name):
                plane = hdus[number].data.reshape(-1, *shape[-2:])[index]
            pixels = np.ascontiguousarray(plane, plane.dtype.newbyteorder("="))
            return ImageFile(pixels, metadata=metadata, leading=leading)

        return Pages(math.prod(leading), decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file: that which the pages are from, with other pixels."""
        fits = self.need()
        pixels, metadata = joined(pages), pages[0].metadata
        hdus: Any = fits.HDUList([fits.PrimaryHDU()])
        if metadata is not None and metadata.origin == self.name:
            hdus = fits.open(io.BytesIO(metadata.parts[0].data), memmap=False, lazy_load_hdus=False)
        image = hdus[_image_number(hdus) or 0]
        # The values are scaled already; astropy writes what unsigned integers need.
        for card in ("BSCALE", "BZERO", *(["BLANK"] if pixels.dtype.kind == "f" else [])):
            image.header.remove(card, ignore_missing=True)
        image.data = pixels
        image.header.add_history(f"Denoised with nlnet {nlnet.__version__}")
        stream = io.BytesIO()
        hdus.writeto(stream, output_verify="silentfix+ignore")
        return stream.getvalue()


def _image_number(hdus: Any) -> int | None:
    """Return which is the first part with an image of two axes or more."""
    shapes = [getattr(hdu, "shape", ()) if hdu.is_image else () for hdu in hdus]
    return next((n for n, shape in enumerate(shapes) if len(shape) > 1 and 0 not in shape), None)
