"""GIF files of one frame."""

from __future__ import annotations

import dataclasses
from typing import Any

from nlnet.images.content import ImageFile, Source
from nlnet.images.libvips import VipsCodec, VipsImage


class GifCodec(VipsCodec):
    """GIF without animations; an image whose colors are all grays is a gray one."""

    def load(self, source: Source, **options: Any) -> VipsImage:
        """Read the header; its bits are those of the palette's numbers, not of the colors."""
        header = super().load(source, **options).copy()
        header.remove("bits-per-sample")
        return header

    def decode(self, source: Source, header: VipsImage) -> ImageFile:
        """Decode the pixels."""
        image = super().decode(source, header)
        pixels = image.pixels
        if image.channels == 1 or (pixels != pixels[..., :1]).any():
            return image
        notes = tuple(note for note in image.notes if "palette" not in note)
        return dataclasses.replace(image, pixels=pixels[..., 0].copy(), notes=notes)
