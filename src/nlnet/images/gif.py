"""GIF files of one frame."""

from __future__ import annotations

import dataclasses

from nlnet.images.content import ImageFile, Source
from nlnet.images.libvips import VipsCodec, VipsImage, get_field


class GifCodec(VipsCodec):
    """GIF without animations; a palette of grays alone makes a gray image."""

    def decode(self, source: Source, header: VipsImage) -> ImageFile:
        """Decode the pixels."""
        image = super().decode(source, header)
        if image.channels == 1 or not _is_gray(header):
            return image
        notes = tuple(note for note in image.notes if "palette" not in note)
        return dataclasses.replace(image, pixels=image.pixels[..., 0].copy(), notes=notes)


def _is_gray(header: VipsImage) -> bool:
    """Tell whether all colors of the palette are grays; each is a number of four bytes."""
    palette = get_field(header, "gif-palette", [])
    parts = ((color & 255, color >> 8 & 255, color >> 16 & 255) for color in palette)
    return bool(palette) and all(red == green == blue for red, green, blue in parts)
