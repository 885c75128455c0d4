"""Figures of images side by side, each with an enlarged detail and a caption."""

import dataclasses
import html
import importlib.resources
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyvips

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.images import ImageFile

Picture: TypeAlias = Any
"""An 8-bit RGB image of libvips, which has no types."""

_FONT = "DejaVu Sans"
_DPI = 144
_TITLE, _NOTE = (9, 20), (8, 110)
"""Sizes and shades of gray of the lines below an image."""

_FRAME = (220, 40, 40)
_GAP = 12
_WIDTH = 1840
_PANEL_WIDTHS = (240, 560)
_TALLEST = 1.25
_DETAIL_SHAPE = 0.75
"""Heights of the whole image, at most, and of the enlarged part, as shares of a panel's width."""

_ZOOM = 4
_LARGEST_DETAIL = 0.4
"""The enlarged part is at most this share of the image's sides, and at least 4 times as large."""


@dataclasses.dataclass(frozen=True, eq=False)
class Panel:
    """An image on the 0-255 scale, (H, W) or (H, W, 3), and what stands below it."""

    pixels: Array
    title: str
    note: str = ""


def draw_panels(
    panels: Sequence[Panel], centre: tuple[int, int] | None = None, *, detail_of: int = 0
) -> ImageFile:
    """Draw images of one size side by side, each above an enlarged detail of it.

    Parameters
    ----------
    panels : sequence of Panel
        From left to right.
    centre : (x, y), optional
        Pixel in the center of the detail, as near as the border allows; by default where there is
        most structure.
    detail_of : int, optional
        Number of the panel in which to look for that.

    Returns
    -------
    ImageFile
        8-bit RGB.

    Raises
    ------
    InputError
        If the images differ in size, or `centre` lies outside of them.
    """
    sizes = {panel.pixels.shape[:2] for panel in panels}
    if len(sizes) > 1:
        raise InputError(
            "Images to show must have one size, but got "
            f"{' and '.join(sorted(f'{width}x{height}' for height, width in sizes))} pixels."
        )
    (shape,) = sizes
    pictures = [_to_picture(panel.pixels) for panel in panels]
    column = (_WIDTH - (len(panels) + 1) * _GAP) // len(panels)
    column = min(max(column, _PANEL_WIDTHS[0]), _PANEL_WIDTHS[1])
    detail = _Detail.choose(shape, column)
    if centre is None:
        place = _find_detail(pictures[detail_of].numpy(), detail)
    else:
        place = _around(centre, detail, shape)
    columns = []
    for panel, picture in zip(panels, pictures, strict=True):
        lines = _text(panel.title, column, _TITLE), _text(panel.note, column, _NOTE)
        whole, part = _whole(picture, column, detail, place), detail.cut(picture, place)
        columns.append(_stack([whole, part, _stack(lines, 4)]))
    across = len(columns)
    row = pyvips.Image.arrayjoin(
        columns, across=across, shim=_GAP, background=255, halign="centre", hspacing=column
    )
    width, height = row.width + 2 * _GAP, row.height + 2 * _GAP
    return ImageFile(row.embed(_GAP, _GAP, width, height, extend="white").numpy())


@dataclasses.dataclass(frozen=True)
class _Detail:
    """The size of the enlarged part, and how much it is enlarged."""

    height: int
    width: int
    zoom: int

    @classmethod
    def choose(cls, shape: tuple[int, ...], column: int) -> "_Detail":
        """Choose the smallest whole zoom at which the part is a small one of the image."""
        height, width = column * _DETAIL_SHAPE, column
        most_y, most_x = (max(1.0, _LARGEST_DETAIL * side) for side in shape)
        zoom = max(_ZOOM, int(np.ceil(max(height / most_y, width / most_x))))
        return cls(max(1, int(height / zoom)), max(1, width // zoom), zoom)

    def cut(self, picture: Picture, place: tuple[int, int]) -> Picture:
        """Return the part at a place (y, x), enlarged without smoothing."""
        y, x = place
        part = picture.crop(x, y, self.width, self.height).zoom(self.zoom, self.zoom)
        return _framed(part, 0, 0, part.height, part.width)


def _find_detail(picture: Array, detail: _Detail) -> tuple[int, int]:
    """Return the place (y, x) of the part with the strongest edges and texture."""
    luma = picture.mean(axis=-1)
    slopes = np.abs(np.diff(luma, axis=0))[:, :-1] + np.abs(np.diff(luma, axis=1))[:-1]
    # Bounded, so that one hard edge does not count for more than a whole structure; and what a
    # photo is about is rarely at its border.
    rows, columns = (np.hanning(side + 2)[1:-1] for side in slopes.shape)
    weights = np.minimum(slopes, 64) * (0.5 + np.outer(rows, columns))
    sums = np.pad(weights, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    height, width = detail.height - 1, detail.width - 1
    inside = sums[height:, width:] - sums[: sums.shape[0] - height, width:]
    inside = inside - sums[height:, : sums.shape[1] - width]
    inside = inside + sums[: sums.shape[0] - height, : sums.shape[1] - width]
    y, x = np.unravel_index(int(inside.argmax()), inside.shape)
    return int(y), int(x)


def _around(centre: tuple[int, int], detail: _Detail, shape: tuple[int, ...]) -> tuple[int, int]:
    x, y = centre
    height, width = shape[:2]
    if not (0 <= x < width and 0 <= y < height):
        raise InputError(f"The point {x},{y} lies outside of the image of {width}x{height} pixels.")
    top = min(max(0, y - detail.height // 2), height - detail.height)
    left = min(max(0, x - detail.width // 2), width - detail.width)
    return top, left


def _to_picture(pixels: Array) -> Picture:
    image = pyvips.Image.new_from_array(np.rint(np.clip(pixels, 0, 255)).astype(np.uint8))
    return image if image.bands == 3 else image.bandjoin([image, image])


def _whole(picture: Picture, column: int, detail: _Detail, place: tuple[int, int]) -> Picture:
    """Return the image at the width of a column, or as high as one may be, with its frame."""
    scale = min(column / picture.width, _TALLEST * column / picture.height)
    height, width = (max(1, round(side * scale)) for side in (picture.height, picture.width))
    kernel = "lanczos3" if scale < 1 else "nearest"
    factors = width / picture.width, height / picture.height
    drawn = picture.resize(factors[0], vscale=factors[1], kernel=kernel)
    top, left = (int(at * scale) for at in place)
    bottom = min(drawn.height, max(top + 5, round((place[0] + detail.height) * scale)))
    right = min(drawn.width, max(left + 5, round((place[1] + detail.width) * scale)))
    return _framed(drawn, top, left, bottom, right)


def _framed(picture: Picture, top: int, left: int, bottom: int, right: int) -> Picture:
    for inset in (0, 1):
        size = max(1, right - left - 2 * inset), max(1, bottom - top - 2 * inset)
        picture = picture.draw_rect(list(_FRAME), left + inset, top + inset, *size)
    return picture


def _text(text: str, width: int, style: tuple[int, int]) -> Picture:
    """Draw a line of text, shortened in the middle where it is too long."""
    size, ink = style
    # The font comes along: many servers and containers have none.
    font = importlib.resources.files("nlnet.plotting") / "fonts" / "DejaVuSans.ttf"
    with importlib.resources.as_file(font) as path:
        text = " ".join(text.split())
        kept = len(text)
        while True:
            head, tail = text[: (kept + 1) // 2], text[len(text) - kept // 2 :]
            shown = text if kept == len(text) else f"{head}…{tail}"
            mask = pyvips.Image.text(
                # Letters that reach high and low give all lines one height.
                f"{html.escape(shown)}<span alpha='1'>|</span>",
                font=f"{_FONT} {size}",
                fontfile=str(path),
                dpi=_DPI,
            ).numpy()
            if mask.shape[1] <= width or kept <= 2:
                break
            kept -= 1
    return _to_picture(255 - (255 - ink) * (mask[:, :width].astype(np.float32) / 255))


def _stack(rows: Sequence[Picture], gap: int = _GAP) -> Picture:
    """Put pictures below each other, centered."""
    stack = rows[0]
    for row in rows[1:]:
        stack = stack.join(row, "vertical", expand=True, shim=gap, background=255, align="centre")
    return stack
