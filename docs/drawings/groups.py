"""Groups of similar patches: where they lie in the photo, and what they look like."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.patches import Rectangle

from drawings.photo import Photo
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import find_groups

COLORS = ("#e4572e", "#17a398", "#f2b705")


def draw_groups(
    photo: Photo, pixels: Mapping[str, tuple[int, int]], config: NetworkConfig
) -> Figure:
    """Draw the photo with search windows, each window enlarged, and the patches found in it."""
    groups = find_groups(photo.noisy[np.newaxis], config)[0]
    figure = Figure(figsize=(11, 4.3), layout="constrained")
    whole, details = figure.add_gridspec(1, 2, width_ratios=(5.9, 5.1))
    overview = figure.add_subplot(whole)
    _show(overview, photo.noisy)
    overview.set_title("the noisy photo and three search windows", fontsize=10)
    columns = details.subgridspec(1, len(pixels), wspace=0.05)
    for column, (name, (x, y)), color in zip(columns, pixels.items(), COLORS, strict=True):
        _frame(overview, x, y, config.window, color, 2.0)
        _draw_group(figure, column, photo, name, (x, y), groups[y, x], config, color)
    return figure


def _draw_group(
    figure: Figure,
    place: SubplotSpec,
    photo: Photo,
    name: str,
    pixel: tuple[int, int],
    group: np.ndarray,
    config: NetworkConfig,
    color: str,
) -> None:
    """Draw one search window with its group, and below it the patches, noisy and clean."""
    x, y = pixel
    rows = place.subgridspec(3, 1, height_ratios=(1, 0.48, 0.48), hspace=0.06)
    window = figure.add_subplot(rows[0])
    _show(window, photo.noisy)
    half = config.window / 2 + config.patch_radius  # patches reach over the edge of the window
    window.set_xlim(x - half, x + half)
    window.set_ylim(y + half, y - half)
    for number, (dy, dx) in reversed(list(enumerate(group.tolist()))):
        _frame(window, x + dx, y + dy, config.patch_size, "white", 2.6 if number else 5.0)
        _frame(window, x + dx, y + dy, config.patch_size, color, 1.4 if number else 3.0)
    for spine in window.spines.values():
        spine.set(visible=True, color=color, linewidth=2.5)
    window.set_title(name, fontsize=10)
    for row, (image, kind) in enumerate(((photo.noisy, "noisy"), (photo.clean, "clean")), 1):
        panel = figure.add_subplot(rows[row])
        sheet = _mosaic(image, pixel, group, config)
        _show(panel, sheet, (np.nanmin(sheet), np.nanmax(sheet)))
        panel.set_title(f"its patches, {kind}", fontsize=8, color="#444444", pad=3)


def _mosaic(
    image: np.ndarray, pixel: tuple[int, int], group: np.ndarray, config: NetworkConfig
) -> np.ndarray:
    """Lay the patches of a group out in two rows, the reference first, with gaps of white."""
    radius, size = config.patch_radius, config.patch_size
    padded = np.pad(image, radius, mode="symmetric")
    columns = -(-len(group) // 2)
    sheet = np.full((2 * size + 1, columns * (size + 1) - 1), np.nan)
    for number, (dy, dx) in enumerate(group.tolist()):
        top, left = pixel[1] + dy, pixel[0] + dx
        row, column = divmod(number, columns)
        place = np.s_[
            row * (size + 1) : row * (size + 1) + size,
            column * (size + 1) : column * (size + 1) + size,
        ]
        sheet[place] = padded[top : top + size, left : left + size]
    return sheet


def _show(panel: Axes, image: np.ndarray, limits: tuple[float, float] = (0, 255)) -> None:
    panel.imshow(image, cmap="gray", vmin=limits[0], vmax=limits[1], interpolation="nearest")
    panel.set_xticks([])
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set_visible(False)


def _frame(panel: Axes, x: int, y: int, side: int, color: str, width: float) -> None:
    corner = (x - side / 2, y - side / 2)
    panel.add_patch(Rectangle(corner, side, side, fill=False, edgecolor=color, linewidth=width))
