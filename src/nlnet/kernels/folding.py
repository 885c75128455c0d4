"""Putting tiles together: the adjoint of cutting a padded image into overlapping windows."""

from __future__ import annotations

import numpy as np

from nlnet.arrays import Array
from nlnet.kernels.compile import kernel


@kernel
def fold_rows(
    parts: Array, tile: int, reach: int, radius: int, first: int, last: int, out: Array
) -> None:
    """Sum the windows' contributions to the rows from `first` to `last` of the image.

    Parameters
    ----------
    parts : (tile rows, tile columns, side, stride)
        What each tile adds to the window around it; a window starts `reach` + `radius` pixels
        above and left of its tile.
    tile, reach, radius : int
        Side of a tile, radius of the search window, radius of a patch.
    out : (H, W)
        The image. What was added to its symmetric border is folded back to where that came from.
    """
    height, width = out.shape
    line = np.empty(width + 2 * radius, out.dtype)
    for y in range(first, last):
        line[:] = 0
        _add_window_row(parts, tile, reach, y + radius, line)
        if y < radius:
            _add_window_row(parts, tile, reach, radius - 1 - y, line)
        if y >= height - radius:
            _add_window_row(parts, tile, reach, 2 * height - 1 - y + radius, line)
        out[y] = line[radius : radius + width]
        for x in range(radius):
            out[y, x] += line[radius - 1 - x]
            out[y, width - 1 - x] += line[radius + width + x]


@kernel
def _add_window_row(parts: Array, tile: int, reach: int, row: int, line: Array) -> None:
    """Add all that the windows hold of one row of the padded image."""
    tile_rows, tile_columns, side, _ = parts.shape
    for tile_row in range(tile_rows):
        inner = row - tile_row * tile + reach
        if 0 <= inner < side:
            for tile_column in range(tile_columns):
                start = tile_column * tile - reach
                first = max(start, 0)
                last = min(start + side, line.shape[0])
                source = parts[tile_row, tile_column, inner, first - start : last - start]
                target = line[first:last]
                for x in range(target.shape[0]):
                    target[x] += source[x]
