"""Formats whose pixels libvips reads and writes; metadata is handled here."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import pyvips

from nlnet.arrays import Array
from nlnet.errors import FileError, InputError
from nlnet.images import exif
from nlnet.images.content import ImageFile, Pages, Source
from nlnet.images.metadata import Metadata
from nlnet.images.writing import PLAIN, WritingOptions

VipsImage: TypeAlias = Any  # pyvips has no types

_COLOR_SPACES = {"b-w": 1, "grey16": 1, "srgb": 3, "rgb16": 3, "scrgb": 3}
_OTHER_COLOR_SPACES = {"cmyk": "CMYK", "lab": "CIELAB", "labs": "CIELAB", "xyz": "XYZ"}
_DEPTHS = ("uchar", "ushort", "short", "uint", "int", "float", "double")


@dataclasses.dataclass(frozen=True)
class VipsCodec:
    """A format as libvips knows it."""

    name: str
    loader: str
    saver: str
    save_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    load_options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def read(self, source: Source, stream: BinaryIO, max_pixels: int) -> Pages:
        """Check the kind of image, and return its only page."""
        header = self.load(source)
        self.check(source, header, max_pixels)
        frames = get_field(header, "n-pages", 1)
        if frames > 1:
            raise animation_error(source, f" of {frames} frames")
        metadata = self.read_metadata(stream, header)

        def decode(index: int) -> ImageFile:
            image = self.decode(source, header)
            notes = image.notes + metadata.notes
            return dataclasses.replace(image, metadata=metadata, notes=notes)

        return Pages(1, decode)

    def encode(self, pages: Sequence[ImageFile], options: WritingOptions = PLAIN) -> bytes:
        """Return the bytes of a file."""
        image = pages[0]
        # Without this, it would write EXIF that it made up.
        pixels = to_vips(image.bands, image.channels)
        encoded = self.save(pixels, keep="none", **self.options(options))
        return self.embed(encoded, image, image.metadata or Metadata(""))

    def options(self, options: WritingOptions) -> Mapping[str, Any]:
        """Return what libvips is told for these options."""
        return {}

    def read_metadata(self, stream: BinaryIO, header: VipsImage) -> Metadata:
        """Return what the file says besides the pixels."""
        return self.common_metadata(header).cleaned()

    def common_metadata(self, header: VipsImage) -> Metadata:
        """Return what libvips found, its bytes unchanged."""
        found: bytes | None = get_field(header, "exif-data", None)
        return Metadata(
            self.name,
            exif=None if found is None else found.removeprefix(exif.PREFIX),
            icc=get_field(header, "icc-profile-data", None),
            xmp=get_field(header, "xmp-data", None),
        )

    def embed(self, encoded: bytes, image: ImageFile, metadata: Metadata) -> bytes:
        """Put metadata into a file that libvips wrote without any."""
        return encoded

    def load(self, source: Source, **options: Any) -> VipsImage:
        """Read the header; pixels follow when they are needed."""
        options = {**self.load_options, **options, "fail_on": "error"}
        try:
            if source.path is None:
                return getattr(pyvips.Image, f"{self.loader}_buffer")(source.data, **options)
            # Given a path, libvips would open the file again for each thing that it looks at.
            with source.open() as stream:
                opened = pyvips.Source.new_from_descriptor(stream.fileno())
            return getattr(pyvips.Image, f"{self.loader}_source")(opened, **options)
        except pyvips.Error as error:
            raise self.unreadable(source, error) from error

    def check(self, source: Source, header: VipsImage, max_pixels: int) -> None:
        """Refuse images of other kinds, and too large ones, before they are decoded."""
        channels = _COLOR_SPACES.get(header.interpretation)
        if channels is None or header.format not in _DEPTHS:
            other = _OTHER_COLOR_SPACES.get(header.interpretation, header.interpretation)
            kind = f"a {other} image" if channels is None else f"an image of {header.format} values"
            raise InputError(f"{source.name!r} is {kind}, but must be gray or RGB.")
        if header.bands not in (channels, channels + 1):
            raise InputError(
                f"{source.name!r} has {header.bands} channels, but must be gray or RGB, with or "
                "without one channel of transparency."
            )
        if get_field(header, "bits-per-sample", 8) == 1:
            raise InputError(
                f"{source.name!r} is black and white (1 bit), but must have at least 8 bits."
            )
        source.check_pixels(header.width, header.height, max_pixels)

    def decode(self, source: Source, header: VipsImage) -> ImageFile:
        """Decode the pixels, and tell alpha from them."""
        return ImageFile.of_bands(self.bands(source, header), notes=_notes(header))

    def bands(self, source: Source, header: VipsImage) -> Array:
        """Decode the pixels, (H, W, bands)."""
        try:
            decoded: Array = header.numpy()
        except pyvips.Error as error:
            raise self.unreadable(source, error) from error
        return decoded.reshape(*decoded.shape[:2], -1)

    def unreadable(self, source: Source, error: pyvips.Error) -> FileError:
        """Return the error for a file that libvips could not read."""
        return source.damaged(self.name, vips_reason(error))

    def save(self, image: VipsImage, **options: Any) -> bytes:
        """Encode an assembled image."""
        save = getattr(image, f"{self.saver}_buffer")
        try:
            encoded: bytes = save(**{**self.save_options, **options})
        except pyvips.Error as error:
            reason = vips_reason(error)
            raise FileError(f"Cannot encode the image as {self.name}: {reason}.") from error
        return encoded


def animation_error(source: Source, detail: str = "") -> InputError:
    """Return the error for a file of moving pictures."""
    return InputError(
        f"{source.name!r} is an animation{detail}, but must be a single image; "
        "write its frames as the pages of a TIFF file, or as files."
    )


def to_vips(bands: Array, channels: int) -> VipsImage:
    """Return (H, W, bands) pixels as a libvips image of gray or RGB, maybe with alpha."""
    kinds = {"uint8": ("b-w", "srgb"), "uint16": ("grey16", "rgb16")}
    gray, color = kinds.get(bands.dtype.name, ("b-w", "scrgb"))
    kind = gray if channels == 1 else color
    return pyvips.Image.new_from_array(np.ascontiguousarray(bands), interpretation=kind)


def get_field(image: VipsImage, name: str, default: Any) -> Any:
    """Return a field of an image's header, if it has it."""
    return image.get(name) if image.get_typeof(name) else default


def vips_reason(error: pyvips.Error) -> str:
    """Return libvips' own words for what went wrong, without its frame around them."""
    lines = [line.strip() for line in str(error).splitlines()[1:] if line.strip()]
    return lines[0].split(": ", 1)[-1].rstrip(".") if lines else ""


def _notes(header: VipsImage) -> tuple[str, ...]:
    notes = []
    if get_field(header, "palette", 0):
        notes.append("its palette of colors becomes RGB")
    bits = get_field(header, "bits-per-sample", 8)
    if bits < 8:
        notes.append(f"its {bits} bits become 8")
    return tuple(notes)
