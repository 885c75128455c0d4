"""Metadata of an image file, and what of it other formats can hold."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection

from nlnet.images import photoshop, tiff_tags
from nlnet.images.exif import (
    DESCRIPTION,
    EXIF_DIRECTORY,
    LONGEST_TEXT,
    MAKER_NOTE,
    Resolution,
    orientation_of,
    read_tags,
    resolution_of,
    without_thumbnail,
)
from nlnet.images.ifd import ByteOrder, Tags

LARGEST_SEGMENT = 65533
"""Bytes of one segment of a JPEG file."""
THUMBNAIL_NOTE = "its embedded thumbnail is left out, as it shows the noise"
_XMP_THUMBNAILS = re.compile(rb"<(xmp|xap):Thumbnails\b.*?</\1:Thumbnails>", re.DOTALL)
_WITH_THUMBNAILS = ("exif", "xmp", "resources")
_SAME_AS_NOTHING = {"", "sRGB", "tIME", "pHYs", "iCCP", "eXIf", "sBIT", "bKGD"}
"""PNG chunks that other formats need not have, or have in their own way."""


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a file in its own format, such as a chunk of PNG.

    The name is for messages that say it is lost; empty if other formats hold it as well.
    """

    name: str
    data: bytes


@dataclasses.dataclass(frozen=True)
class Tiling:
    """How a TIFF page is cut, and what smaller versions of it there are.

    Parameters
    ----------
    tile : pair of int or None
        Rows and columns of a tile; None for strips.
    levels : tuple of int
        How many times smaller every level of the pyramid is.
    chained : bool
        Whether levels are the following pages, not sub-images.
    """

    tile: tuple[int, int] | None = None
    levels: tuple[int, ...] = ()
    chained: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Metadata:
    """What an image file says besides its pixels; all of it as bytes, as they were.

    Parameters
    ----------
    origin : str
        The name of the format it comes from.
    exif : bytes or None
        EXIF, beginning with its byte order.
    icc, xmp, iptc : bytes or None
        Color profile, XMP packet, IPTC records.
    resources : bytes or None
        Photoshop's image resources, IPTC among them.
    resolution : Resolution or None
        What the format itself says of it, not EXIF.
    tags : Tags or None
        The entries of a TIFF page that are not about how its pixels are stored.
    parts : tuple of Part
        Chunks of PNG, and segments of JPEG that other formats do not have.
    pixel_format : bytes
        How PNG stored the pixels; some of its chunks have a meaning for that alone.
    byte_order : str
        Of arrays, ``<`` or ``>``.
    tiling : Tiling
        How TIFF stored the pixels.
    encoding : (quality, halved) or None
        Quality of a JPEG file, and whether its chroma has half the size.
    animation : (delays, loop) or None
        Milliseconds that each frame is shown, and how often all are, 0 for ever.
    notes : tuple of str
        What of it was left out, for people.
    """

    origin: str
    exif: bytes | None = None
    icc: bytes | None = None
    xmp: bytes | None = None
    iptc: bytes | None = None
    resources: bytes | None = None
    resolution: Resolution | None = None
    tags: Tags | None = None
    parts: tuple[Part, ...] = ()
    pixel_format: bytes = b""
    byte_order: ByteOrder = "<"
    tiling: Tiling = Tiling()
    encoding: tuple[int, bool] | None = None
    animation: tuple[tuple[int, ...], int] | None = None
    notes: tuple[str, ...] = ()

    @property
    def exif_tags(self) -> Tags:
        """The entries of EXIF, or of the TIFF page it was."""
        return self.tags or read_tags(self.exif or b"")

    @property
    def orientation(self) -> int:
        """How the pixels are to be turned, as EXIF counts it from 1 to 8."""
        return orientation_of(self.exif_tags)

    def resolution_for(self, target: str) -> Resolution | None:
        """Return the resolution to write, which in another format may be that of EXIF."""
        if self.resolution is not None or self.origin == target:
            return self.resolution
        return resolution_of(self.exif_tags)

    def cleaned(self) -> Metadata:
        """Return it without thumbnails, which is noted, and with the IPTC among the resources."""
        clean = dataclasses.replace(
            self,
            exif=self.exif and without_thumbnail(self.exif),
            xmp=self.xmp and _XMP_THUMBNAILS.sub(b"", self.xmp),
            resources=self.resources and photoshop.without_thumbnails(self.resources),
        )
        if clean.iptc is None and clean.resources is not None:
            clean = dataclasses.replace(clean, iptc=photoshop.iptc_of(clean.resources))
        cut = any(getattr(self, name) != getattr(clean, name) for name in _WITH_THUMBNAILS)
        return clean.noting(THUMBNAIL_NOTE) if cut else clean

    def noting(self, *notes: str) -> Metadata:
        """Return it with something more to say of what was left out."""
        return dataclasses.replace(self, notes=tuple(dict.fromkeys((*self.notes, *notes))))

    def profile_for(self, channels: int) -> bytes | None:
        """Return the color profile, if it is one for gray or for RGB, as the image is."""
        fits = self.icc is not None and (self.icc[16:20] == b"GRAY") == (channels == 1)
        return self.icc if fits else None

    def all_resources(self) -> bytes | None:
        """Return Photoshop's resources, with the file's own IPTC if they contain none."""
        if self.iptc is None:
            return self.resources
        given = self.resources or b""
        if photoshop.iptc_of(given) is not None:
            return given
        return given + b"\0" * (len(given) % 2) + photoshop.with_iptc(self.iptc)

    def lost_in(self, target: str, channels: int, held: Collection[str]) -> list[str]:
        """Name the metadata that is lost in the format `target`, which holds the kinds in `held`.

        Kinds are ``exif``, ``icc``, ``xmp`` and ``iptc``.
        """
        kinds = {"exif": "EXIF", "icc": "the color profile", "xmp": "XMP", "iptc": "IPTC"}
        lost = [
            name
            for kind, name in kinds.items()
            if getattr(self, kind) is not None and kind not in held
        ]
        if "icc" in held and self.icc is not None and self.profile_for(channels) is None:
            lost.append("the color profile, which is for another kind of image")
        if self.origin == target:
            return lost
        if self.parts:
            names = dict.fromkeys(part.name for part in self.parts)
            plain = "sRGB" in names  # which is what others take an image without a profile for
            skip = _SAME_AS_NOTHING | ({"gAMA", "cHRM"} if plain or self.icc is not None else set())
            lost += [name for name in names if name not in skip]
        if self.tags is not None:
            lost += tiff_tags.names_of_private(self.tags.entries)
            if len(self.tags.data(DESCRIPTION) or b"") > LONGEST_TEXT:
                lost.append("the long description")
        if self.animation is not None:
            lost.append("how long its frames are shown")
        if target == "JPEG":
            sizes = {"EXIF": len(self.exif or b""), "XMP": len(self.xmp or b"")}
            found = [(name, size) for name, size in sizes.items() if not fits_segment(size)]
            lost += [f"{name} (of {size} bytes)" for name, size in found]
        return lost

    @property
    def described_dtype(self) -> str | None:
        """The type of the values as OME's description of a TIFF file names it, if it does."""
        text = None if self.tags is None else self.tags.data(DESCRIPTION)
        found = re.search(rb'<Pixels[^>]*\sType="(\w+)"', text or b"")
        name = None if found is None else found[1].decode()
        return {"float": "float32", "double": "float64"}.get(str(name), name)

    def without_description(self) -> Metadata:
        """Return the rest."""
        if self.tags is None:
            return self
        entries = {tag: entry for tag, entry in self.tags.entries.items() if tag != DESCRIPTION}
        return dataclasses.replace(self, tags=Tags(self.tags.layout, entries))

    def moves_maker_notes(self, target: str) -> bool:
        """Tell whether maker notes move, which breaks offsets that they may have into the file."""
        inner = self.exif_tags.entries.get(EXIF_DIRECTORY)
        moves = "TIFF" in (self.origin, target)
        return moves and inner is not None and MAKER_NOTE in (inner.directory or {})


def fits_segment(size: int) -> bool:
    """Tell whether EXIF or XMP fits into one segment of a JPEG file, with what marks it there."""
    return size <= LARGEST_SEGMENT - 32
