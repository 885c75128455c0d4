"""A copy of a DNG with another mosaic and other previews.

Directories stay where they are, and so does everything else that they point to: whatever knows a
place in the file, such as the notes of a camera's maker, is right in the copy, too.
"""

import io
import struct
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyvips

from nlnet.arrays import Array
from nlnet.images import tiff_tags as tiff
from nlnet.images.ifd import LONG, SHORT, Layout, Tags, page_offsets, read_directory, read_layout
from nlnet.images.ifd_writing import entries_of

_FLOAT = 3
_PREVIEWS = (1, 65537)
_ENCODING = (tiff.PREDICTOR, *tiff.TILE, tiff.TILE_OFFSETS, tiff.TILE_SIZES, 50712)
"""How the old pixels were stored; the last one is a table of values."""

_STALE = (50781, 50972, 51041, 51111)
"""True for the old mosaic alone: identity, digest, noise, and another digest."""

_SHORTS = (tiff.BITS, tiff.COMPRESSION, tiff.PHOTOMETRIC)
_READ = {tiff.SUBFILE, tiff.SUB_IMAGES, tiff.DNG_VERSION, *tiff.STORAGE}
_MOST_DIRECTORIES = 20
_GAP = 64
"""Bytes that may lie between one strip or tile and the next."""

_QUALITY = 90


def copy_with(data: bytes, mosaic: npt.NDArray[np.uint16], picture: Array) -> bytes | None:
    """Return a DNG with other pixels; None if the file is none, or has no such mosaic.

    Parameters
    ----------
    data : bytes
        The file.
    mosaic : (H, W) array
        All pixels of the sensor; a table of values that the file has was applied to them.
    picture : (h, w, 3) array of uint8
        What the previews are to show, as the sensor was held.
    """
    directories = _directories(data)
    mosaics = [tags for tags in directories.values() if _is_mosaic(tags, mosaic.shape)]
    if len(mosaics) != 1 or not any(tiff.DNG_VERSION in tags for tags in directories.values()):
        return None
    file = bytearray(data)
    for place, tags in directories.items():
        pixels, changes = b"", {tiff.COMPRESSION: tiff.UNCOMPRESSED}
        if tags is mosaics[0]:
            pixels = mosaic.astype(f"{tags.layout.order}u2").tobytes()
            changes[tiff.BITS] = 16
        elif _is_preview(tags):
            small = shrunk(picture, tags.number(tiff.WIDTH, 1), tags.number(tiff.HEIGHT, 1))
            if tags.number(tiff.COMPRESSION, 1) == tiff.JPEG:
                pixels = as_jpeg(small)
                changes = {tiff.COMPRESSION: tiff.JPEG, tiff.PHOTOMETRIC: tiff.YCBCR}
            else:
                pixels = bytes(small.write_to_memory())
        if pixels:
            changes |= {
                tiff.STRIP_OFFSETS: _store(file, tags, pixels),
                tiff.STRIP_SIZES: len(pixels),
            }
            if tiff.TILE_OFFSETS in tags or tiff.ROWS_PER_STRIP in tags:
                changes[tiff.ROWS_PER_STRIP] = tags.number(tiff.HEIGHT, 1)
            _rewrite(file, place, tags.layout, changes, (*_STALE, *_ENCODING))
        else:
            _rewrite(file, place, tags.layout, {}, _STALE)
    return bytes(file)


def shrunk(picture: Array, width: int, height: int) -> pyvips.Image:
    """Return a picture in another size."""
    return pyvips.Image.new_from_array(picture).thumbnail_image(width, height=height, size="force")


def as_jpeg(picture: pyvips.Image) -> bytes:
    """Return a picture as a JPEG file without any metadata."""
    encoded: bytes = picture.jpegsave_buffer(Q=_QUALITY, keep="none")
    return encoded


def _directories(data: bytes) -> dict[int, Tags]:
    """Return what is known of the images in a TIFF file, by the places of their directories."""
    stream = io.BytesIO(data)
    found = {}
    try:
        layout, first = read_layout(stream)
        places = page_offsets(stream, layout, first, _MOST_DIRECTORIES)
        for place in places:  # which sub-images join
            found[place] = read_directory(stream, layout, place, _READ, damaged=[])
            more = found[place].numbers(tiff.SUB_IMAGES)
            places += [each for each in more if each not in places][:_MOST_DIRECTORIES]
    except (ValueError, struct.error):
        return {}
    return found


def _is_mosaic(tags: Tags, shape: tuple[int, ...]) -> bool:
    """Tell whether an image is of whole numbers of a sensor with so many rows and columns."""
    return (
        tags.number(tiff.SUBFILE, 0) == 0
        and tags.number(tiff.PHOTOMETRIC, 0) in (tiff.CFA, tiff.LINEAR_RAW)
        and tags.number(tiff.SAMPLE_FORMAT, 1) != _FLOAT
        and (tags.number(tiff.HEIGHT, 0), tags.number(tiff.WIDTH, 0)) == shape
    )


def _is_preview(tags: Tags) -> bool:
    """Tell whether an image is a preview in color that can be replaced."""
    form = tags.number(tiff.COMPRESSION, 1), tags.number(tiff.PHOTOMETRIC, 0)
    known = form in ((tiff.UNCOMPRESSED, tiff.RGB), (tiff.JPEG, tiff.RGB), (tiff.JPEG, tiff.YCBCR))
    return known and tags.number(tiff.SUBFILE, 0) in _PREVIEWS and {8} == {*tags.numbers(tiff.BITS)}


def _store(file: bytearray, tags: Tags, pixels: bytes) -> int:
    """Put pixels where strips or tiles were, if there is room, else at the end; return where."""
    tiled = tiff.TILE_OFFSETS in tags
    offsets = tags.numbers(tiff.TILE_OFFSETS if tiled else tiff.STRIP_OFFSETS)
    sizes = tags.numbers(tiff.TILE_SIZES if tiled else tiff.STRIP_SIZES)
    first = min(offsets)
    last = max(offset + size for offset, size in zip(offsets, sizes, strict=True))
    if sum(sizes) + _GAP * len(sizes) >= last - first:  # nothing else lies between them
        if len(pixels) <= last - first:
            file[first:last] = pixels.ljust(last - first, b"\0")
            return first
        # At the end of the file, the old ones go; elsewhere, nothing may move.
        file[first:last] = b"" if last == len(file) else bytes(last - first)
    file += bytes(len(file) % 2)
    file += pixels
    return len(file) - len(pixels)


def _rewrite(
    file: bytearray, place: int, layout: Layout, changes: Mapping[int, int], without: Sequence[int]
) -> None:
    """Write a directory where it was, with some numbers changed; it gets no longer."""
    start, size = place + layout.count_size, layout.entry_size
    (count,) = struct.unpack_from(layout.word(layout.count_size), file, place)
    end = start + count * size
    records = {}
    for at in range(start, end, size):
        (tag,) = struct.unpack_from(layout.word(2), file, at)
        if tag not in without:
            records[tag] = bytes(file[at : at + size])
    values = {tag: (SHORT if tag in _SHORTS else LONG, changes[tag]) for tag in changes}
    for tag, entry in entries_of(values, layout).items():
        value = layout.pointer(1) + entry.data.ljust(layout.offset_size, b"\0")
        records[tag] = struct.pack(layout.order + "HH", tag, entry.kind) + value
    table = struct.pack(layout.word(layout.count_size), len(records))
    table += b"".join(records[tag] for tag in sorted(records))
    last = end + layout.offset_size
    table += file[end:last]  # where the next directory is
    file[place:last] = table.ljust(last - place, b"\0")
