"""GIF files: single images, and animations, whose frames are pages."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
from pyvips import GValue

from nlnet.arrays import Array
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.libvips import VipsCodec, VipsImage, get_field, to_vips
from nlnet.images.metadata import Metadata
from nlnet.images.writing import PLAIN, WritingOptions

_RUN = 16
"""Frames that are decoded at a time: each is drawn over those before it."""

_DELAY = 100
"""Milliseconds that a frame is shown, if nothing says how long."""


class GifCodec(VipsCodec):
    """GIF; an image whose colors are all grays is a gray one."""

    def load(self, source: Source, **options: Any) -> VipsImage:
        """Read the header; its bits are those of the palette's numbers, not of the colors."""
        header = super().load(source, **options).copy()
        header.remove("bits-per-sample")
        return header

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the kind of image, and return its frames."""
        header = self.load(source)
        self.check(source, header, max_pixels)
        count = get_field(header, "n-pages", 1)
        delays = tuple(get_field(header, "delay", [_DELAY] * count))
        shown = delays, get_field(header, "loop", 0)
        metadata = Metadata(self.name, animation=shown if count > 1 else None)

        @functools.lru_cache(maxsize=1)
        def run(number: int) -> Array:
            frames = min(_RUN, count - number * _RUN)
            bands = self.bands(source, self.load(source, page=number * _RUN, n=frames))
            return bands.reshape(frames, -1, *bands.shape[1:])

        # All frames have what one of them needs.
        color = opacity = False
        for bands in map(run, range(-(-count // _RUN))):
            color |= bands.shape[-1] > 2 and bool((bands[..., :3] != bands[..., :1]).any())
            opacity |= bands.shape[-1] in (2, 4) and bool((bands[..., -1] < 255).any())
        notes = ("its palette of colors becomes RGB",) * color

        def decode(index: int) -> ImageFile:
            bands = run(index // _RUN)[index % _RUN]
            image = ImageFile.of_bands(bands, metadata=metadata, notes=notes)
            pixels = image.pixels if color or image.channels == 1 else image.pixels[..., 0]
            alpha = image.alpha if opacity else None
            return dataclasses.replace(image, pixels=pixels.copy(), alpha=alpha)

        return Pages(count, decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file; several pages are an animation."""
        # libvips takes frames below each other.
        frames = to_vips(np.concatenate([page.bands for page in pages]), pages[0].channels).copy()
        if len(pages) > 1:
            first = pages[0].metadata
            delays, loop = (first and first.animation) or ((), 0)
            if len(delays) != len(pages):
                delays = (_DELAY,) * len(pages)
            frames.set_type(GValue.gint_type, "page-height", pages[0].pixels.shape[0])
            frames.set_type(GValue.array_int_type, "delay", list(delays))
            frames.set_type(GValue.gint_type, "loop", loop)
        return self.save(frames, keep="none")
