"""Options of writing a file, where its format leaves a choice."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.images.content import ImageFile
from nlnet.inputs import DATA_RANGES

DEPTHS = ("uint8", "uint16", "float32")
_LUMA = (0.299, 0.587, 0.114)


@dataclasses.dataclass(frozen=True)
class WritingOptions:
    """How to write a file.

    Parameters
    ----------
    jpeg_quality : int or None, optional
        From 1 to 100; None for 95, and where a JPEG file is denoised, for what the file has.
    halved_chroma : bool or None, optional
        Whether chroma of a JPEG has half the size; None for what its quality suggests.
    webp_quality, avif_quality : int or None, optional
        From 1 to 100; None to lose nothing.
    depth : {"uint8", "uint16", "float32"} or None, optional
        Convert pixels to that type: white to the white of integers, while floating values keep
        their units. None to keep the type they have.
    background : tuple of int or None, optional
        A color, three numbers from 0 to 255, to put behind a transparent image, which is then
        written without transparency.
    pyramid : bool, optional
        Write TIFF as tiles, with smaller versions of the image for viewers. Pages that had them
        keep theirs in any case.

    Raises
    ------
    InputError
        If a number or name is none of these.

    Examples
    --------
    >>> WritingOptions(depth="uint8", jpeg_quality=80).jpeg_quality
    80
    """

    jpeg_quality: int | None = None
    halved_chroma: bool | None = None
    webp_quality: int | None = None
    avif_quality: int | None = None
    depth: str | None = None
    background: tuple[int, int, int] | None = None
    pyramid: bool = False

    def __post_init__(self) -> None:
        for name in ("jpeg_quality", "webp_quality", "avif_quality"):
            quality = getattr(self, name)
            if quality is not None and not (isinstance(quality, int) and 1 <= quality <= 100):
                raise InputError(f"{name} is {quality!r}, but must be from 1 to 100.")
        if self.depth is not None and self.depth not in DEPTHS:
            raise InputError(f"depth is {self.depth!r}, but must be one of {', '.join(DEPTHS)}.")
        color = self.background
        if color is not None and not (
            isinstance(color, tuple)
            and len(color) == 3
            and all(isinstance(part, int) and 0 <= part <= 255 for part in color)
        ):
            raise InputError(
                f"background is {color!r}, but must be three whole numbers from 0 to 255."
            )


PLAIN = WritingOptions()
"""The defaults."""


def check_alike(pages: Sequence[ImageFile]) -> None:
    """Raise InputError unless these are images, of one size and kind.

    Examples
    --------
    >>> check_alike([ImageFile(np.zeros((4, 4, 5)))])
    Traceback (most recent call last):
    nlnet.errors.InputError: The pixels have shape (4, 4, 5), but must be (H, W) or (H, W, 3).
    """
    if not pages:
        raise InputError("There are no pages to write, but there must be at least one.")
    first = pages[0]
    shape = first.pixels.shape
    if first.pixels.size == 0 or not (len(shape) == 2 or (len(shape) == 3 and shape[2] == 3)):
        raise InputError(f"The pixels have shape {shape}, but must be (H, W) or (H, W, 3).")
    for page in pages:
        alpha = page.alpha
        if alpha is not None and (alpha.shape, alpha.dtype) != (shape[:2], page.pixels.dtype):
            raise InputError(
                f"Alpha is {alpha.dtype} of shape {alpha.shape}, but must be as the pixels are, "
                f"{page.pixels.dtype} of shape {shape[:2]}."
            )
        alike = (page.pixels.shape, page.pixels.dtype, alpha is None)
        if alike != (shape, first.pixels.dtype, first.alpha is None):
            raise InputError("The pages differ in size or kind, but all must be alike.")


def depth_of(image: ImageFile, options: WritingOptions) -> str:
    """Return the name of the dtype that an image is written with."""
    return options.depth or image.pixels.dtype.name


def has_alpha(image: ImageFile, options: WritingOptions) -> bool:
    """Tell whether an image is written with transparency."""
    return image.alpha is not None and options.background is None


def scales_white(image: ImageFile, *, keeps_white: bool, options: WritingOptions) -> bool:
    """Tell whether values are scaled since the format has no other white than its dtype's."""
    return (
        not keeps_white
        and options.depth is None
        and image.data_range is not None
        and image.data_range != DATA_RANGES.get(image.pixels.dtype.newbyteorder("="))
        and image.pixels.dtype.kind == "u"
    )


def loses_description(image: ImageFile, options: WritingOptions) -> bool:
    """Tell whether the file's description names another type than its values will have."""
    named = None if image.metadata is None else image.metadata.described_dtype
    return named is not None and named != depth_of(image, options)


def prepare(image: ImageFile, options: WritingOptions, *, keeps_white: bool) -> ImageFile:
    """Return an image as it is written: of the depth and on the background that are asked for.

    Raises
    ------
    InputError
        If it has to be scaled, but its value of white is not known.
    """
    if image.alpha is not None and options.background is not None:
        image = _flatten(image, options.background)
    if image.metadata is not None and loses_description(image, options):
        image = dataclasses.replace(image, metadata=image.metadata.without_description())
    dtype = np.dtype(depth_of(image, options))
    scales = scales_white(image, keeps_white=keeps_white, options=options)
    if dtype.kind == "u" and (scales or options.depth is not None):
        pixels = _scaled(image.pixels, _white(image), dtype)
        alpha = image.alpha
        if alpha is not None:
            alpha = _scaled(alpha, _white_of(alpha.dtype), dtype)
        return dataclasses.replace(image, pixels=pixels, alpha=alpha, data_range=None)
    # In native byte order, as the codecs need it; floating values keep their units.
    pixels = image.pixels.astype(dtype, copy=False)
    alpha = None if image.alpha is None else image.alpha.astype(dtype, copy=False)
    return dataclasses.replace(image, pixels=pixels, alpha=alpha)


def _white(image: ImageFile) -> float:
    return image.data_range or _white_of(image.pixels.dtype)


def _white_of(dtype: np.dtype[Any]) -> float:
    white = DATA_RANGES.get(dtype.newbyteorder("="))
    if white is None:
        raise InputError(
            f"The image has {dtype.name} values, for which no white is known, so they cannot be "
            "converted; name it with data_range (--data-range)."
        )
    return white


def _scaled(values: Array, white: float, dtype: np.dtype[Any]) -> Array:
    """Return values of another unsigned type, whose white is that of the type."""
    target = _white_of(dtype)
    if values.dtype == dtype and white == target:
        return values
    if values.dtype.name in ("uint8", "uint16"):
        # A table of all values, so that a large image is not copied as float64.
        table = _scaled(np.arange(np.iinfo(values.dtype).max + 1.0), white, dtype)
        return np.asarray(table[values])
    scaled = np.multiply(values, target / white, dtype=np.float64)
    rounded: Array = np.rint(np.clip(np.nan_to_num(scaled, nan=0.0), 0, target)).astype(dtype)
    return rounded


def _flatten(image: ImageFile, background: tuple[int, int, int]) -> ImageFile:
    assert image.alpha is not None
    pixels = image.pixels
    share = image.alpha / _white_of(image.alpha.dtype)
    color = np.asarray(background) * (_white(image) / 255)
    if image.channels == 1:
        color = color @ np.asarray(_LUMA)
    else:
        share = share[..., np.newaxis]
    mixed = pixels * share + color * (1 - share)
    mixed = np.rint(mixed) if pixels.dtype.kind in "ui" else mixed
    return dataclasses.replace(image, pixels=mixed.astype(pixels.dtype), alpha=None)
