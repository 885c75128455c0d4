"""Putting tiles together: the adjoint of cutting a padded image into overlapping windows."""

from __future__ import annotations

import numpy as np

from nlnet.arrays import Array
from nlnet.network.kernels.compile import kernel


@kernel
def fold_rows(
    parts: Array,
    first_tile: int,
    last_tile: int,
    tile_rows: int,
    tile_columns: int,
    reach: int,
    radius: int,
    height: int,
    first: int,
    out: Array,
) -> None:
    """Sum the windows' contributions to the image's rows from `first` on.

    Parameters
    ----------
    parts : (rows of tiles, columns of tiles, side, stride)
        What each tile adds to the window around it; a window starts `reach` + `radius` pixels
        above and left of its tile. Rows of tiles follow each other round and round.
    first_tile, last_tile : int
        The rows of tiles that `parts` holds now.
    tile_rows, tile_columns : int
        Size of a tile.
    reach, radius : int
        Radius of the search window and of a patch.
    height : int
        Height of the image.
    out : (rows, W)
        The result. What was added to the image's symmetric border is folded back to where that
        came from.
    """
    width = out.shape[1]
    line = np.empty(width + 2 * radius, out.dtype)
    for row in range(out.shape[0]):
        y = first + row
        line[:] = 0
        for mirror in (y, -1 - y, 2 * height - 1 - y):
            if -radius <= mirror < height + radius:
                for tile in range(first_tile, last_tile):
                    inner = mirror + radius - tile * tile_rows + reach
                    if 0 <= inner < parts.shape[2]:
                        windows = parts[tile % parts.shape[0]]
                        _add_window_rows(windows, inner, tile_columns, reach, radius, line)
        out[row] = line[radius : radius + width]
        for x in range(radius):
            out[row, x] += line[radius - 1 - x]
            out[row, width - 1 - x] += line[radius + width + x]


@kernel
def _add_window_rows(
    windows: Array, inner: int, tile_columns: int, reach: int, radius: int, line: Array
) -> None:
    """Add what row `inner` of a row of windows, (columns of tiles, side, stride), holds."""
    side = tile_columns + 2 * (reach + radius)
    for tile in range(windows.shape[0]):
        start = tile * tile_columns - reach
        first = max(start, 0)
        last = min(start + side, line.shape[0])
        source = windows[tile, inner, first - start : last - start]
        target = line[first:last]
        for x in range(target.shape[0]):
            target[x] += source[x]
