"""Formats that libvips reads and writes, with their metadata."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyvips

from nlnet.arrays import Array
from nlnet.errors import FileError, InputError
from nlnet.images.content import ImageFile, Pages, Source

VipsImage: TypeAlias = Any  # pyvips has no types

_COLOR_SPACES = {"b-w": 1, "grey16": 1, "srgb": 3, "rgb16": 3, "scrgb": 3}
_DEPTHS = ("uchar", "ushort", "float")
_KEPT_METADATA = (
    "exif-data",
    "icc-profile-data",
    "image-description",
    "iptc-data",
    "orientation",
    "resolution-unit",
    "xmp-data",
)


@dataclasses.dataclass(frozen=True)
class VipsCodec:
    """A format as libvips knows it."""

    name: str
    loader: str
    saver: str
    save_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    load_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def read(self, source: Source, max_pixels: int) -> Sequence[ImageFile]:
        """Check the kind of image, and return its only page."""
        header = self.load(source)
        self.check(source, header, max_pixels)
        frames = get_field(header, "n-pages", 1)
        if frames > 1:
            raise InputError(f"{source.name!r} is an animation, but must be a single image.")
        return Pages(1, lambda index: self.decode(source, header))

    def encode(self, pages: Sequence[ImageFile]) -> bytes:
        """Return the bytes of a file."""
        return self.save(assemble(pages[0]))

    def load(self, source: Source, **options: Any) -> VipsImage:
        """Read the header; pixels follow when they are needed."""
        options = {**self.load_options, **options, "fail_on": "error"}
        try:
            if source.path is None:
                return getattr(pyvips.Image, f"{self.loader}_buffer")(source.data, **options)
            # Not `new_from_file`: it takes brackets in a name for options. Without `revalidate`,
            # libvips would answer from its cache when the file has changed since.
            path = os.fsencode(source.path)
            return getattr(pyvips.Image, self.loader)(path, revalidate=True, **options)
        except pyvips.Error as error:
            raise source.damaged(self.name, reason_of(error)) from error

    def check(self, source: Source, header: VipsImage, max_pixels: int) -> None:
        """Refuse images of other kinds, and too large ones, before they are decoded."""
        channels = _COLOR_SPACES.get(header.interpretation)
        known = channels is not None and header.format in _DEPTHS
        if not known or header.bands not in (channels, (channels or 0) + 1):
            raise InputError(
                f"{source.name!r} is a {header.interpretation} image of {header.bands} "
                f"{header.format} channels, but must be gray or RGB with 8 or 16 bits or float32."
            )
        if get_field(header, "bits-per-sample", 8) == 1:
            raise InputError(
                f"{source.name!r} is black and white (1 bit), but must have at least 8 bits."
            )
        source.check_pixels(header.width, header.height, max_pixels)

    def decode(self, source: Source, header: VipsImage) -> ImageFile:
        """Decode the pixels, tell alpha from them, and keep the metadata."""
        try:
            bands: Array = header.numpy()
        except pyvips.Error as error:
            raise source.damaged(self.name, reason_of(error)) from error
        channels = _COLOR_SPACES[header.interpretation]
        bands = bands.reshape(*bands.shape[:2], -1)
        pixels = bands[..., 0] if channels == 1 else bands[..., :3]
        alpha = bands[..., channels] if header.bands > channels else None
        return ImageFile(pixels, alpha, _metadata(header), notes=_notes(header))

    def save(self, image: VipsImage, **options: Any) -> bytes:
        """Encode an assembled image."""
        try:
            encoded: bytes = getattr(image, f"{self.saver}_buffer")(**self.save_options, **options)
        except pyvips.Error as error:
            raise FileError(
                f"Cannot encode the image as {self.name}: {reason_of(error)}."
            ) from error
        return encoded


def assemble(image: ImageFile) -> VipsImage:
    """Join pixels, alpha and metadata into one libvips image."""
    pixels = image.pixels.reshape(*image.pixels.shape[:2], -1)
    bands = pixels if image.alpha is None else np.dstack([pixels, image.alpha])
    gray, color = {"uint8": ("b-w", "srgb"), "uint16": ("grey16", "rgb16")}.get(
        pixels.dtype.name, ("b-w", "scrgb")
    )
    joined = pyvips.Image.new_from_array(
        np.ascontiguousarray(bands), interpretation=gray if image.channels == 1 else color
    )
    if not isinstance(image.metadata, pyvips.Image):
        return joined
    joined = joined.copy(xres=image.metadata.xres, yres=image.metadata.yres)
    _copy_metadata(image.metadata, joined)
    return joined


def get_field(image: VipsImage, name: str, default: Any) -> Any:
    """Return a field of an image's header, if it has it."""
    return image.get(name) if image.get_typeof(name) else default


def reason_of(error: pyvips.Error) -> str:
    """Return libvips' own words for what went wrong, without its frame around them."""
    lines = [line.strip() for line in str(error).splitlines()[1:] if line.strip()]
    return lines[0].split(": ", 1)[-1].rstrip(".") if lines else ""


def _metadata(header: VipsImage) -> VipsImage:
    """Return the metadata alone: the image itself would keep its file open."""
    alone = pyvips.Image.black(1, 1).copy(xres=header.xres, yres=header.yres)
    _copy_metadata(header, alone)
    return alone


def _copy_metadata(source: VipsImage, target: VipsImage) -> None:
    for field in _KEPT_METADATA:
        if source.get_typeof(field):
            target.set_type(source.get_typeof(field), field, source.get(field))


def _notes(header: VipsImage) -> tuple[str, ...]:
    notes = []
    if get_field(header, "palette", 0):
        notes.append("its palette of colors becomes RGB")
    bits = get_field(header, "bits-per-sample", 8)
    if bits < 8:
        notes.append(f"its {bits} bits become 8")
    return tuple(notes)
