"""The entries of TIFF pages: those about how pixels are stored, and names of others."""

from collections.abc import Iterable

from nlnet.images.exif import PHOTO_TAGS

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
STRIP_OFFSETS, SAMPLES, ROWS_PER_STRIP, STRIP_SIZES, PLANAR = 273, 277, 278, 279, 284
PREDICTOR, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_SIZES = 317, 322, 323, 324, 325
EXTRA, SAMPLE_FORMAT = 338, 339
TILE = frozenset({TILE_WIDTH, TILE_HEIGHT})
PREMULTIPLIED = 1
"""The value of `EXTRA` for alpha that the colors are multiplied with."""
SUBFILE, SUB_IMAGES = 254, 330
REDUCED = 1
"""The bit of `SUBFILE` for a smaller version of another page or image."""
XMP, IPTC, RESOURCES, ICC = 700, 33723, 34377, 34675
MAKE, MODEL, DNG_VERSION = 271, 272, 50706
WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, PALETTE, YCBCR, CFA, LINEAR_RAW = 0, 1, 2, 3, 6, 32803, 34892
"""Values of `PHOTOMETRIC`; the last two are of raw files."""
UNCOMPRESSED, JPEG, DEFLATE = 1, 7, 8
"""Values of `COMPRESSION`."""

STORAGE = frozenset(
    # Halftoning, fill order, cells, the smallest and largest values, CCITT options, palettes.
    {263, 264, 265, 266, 280, 281, 288, 289, 292, 293, 320, 321, 326, 327, 328, 340, 341}
    | {WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC, STRIP_OFFSETS, SAMPLES, ROWS_PER_STRIP}
    | {STRIP_SIZES, PLANAR, PREDICTOR, TILE_WIDTH, TILE_HEIGHT, TILE_OFFSETS, TILE_SIZES}
    | {EXTRA, SAMPLE_FORMAT, 347, *range(512, 522), 529, 530, 531, 532, 559}
)
"""Entries about the storage of pixels, or made of them: a new file has its own."""

NOT_KEPT = {
    SUB_IMAGES: "sub-images",
    37724: "Photoshop layers",
    # Values with places inside the file, which are others in a new one.
    33560: "SIS tags",
    33629: "MetaMorph tags",
    33630: "MetaMorph tags",
    33631: "MetaMorph tags",
    34412: "LSM tags",
}
"""Entries that do not fit the new pixels or the new file."""

_NAMES = {
    269: "DocumentName",
    285: "PageName",
    286: "XPosition",
    287: "YPosition",
    290: "GrayResponseUnit",
    291: "GrayResponseCurve",
    301: "TransferFunction",
    318: "WhitePoint",
    319: "PrimaryChromaticities",
    **dict.fromkeys((33550, 33922, 34264, 34735, 34736, 34737, 42112, 42113), "GeoTIFF tags"),
    **dict.fromkeys((50838, 50839), "ImageJ's LUTs and overlays"),
}
_NOT_MISSED = {SUBFILE, 255, 297, XMP, IPTC, RESOURCES, ICC}
"""Entries without a meaning elsewhere, and those that other formats hold in their own way."""


def names_of_private(tags: Iterable[int]) -> list[str]:
    """Name the entries that have no place outside of TIFF files, each name once.

    Examples
    --------
    >>> names_of_private([270, 33550, 34735, 65000])
    ['GeoTIFF tags', 'TIFF tag 65000']
    """
    private = set(tags) - PHOTO_TAGS - _NOT_MISSED
    return list(dict.fromkeys(_NAMES.get(tag, f"TIFF tag {tag}") for tag in sorted(private)))
