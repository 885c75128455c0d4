"""Image files as arrays, with their bit depth, alpha and metadata kept.

Most formats go through libvips (pyvips with its binary wheel): it reads and writes 16-bit RGB PNG,
which Pillow silently cuts to 8 bits, and keeps color profiles, resolution and EXIF. Pillow plus
tifffile would be two code paths, still without 16-bit RGB PNG, and import no faster (both about
0.02 s). What the wheel lacks is added here: PGM and PPM, EXIF in TIFF files, and ``.npy``.
"""

from __future__ import annotations

from collections.abc import Sequence

from nlnet.errors import InputError
from nlnet.files import write_atomically
from nlnet.images.content import MAX_PIXELS, ImageFile, PathLike, Source
from nlnet.images.formats import SUFFIXES, check_holds, format_of, recognize

__all__ = [
    "MAX_PIXELS",
    "SUFFIXES",
    "ImageFile",
    "check_format",
    "decode",
    "encode",
    "keeps_format",
    "losses",
    "read_image",
    "read_pages",
    "suffix_of",
    "write_image",
    "write_pages",
]


def read_image(path: PathLike, *, max_pixels: int = MAX_PIXELS) -> ImageFile:
    """Read an image file that has one page.

    Raises
    ------
    FileError
        If it cannot be opened, is no image of a known format, or is damaged or cut short.
    InputError
        If it is an image of another kind, such as CMYK or a stack of pages, or has more than
        `max_pixels`; then nothing of it has been decoded.
    """
    return _only_page(Source.of_path(path), max_pixels)


def read_pages(path: PathLike, *, max_pixels: int = MAX_PIXELS) -> Sequence[ImageFile]:
    """Check an image file and return its pages, each of which is decoded when it is asked for.

    Most files have one page; TIFF and npy files may have more.

    Raises
    ------
    FileError, InputError
        As `read_image`; damage in the pixels is found when a page is decoded.
    """
    source = Source.of_path(path)
    return recognize(source).codec.read(source, max_pixels)


def decode(data: bytes, name: str, *, max_pixels: int = MAX_PIXELS) -> ImageFile:
    """Read an image from memory, as `read_image` does from a file; messages call it `name`."""
    return _only_page(Source(name, data=data), max_pixels)


def suffix_of(data: bytes, name: str) -> str:
    """Tell the suffix that fits a file by its first bytes; raise FileError if it is no image."""
    return recognize(Source(name, data=data)).suffixes[0]


def write_image(path: PathLike, image: ImageFile) -> None:
    """Write an image in the format its suffix names, whole or not at all.

    Raises
    ------
    FileError
        If it cannot be written; a file that was there is then unharmed.
    InputError
        If the suffix is unknown, or the format cannot hold the image.
    """
    write_pages(path, [image])


def write_pages(path: PathLike, pages: Sequence[ImageFile]) -> None:
    """Write pages of one size and kind, as `write_image` writes a single one."""
    check_format(path, pages[0], len(pages))
    write_atomically(path, format_of(path).codec.encode(pages))


def encode(image: ImageFile, suffix: str) -> bytes:
    """Return an image as the bytes of a file in the format that the suffix names.

    Raises
    ------
    InputError
        If the suffix is unknown, or the format cannot hold the image.
    """
    name = f"image{suffix}"
    check_format(name, image)
    return format_of(name).codec.encode([image])


def check_format(path: PathLike, image: ImageFile, count: int = 1) -> None:
    """Raise InputError unless the suffix is known and its format can hold `count` such pages."""
    check_holds(format_of(path), image, count)


def keeps_format(source: PathLike, target: PathLike) -> bool:
    """Tell whether a file's content is of the format that the target's suffix names."""
    return recognize(Source.of_path(source)) is format_of(target)


def losses(path: PathLike, image: ImageFile) -> tuple[str, ...]:
    """Say what of an image the format of that suffix keeps in another way, or not at all."""
    target = format_of(path)
    said = []
    if target.name == "WebP" and image.channels == 1:
        said.append("WebP has no gray images, so it is written as RGB")
    if not target.metadata and image.metadata is not None:
        said.append(f"{target.name} holds no metadata, so EXIF and color profile are left out")
    return tuple(said)


def _only_page(source: Source, max_pixels: int) -> ImageFile:
    pages = recognize(source).codec.read(source, max_pixels)
    if len(pages) > 1:
        raise InputError(f"{source.name!r} has {len(pages)} pages, but must have one.")
    return pages[0]
