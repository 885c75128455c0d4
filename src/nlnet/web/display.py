"""Images for the screen: 8 bits, scaled to the range of values that the image uses."""

from __future__ import annotations

import dataclasses

import numpy as np

from nlnet.arrays import Array
from nlnet.files.data_range import Range
from nlnet.images import ImageFile
from nlnet.images.formats import format_of
from nlnet.images.libvips import VipsCodec

_BAND_VALUES = 2**20
"""Values that are scaled at once: floating copies of a whole image would be large."""

_FAST = {"compression": 1}
"""Previews are made to be seen at once, not to be kept."""


def to_8_bits(values: Array, shown: Range) -> Array:
    """Scale values to 0-255, a band of rows at a time.

    Examples
    --------
    >>> to_8_bits(np.array([[0, 2048, 4095, 9999]], np.uint16), Range(0, 4095)).tolist()
    [[0, 128, 255, 255]]
    """
    scaled = np.empty(values.shape, np.uint8)
    rows = max(1, _BAND_VALUES // max(1, values[:1].size))
    for start in range(0, len(values), rows):
        band = values[start : start + rows]
        # Infinite values are shown too; float32 is precise enough for 256 levels.
        part = np.nan_to_num(band.astype(np.float32), posinf=shown.high, neginf=shown.low)
        part -= np.float32(shown.low)
        part *= np.float32(255 / (shown.high - shown.low))
        scaled[start : start + rows] = np.rint(np.clip(part, 0, 255, out=part), out=part)
    return scaled


def to_png(image: ImageFile, shown: Range, white: float) -> bytes:
    """Return the image as a PNG file of 8 bits."""
    pixels = to_8_bits(image.pixels, shown)
    alpha = None if image.alpha is None else to_8_bits(image.alpha, Range(0.0, white))
    codec = format_of("preview.png").codec
    if isinstance(codec, VipsCodec):
        codec = dataclasses.replace(codec, save_options=_FAST)
    return codec.encode([dataclasses.replace(image, pixels=pixels, alpha=alpha)])
