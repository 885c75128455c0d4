"""Writing TIFF files: every page keeps its own entries, tiles and pyramid, the file its byte order.

Libvips writes one set of entries for all pages, and no doubles. The pixels are strips or tiles,
compressed without loss (deflate).
"""

import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from nlnet.arrays import Array
from nlnet.images import exif, tiff_tags
from nlnet.images.content import ImageFile
from nlnet.images.ifd import FRACTION, LONG, SHORT, UNDEFINED, Directory, Entry, Layout
from nlnet.images.ifd_writing import TiffBytes, Values, entries_of, reordered
from nlnet.images.metadata import Metadata, Tiling
from nlnet.images.writing import WritingOptions

_BIG = 2**31
"""Above this many bytes of pixels, a BigTIFF is written, whose offsets have 64 bits."""
_STRIP_BYTES = 2**18
_TILE = 256
"""Side of the tiles of a new pyramid, and of its smallest level."""
_LEVEL = 4
_DIFFERENCES = 2
_SAMPLE_FORMATS = {"u": 1, "i": 2, "f": 3}
_UNASSOCIATED_ALPHA = 2


def encode_pages(pages: Sequence[ImageFile], options: WritingOptions) -> bytes:
    """Return the bytes of a file."""
    file = TiffBytes(_layout(pages))
    for page in pages:
        bands, tiling = page.bands, _tiling(page, options)
        levels = []
        for factor in tiling.levels:
            values = _add_pixels(file, _reduced(bands, factor), page.channels, tiling.tile)
            values[tiff_tags.SUBFILE] = LONG, tiff_tags.REDUCED
            levels.append(entries_of(values, file.layout))
        values = _add_pixels(file, bands, page.channels, tiling.tile)
        if levels and not tiling.chained:
            places = [file.add_directory(level) for level in levels]
            values[tiff_tags.SUB_IMAGES] = file.layout.offset_kind, places
        file.add_page(_kept_entries(page, file.layout) | entries_of(values, file.layout))
        if tiling.chained:
            for level in levels:
                file.add_page(level)
    return bytes(file)


def _layout(pages: Sequence[ImageFile]) -> Layout:
    """Return the layout of the file the pages come from, if they come from one."""
    metadata = pages[0].metadata
    given = Layout("<")
    if metadata is not None and metadata.tags is not None:
        given = metadata.tags.layout
    size = sum(
        page.pixels.nbytes + (0 if page.alpha is None else page.alpha.nbytes) for page in pages
    )
    return Layout(given.order, big=given.big or size > _BIG)


def _tiling(page: ImageFile, options: WritingOptions) -> Tiling:
    """Return the tiles and levels to write: those that the page had, or new ones."""
    side = max(page.pixels.shape[:2])
    tiling = Tiling() if page.metadata is None else page.metadata.tiling
    if options.pyramid and not tiling.levels:
        factors = [2**power for power in range(1, 31) if side > _TILE * 2 ** (power - 1)]
        return Tiling(tiling.tile or (_TILE, _TILE), tuple(factors))
    return tiling


def _reduced(bands: Array, factor: int) -> Array:
    """Return the means of squares of that side."""
    height, width = (max(1, side // factor) for side in bands.shape[:2])
    squares = bands[: height * factor, : width * factor]
    means = squares.reshape(height, -1, width, min(factor, bands.shape[1]), bands.shape[2]).mean(
        axis=(1, 3), dtype=np.float64
    )
    reduced: Array = (means if bands.dtype.kind == "f" else np.rint(means)).astype(bands.dtype)
    return reduced


def _add_pixels(
    file: TiffBytes, bands: Array, channels: int, tile: tuple[int, int] | None
) -> Values:
    """Add the strips or tiles of (H, W, samples) pixels, and return the numbers about them."""
    layout, dtype = file.layout, bands.dtype
    height, width, samples = bands.shape
    rows, columns = tile or (min(height, max(1, _STRIP_BYTES // bands[:1].nbytes)), width)
    blocks = list(_blocks(bands, rows, columns, layout, tiled=tile is not None))
    places = layout.offset_kind, [file.add(block) for block in blocks]
    sizes = layout.offset_kind, [*map(len, blocks)]
    photometric = tiff_tags.RGB if channels == 3 else tiff_tags.BLACK_IS_ZERO
    values: Values = {
        tiff_tags.WIDTH: (LONG, width),
        tiff_tags.HEIGHT: (LONG, height),
        tiff_tags.BITS: (SHORT, [8 * dtype.itemsize] * samples),
        tiff_tags.COMPRESSION: (SHORT, tiff_tags.DEFLATE),
        tiff_tags.PHOTOMETRIC: (SHORT, photometric),
        tiff_tags.SAMPLES: (SHORT, samples),
        tiff_tags.PLANAR: (SHORT, 1),
        tiff_tags.SAMPLE_FORMAT: (SHORT, [_SAMPLE_FORMATS[dtype.kind]] * samples),
    }
    if tile is None:
        values |= {tiff_tags.STRIP_OFFSETS: places, tiff_tags.STRIP_SIZES: sizes}
        values[tiff_tags.ROWS_PER_STRIP] = LONG, rows
    else:
        values |= {tiff_tags.TILE_OFFSETS: places, tiff_tags.TILE_SIZES: sizes}
        values |= {tiff_tags.TILE_HEIGHT: (SHORT, rows), tiff_tags.TILE_WIDTH: (SHORT, columns)}
    # The predictor for floating values is one that few other programs know.
    if dtype.kind in "ui":
        values[tiff_tags.PREDICTOR] = SHORT, _DIFFERENCES
    if samples > channels:
        values[tiff_tags.EXTRA] = SHORT, _UNASSOCIATED_ALPHA
    return values


def _blocks(
    bands: Array, rows: int, columns: int, layout: Layout, *, tiled: bool
) -> Iterator[bytes]:
    """Yield compressed strips or tiles; a tile is whole where it reaches beyond the image."""
    differences = bands.dtype.kind in "ui"
    # Of differences in photos, only runs repeat, and to look for more takes long.
    strategy = zlib.Z_RLE if differences else zlib.Z_DEFAULT_STRATEGY
    for top in range(0, bands.shape[0], rows):
        for left in range(0, bands.shape[1], columns):
            block = bands[top : top + rows, left : left + columns]
            if tiled:
                missing = (0, rows - block.shape[0]), (0, columns - block.shape[1]), (0, 0)
                block = np.pad(block, missing, mode="edge")
            if differences:
                unsigned = block.view(f"u{block.itemsize}")
                block = np.diff(unsigned, axis=1, prepend=unsigned.dtype.type(0))
            stored = block.astype(block.dtype.newbyteorder(layout.order), copy=False)
            packer = zlib.compressobj(_LEVEL, strategy=strategy)
            yield packer.compress(stored.tobytes()) + packer.flush()


def _kept_entries(page: ImageFile, layout: Layout) -> Directory:
    """Return the entries that say the rest."""
    metadata = page.metadata
    if metadata is None:
        return {}
    if metadata.tags is not None:
        source, entries = metadata.tags.layout, dict(metadata.tags.entries)
    else:
        source, entries = _translated(metadata)
    if metadata.profile_for(page.channels) is None:
        entries.pop(tiff_tags.ICC, None)
    return reordered(entries, source, layout)


def _translated(metadata: Metadata) -> tuple[Layout, Directory]:
    """Return the entries that say what a file of another format said."""
    tags = metadata.exif_tags
    left_out = tiff_tags.STORAGE | tiff_tags.NOT_KEPT.keys()
    entries = {tag: entry for tag, entry in tags.entries.items() if tag not in left_out}
    if metadata.resolution is not None:
        resolution: Values = {
            exif.X_RESOLUTION: (FRACTION, metadata.resolution.x),
            exif.Y_RESOLUTION: (FRACTION, metadata.resolution.y),
            exif.RESOLUTION_UNIT: (SHORT, 2),
        }
        entries |= entries_of(resolution, tags.layout)
    values = {
        tiff_tags.ICC: metadata.icc,
        tiff_tags.XMP: metadata.xmp,
        tiff_tags.IPTC: metadata.iptc,
        tiff_tags.RESOURCES: metadata.all_resources(),
    }
    entries |= {
        tag: Entry(UNDEFINED if tag != tiff_tags.XMP else 1, data)
        for tag, data in values.items()
        if data is not None
    }
    return tags.layout, entries
