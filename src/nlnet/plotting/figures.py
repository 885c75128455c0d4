"""Figures of images side by side, each with an enlarged detail and a caption."""

from __future__ import annotations

import dataclasses
import html
import importlib.resources
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyvips

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.images import ImageFile

Picture = npt.NDArray[np.uint8]
"""(H, W, 3)."""

_FONT = "DejaVu Sans"
_DPI = 144
_TITLE_SIZE, _NOTE_SIZE = 9, 8
_BLACK, _GRAY = 20, 110
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
        place = _find_detail(pictures[detail_of], detail)
    else:
        place = _around(centre, detail, shape)
    columns = [
        _stack(
            [
                _whole(picture, column, detail, place),
                detail.cut(picture, place),
                _captions(panel, column),
            ],
            column,
        )
        for panel, picture in zip(panels, pictures, strict=True)
    ]
    return ImageFile(_row(columns))


@dataclasses.dataclass(frozen=True)
class _Detail:
    """The size of the enlarged part, and how much it is enlarged."""

    height: int
    width: int
    zoom: int

    @classmethod
    def choose(cls, shape: tuple[int, ...], column: int) -> _Detail:
        """Choose the smallest whole zoom at which the part is a small one of the image."""
        height, width = column * _DETAIL_SHAPE, column
        most_y, most_x = (max(1.0, _LARGEST_DETAIL * side) for side in shape)
        zoom = max(_ZOOM, int(np.ceil(max(height / most_y, width / most_x))))
        return cls(max(1, int(height / zoom)), max(1, width // zoom), zoom)

    def cut(self, picture: Picture, place: tuple[int, int]) -> Picture:
        """Return the part at a place (y, x), enlarged without smoothing."""
        y, x = place
        part = picture[y : y + self.height, x : x + self.width]
        enlarged = np.repeat(np.repeat(part, self.zoom, axis=0), self.zoom, axis=1)
        _draw_frame(enlarged, 0, 0, *enlarged.shape[:2])
        return enlarged


def _find_detail(picture: Picture, detail: _Detail) -> tuple[int, int]:
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
    rounded = np.rint(np.clip(pixels, 0, 255)).astype(np.uint8)
    return rounded if rounded.ndim == 3 else np.dstack([rounded] * 3)


def _whole(picture: Picture, column: int, detail: _Detail, place: tuple[int, int]) -> Picture:
    """Return the image at the width of a column, or as high as one may be, with its frame."""
    height, width = picture.shape[:2]
    scale = min(column / width, _TALLEST * column / height)
    shown = max(1, round(height * scale)), max(1, round(width * scale))
    if scale < 1:
        image = pyvips.Image.new_from_array(picture, interpretation="srgb")
        resized = image.resize(shown[1] / width, vscale=shown[0] / height).numpy()
        drawn: Picture = np.array(resized[: shown[0], : shown[1]])
    else:
        rows = np.arange(shown[0]) * height // shown[0]
        columns = np.arange(shown[1]) * width // shown[1]
        drawn = picture[rows][:, columns]
    top, left = (int(at * scale) for at in place)
    bottom = min(drawn.shape[0], max(top + 5, round((place[0] + detail.height) * scale)))
    right = min(drawn.shape[1], max(left + 5, round((place[1] + detail.width) * scale)))
    _draw_frame(drawn, top, left, bottom, right)
    return drawn


def _draw_frame(picture: Picture, top: int, left: int, bottom: int, right: int) -> None:
    inner = (slice(top + 2, bottom - 2), slice(left + 2, right - 2))
    content = picture[inner].copy()
    picture[top:bottom, left:right] = _FRAME
    picture[inner] = content


def _captions(panel: Panel, width: int) -> Picture:
    title = _text(panel.title, _TITLE_SIZE, width, _BLACK)
    return _stack([title, _text(panel.note, _NOTE_SIZE, width, _GRAY)], width, gap=4)


def _text(text: str, size: int, width: int, ink: int) -> Picture:
    """Draw a line of text, shortened in the middle where it is too long."""
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
    paper = 255 - (255 - ink) * (mask[:, :width].astype(np.float32) / 255)
    return _to_picture(paper)


def _stack(rows: Sequence[Picture], width: int, gap: int = _GAP) -> Picture:
    """Put pictures below each other, centred."""
    height = sum(row.shape[0] for row in rows) + gap * (len(rows) - 1)
    paper = np.full((height, width, 3), 255, np.uint8)
    top = 0
    for row in rows:
        left = (width - row.shape[1]) // 2
        paper[top : top + row.shape[0], left : left + row.shape[1]] = row
        top += row.shape[0] + gap
    return paper


def _row(columns: Sequence[Picture]) -> Picture:
    height = max(column.shape[0] for column in columns) + 2 * _GAP
    width = sum(column.shape[1] for column in columns) + _GAP * (len(columns) + 1)
    paper = np.full((height, width, 3), 255, np.uint8)
    left = _GAP
    for column in columns:
        paper[_GAP : _GAP + column.shape[0], left : left + column.shape[1]] = column
        left += column.shape[1] + _GAP
    return paper
