"""Image files as arrays, with their bit depth, alpha and metadata kept.

The pixels of most formats go through libvips (pyvips with its binary wheel): it reads and writes
16-bit RGB PNG, which Pillow silently cuts to 8 bits. Metadata (EXIF, color profile, chunks, entries
of TIFF pages) is handled here, byte for byte, because libvips would rewrite some of it. The formats
that its wheel lacks are read and written here as well: PGM and PPM, BMP, npy, and TIFF files of
doubles.
"""

import io
from collections.abc import Sequence

import numpy as np

from nlnet.atomic import write_atomically
from nlnet.defaults import MAX_PIXELS
from nlnet.errors import InputError
from nlnet.images.content import ImageFile, Pages, PathLike, Source
from nlnet.images.formats import (
    SUFFIXES,
    Format,
    check_format,
    format_of,
    read_source,
    recognize,
    result_suffix,
)
from nlnet.images.libvips import animation_error
from nlnet.images.raw_files import RawFileError, has_raw_suffix, is_raw
from nlnet.images.writing import (
    PLAIN,
    WritingOptions,
    check_alike,
    depth_of,
    has_alpha,
    loses_description,
    prepare,
    scales_white,
)

__all__ = [
    "MAX_PIXELS",
    "SUFFIXES",
    "ImageFile",
    "WritingOptions",
    "check_format",
    "decode",
    "encode",
    "is_raw",
    "keeps_format",
    "losses",
    "read_image",
    "read_pages",
    "read_unless_raw",
    "result_suffix",
    "suffix_of",
    "write_image",
    "write_pages",
]


def read_image(path: PathLike, *, max_pixels: int = MAX_PIXELS) -> ImageFile:
    """Read an image file that has one page.

    Parameters
    ----------
    path : path
        The file; its format is told by its content.
    max_pixels : int, optional
        Larger images are refused.

    Returns
    -------
    ImageFile
        Pixels, alpha, and what else the file says.

    Raises
    ------
    FileError
        If it cannot be opened, is no image of a known format, or is damaged or cut short.
    InputError
        If it is an image of another kind, such as CMYK or a stack of pages, or has more than
        `max_pixels`; then nothing of it has been decoded.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> write_image(folder / "a.png", ImageFile(np.zeros((20, 30, 3), np.uint16)))
    >>> image = read_image(folder / "a.png")
    >>> image.pixels.shape, image.pixels.dtype, image.alpha
    ((20, 30, 3), dtype('uint16'), None)
    """
    return _only_page(Source.of_path(path), max_pixels)


def read_pages(path: PathLike, *, max_pixels: int = MAX_PIXELS) -> Pages:
    """Check an image file and return its pages, each of which is decoded when it is asked for.

    Most files have one page; TIFF and npy files may have more, and so have animated GIF files.

    Raises
    ------
    FileError, InputError
        As `read_image`; damage in the pixels is found when a page is decoded.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "stack.tif"
    >>> write_pages(path, [ImageFile(np.full((20, 30), value, np.uint8)) for value in range(5)])
    >>> pages = read_pages(path)
    >>> len(pages), int(pages[3].pixels.max())
    (5, 3)
    """
    return read_source(Source.of_path(path), max_pixels)


def read_unless_raw(path: PathLike, max_pixels: int) -> Pages | None:
    """Return the pages as `read_pages` does, None if LibRaw is to read the file.

    That is so if its name or its content is that of a camera's raw file.
    """
    if has_raw_suffix(path):
        return None
    try:
        return read_pages(path, max_pixels=max_pixels)
    except RawFileError:
        return None


def decode(data: bytes, name: str, *, max_pixels: int = MAX_PIXELS) -> ImageFile:
    """Read an image from memory, as `read_image` does from a file; messages call it `name`."""
    return _only_page(Source(name, data=data), max_pixels)


def suffix_of(data: bytes, name: str) -> str:
    """Tell the suffix that fits a file by its first bytes; raise FileError if it is no image."""
    return recognize(Source(name, data=data), io.BytesIO(data)).suffixes[0]


def write_image(path: PathLike, image: ImageFile, options: WritingOptions = PLAIN) -> None:
    """Write an image in the format its suffix names, whole or not at all.

    Parameters
    ----------
    path : path
        The file to write; one that is there is replaced.
    image : ImageFile
        Pixels, and what else there is to keep.
    options : WritingOptions, optional
        Quality, depth, and what is behind a transparent image.

    Raises
    ------
    FileError
        If it cannot be written; a file that was there is then unharmed.
    InputError
        If the suffix is unknown, or the format cannot hold the image.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.jpg"
    >>> deep = ImageFile(np.zeros((20, 30), np.uint16))
    >>> write_image(path, deep, WritingOptions(depth="uint8", jpeg_quality=80))
    """
    write_pages(path, [image], options)


def write_pages(
    path: PathLike, pages: Sequence[ImageFile], options: WritingOptions = PLAIN
) -> None:
    """Write pages of one size and kind, as `write_image` writes a single one.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "stack.npy"
    >>> write_pages(path, [ImageFile(np.zeros((20, 30)))] * 3)
    >>> np.load(path).shape
    (3, 20, 30)
    """
    suffix = format_of(path).suffixes[0]
    write_atomically(path, encode(pages, suffix, options))


def encode(
    pages: ImageFile | Sequence[ImageFile], suffix: str, options: WritingOptions = PLAIN
) -> bytes:
    """Return an image, or pages of one size and kind, as the bytes of a file.

    Raises
    ------
    InputError
        If the suffix is unknown, or the format that it names cannot hold the image.
    """
    name, pages = f"image{suffix}", _as_pages(pages)
    target = format_of(name)
    check_alike(pages)
    check_format(name, pages[0], len(pages), options)
    prepared = [prepare(page, options, keeps_white=target.white) for page in pages]
    return target.codec.encode(prepared, options)


def keeps_format(pages: Pages, target: PathLike) -> bool:
    """Tell whether pages are from a file of the format that the target's suffix names."""
    return pages.format == format_of(target).name


def losses(
    path: PathLike, pages: ImageFile | Sequence[ImageFile], options: WritingOptions = PLAIN
) -> tuple[str, ...]:
    """Say what the format of that suffix keeps in another way, or not at all: each thing once."""
    pages = _as_pages(pages)
    target = format_of(path)
    said = [note for page in pages for note in _changes(page, target, options)]
    lost, moved = {}, False
    for page in pages:
        if page.metadata is not None:
            channels = page.channels if target.gray else 3
            names = page.metadata.lost_in(target.name, channels, target.metadata)
            lost.update(dict.fromkeys(names))
            moved |= "exif" in target.metadata and page.metadata.moves_maker_notes(target.name)
    if lost:
        said.append(f"{target.name} has no place for {', '.join(lost)}: left out")
    if moved:
        said.append("its maker's notes change their place, so programs may fail to read them")
    return tuple(dict.fromkeys(said))


def _changes(image: ImageFile, target: Format, options: WritingOptions) -> list[str]:
    """Say which values of an image the format keeps in another way."""
    gif, avif = target.name == "GIF", target.name == "AVIF"
    depth, alpha = depth_of(image, options), has_alpha(image, options)
    misnamed = loses_description(image, options)
    half = gif and alpha and not np.isin(image.bands[..., -1], (0, 255)).all()
    lossy = image.metadata is not None and image.metadata.origin in ("AVIF", "HEIC")
    large = avif and lossy and options.avif_quality is None
    rounded = image.pixels.dtype.kind == "f" and np.dtype(depth).kind == "u"
    colored = image.channels == 1 and not target.gray
    changes = {
        f"{target.name} has no gray images, so it is written as RGB": colored,
        "GIF has 256 colors at most, so colors are rounded": gif and image.channels == 3,
        "GIF has no half-transparent pixels, so they become opaque or invisible": half,
        "AVIF has 12 bits at most, so values are rounded": avif and depth == "uint16",
        "AVIF is written without loss, so it may be several times as large as its source; "
        "--avif-quality 80 (avif_quality) makes it smaller": large,
        f"{depth} has no NaN, so it is written as 0": rounded and np.isnan(image.pixels).any(),
        "its OME description is left out, as it names another depth": misnamed,
    }
    said = [sentence for sentence, holds in changes.items() if holds]
    if scales_white(image, keeps_white=target.white, options=options):
        white = f"{np.iinfo(image.pixels.dtype).max}, so values are scaled to it from"
        said.append(f"{target.name} has no white but {white} {image.data_range:g}")
    return said


def _as_pages(pages: ImageFile | Sequence[ImageFile]) -> Sequence[ImageFile]:
    return [pages] if isinstance(pages, ImageFile) else list(pages)


def _only_page(source: Source, max_pixels: int) -> ImageFile:
    pages = read_source(source, max_pixels)
    if len(pages) > 1 and pages.format == "GIF":
        raise animation_error(source, f" of {len(pages)} frames")
    if len(pages) > 1:
        raise InputError(f"{source.name!r} has {len(pages)} pages, but must have one.")
    return pages[0]
