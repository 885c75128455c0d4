"""FITS files, through astropy: the first image, or a cube of them; all else stays as it is."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

import nlnet
from nlnet.errors import InputError
from nlnet.images.content import ImageFile, Pages, Source, joined
from nlnet.images.libraries import need
from nlnet.images.metadata import Metadata, Part
from nlnet.images.writing import PLAIN, WritingOptions

_NAME = "FITS"


class FitsCodec:
    """FITS of integers, scaled by BZERO and BSCALE or not, and of floating values."""

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the headers, and return the planes of the first image."""
        fits = _astropy(f"Cannot read {source.name!r}: ")
        data = stream.read()
        with source.reading(_NAME):
            hdus = fits.open(io.BytesIO(data), memmap=False, lazy_load_hdus=False)
            number = _image_number(hdus)
            shape: tuple[int, ...] = () if number is None else hdus[number].shape
        if number is None:
            raise InputError(
                f"{source.name!r} is a FITS file without an image of two axes or more."
            )
        source.check_pixels(shape[-1], shape[-2], max_pixels)
        metadata = Metadata(_NAME, parts=(Part("the FITS header", data),))
        leading = shape[:-2]

        def decode(index: int) -> ImageFile:
            with source.reading(_NAME):
                plane = hdus[number].data.reshape(-1, *shape[-2:])[index]
            pixels = np.ascontiguousarray(plane, plane.dtype.newbyteorder("="))
            return ImageFile(pixels, metadata=metadata, leading=leading)

        return Pages(math.prod(leading), decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file: that which the pages are from, with other pixels."""
        fits = _astropy()
        pixels, metadata = joined(pages), pages[0].metadata
        hdus: Any = fits.HDUList([fits.PrimaryHDU()])
        if metadata is not None and metadata.origin == _NAME:
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


def _astropy(reading: str = "") -> Any:
    return need("astropy.io.fits", "astropy", "fits", f"{reading}FITS files")


def _image_number(hdus: Any) -> int | None:
    """Return which is the first part with an image of two axes or more."""
    shapes = [getattr(hdu, "shape", ()) if hdu.is_image else () for hdu in hdus]
    return next((n for n, shape in enumerate(shapes) if len(shape) > 1 and 0 not in shape), None)
