"""What a stage does with the tiles of an image, and how they are put together.

Every tile reads a window of the image, and adds to one of its own; the windows are then folded
together in a fixed order. So the result has the same bits for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nlnet.arrays import Array, FloatArray, Groups
from nlnet.network.config import NetworkConfig
from nlnet.network.kernels import folding, grouping
from nlnet.network.kernels.simd.vectors import WIDE_LANES, row_lanes
from nlnet.network.kernels.tiles import ROWS_AT_ONCE, spread_features
from nlnet.network.parallel import Workers
from nlnet.network.parameters import StageParameters
from nlnet.network.potentials import Potentials

TILE = 64

_LINE = 16
"""Elements, of float32, of a cache line."""


class ImageRows(NamedTuple):
    """Some rows of an image: planes (C, n, W) from row `first` on, of `height` in all."""

    planes: FloatArray
    first: int
    height: int

    def between(self, first: int, last: int) -> FloatArray:
        """Return the planes' rows from `first` to `last`."""
        return self.planes[:, first - self.first : last - self.first]


class Tile(NamedTuple):
    """Place of a tile in its image and among the tiles; the last ones may be smaller."""

    row: int
    column: int
    top: int
    left: int
    rows: int
    columns: int


def cut_row(row: int, tile_rows: int, height: int, width: int) -> list[Tile]:
    """Cut one row of tiles out of an image."""
    top = row * tile_rows
    rows = min(tile_rows, height - top)
    return [
        Tile(row, column, top, left, rows, min(TILE, width - left))
        for column, left in enumerate(range(0, width, TILE))
    ]


class TileGradient(NamedTuple):
    """A tile's part of the gradients of F, of w and of psi's table, all negated."""

    filters: Array
    group_weights: Array
    mixtures: Array


class TileOperator:
    """L, psi and L^T of one stage, some tiles at a time.

    Parameters
    ----------
    parameters : StageParameters
        Their dtype, float32 or float64, is that of the whole computation.
    config : NetworkConfig
        Sizes of patches, window and mixtures.
    exact : bool
        Evaluate psi exactly instead of by its table.
    tile_rows : int
        Height of a tile.
    """

    def __init__(
        self, parameters: StageParameters, config: NetworkConfig, *, exact: bool, tile_rows: int
    ) -> None:
        self.tile_rows = tile_rows
        self.potentials = Potentials(parameters.coefficients, config, exact=exact)
        self._filters = np.ascontiguousarray(parameters.filters)  # (F, P)
        self._weights = np.ascontiguousarray(parameters.group_weights)
        self._reach = config.window // 2
        self._radius = config.patch_radius
        self._taps = (0,) * config.patch_size
        # Kernels read and write whole vectors: everything has room for one more.
        self._room = max(WIDE_LANES, row_lanes(config.patch_size))
        room = np.zeros(self._room, self.dtype)
        self._flat_filters = np.concatenate([self._filters.reshape(-1), room])
        self._flat_transposed = np.concatenate([self._filters.T.reshape(-1), room])
        self._window_rows = tile_rows + 2 * self.margin
        self._window_columns = TILE + 2 * self.margin
        # A whole number of cache lines: all rows of a patch are in line or cross one. An odd
        # number: rows a power of two apart would be in each other's way in the cache.
        lines = -(-(self._window_columns + row_lanes(config.patch_size)) // _LINE)
        self._stride = (lines | 1) * _LINE

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Of the whole computation."""
        return self._filters.dtype

    @property
    def margin(self) -> int:
        """How far, in pixels, a tile reads and writes around itself."""
        return self._reach + self._radius

    def parts_shape(self, channels: int, tile_rows: int, width: int) -> tuple[int, ...]:
        """Return the shape of the memory for what so many rows of tiles add to their windows."""
        columns = -(-width // TILE)
        return channels, tile_rows, columns, self._window_rows, self._stride

    def spread(
        self,
        estimate: ImageRows,
        groups: Groups,
        tiles: Sequence[Tile],
        parts: Array,
        workers: Workers,
    ) -> None:
        """Compute L_r^T psi(L_r x) for the pixels r of some tiles, into the tiles' own windows.

        The tiles are neighbours in a row; `groups` are those of their rows, (rows, W, K, 2).
        """
        columns = (tiles[0].column, tiles[-1].column + 1)
        window_shape = (self._window_rows, self._stride)
        filters, pixels = len(self._filters), ROWS_AT_ONCE * TILE
        for channel, plane in enumerate(estimate.planes):
            spread_features(
                plane,
                estimate.first,
                estimate.height,
                tiles[0].top,
                columns,
                TILE,
                self._reach,
                groups,
                self._weights,
                self._flat_filters,
                self._flat_transposed,
                self.potentials.mixtures[channel],
                workers.scratch("window", window_shape, self.dtype),
                self._scratch("row_patches", pixels, filters + 1, workers),
                self._scratch("row_features", pixels, filters, workers),
                self._spreading(workers),
                _of_row(parts[channel], tiles[0]),
                self._taps,
            )

    def differentiate(
        self,
        inputs: ImageRows,
        errors: ImageRows,
        groups: Groups,
        tile: Tile,
        parts: Array,
        workers: Workers,
    ) -> TileGradient:
        """Return a tile's part of the gradients; that of the input goes to the tile's window."""
        filters = np.zeros_like(self._filters)
        weights = np.zeros_like(self._weights)
        mixtures = self.potentials.new_gradient()
        place = (groups, tile.left)
        for channel in range(len(inputs.planes)):
            window = self._window(inputs, channel, tile, "window", workers)
            error_window = self._window(errors, channel, tile, "error_window", workers)
            patches = self._sum_groups(window, groups, tile, "patches", workers)
            error_patches = self._sum_groups(error_window, groups, tile, "error_patches", workers)
            values = self._transform(patches, "features", workers)
            slopes = self._transform(error_patches, "slopes", workers)
            # From s and d to psi(s) and psi'(s) d; the mixtures' part is Eq. (35).
            self.potentials.backward(channel, values, slopes, mixtures)
            filters += values.T @ error_patches + slopes.T @ patches  # Eq. (45)
            np.matmul(values, self._filters, out=patches)
            np.matmul(slopes, self._filters, out=error_patches)
            # Eq. (41), its first term and its second.
            for image, terms in ((error_window, patches), (window, error_patches)):
                grouping.correlate_groups(
                    image, self._reach, *place, tile.columns, terms.reshape(-1), weights, self._taps
                )
            windows = self._spreading(workers)
            windows[:] = 0
            grouping.spread_groups(
                error_patches.reshape(-1),
                self._reach,
                *place,
                (0, tile.rows),
                tile.columns,
                self._weights,
                windows,
                self._stride,
                self._taps,
            )
            grouping.add_windows(windows, _of_row(parts[channel], tile)[tile.column])
        return TileGradient(filters, weights, mixtures)

    def fold(self, parts: Array, tiles: range, height: int, first: int, rows: Array) -> None:
        """Fold the windows of one image's tiles into its rows from `first` on: (C, rows, W).

        `tiles` are the rows of tiles that `parts` holds, all that add to these rows among them.
        """
        for channel, plane in enumerate(rows):
            folding.fold_rows(
                parts[channel],
                tiles.start,
                tiles.stop,
                self.tile_rows,
                TILE,
                self._reach,
                self._radius,
                height,
                first,
                plane,
            )

    def _window(
        self, image: ImageRows, channel: int, tile: Tile, name: str, workers: Workers
    ) -> Array:
        """Copy the image around a tile: all that its groups' patches can reach."""
        shape = (self._window_rows, self._stride)
        window = workers.scratch(name, shape, self.dtype)
        grouping.copy_window(
            image.planes[channel],
            image.first,
            image.height,
            tile.top - self.margin,
            tile.left - self.margin,
            window[: tile.rows + 2 * self.margin, : self._window_columns],
        )
        return window

    def _sum_groups(
        self, window: Array, groups: Groups, tile: Tile, name: str, workers: Workers
    ) -> Array:
        """Return B_r x for all pixels of a tile: (n, P)."""
        count, size = tile.rows * tile.columns, len(self._taps) ** 2
        patches = self._scratch(name, count, size, workers)
        grouping.sum_groups(
            window,
            self._reach,
            groups,
            tile.left,
            (0, tile.rows),
            tile.columns,
            self._weights,
            patches,
            self._taps,
        )
        return patches[: count * size].reshape(count, size)

    def _spreading(self, workers: Workers) -> Array:
        """Return memory for two windows to spread to, the second half a cache line off."""
        size = _round_up(self._window_rows * self._stride, _LINE) + _LINE // 2
        return workers.scratch("windows", (2 * size,), self.dtype)

    def _transform(self, patches: Array, name: str, workers: Workers) -> Array:
        """Return F B_r x, that is L_r x: (n, F)."""
        features = workers.scratch(name, (len(patches), len(self._filters)), self.dtype)
        return np.matmul(patches, self._filters.T, out=features)

    def _scratch(self, name: str, rows: int, columns: int, workers: Workers) -> Array:
        """Return flat memory for so many rows, with room for a vector."""
        return workers.scratch(name, (rows * columns + self._room,), self.dtype)


def _round_up(number: int, step: int) -> int:
    return -(-number // step) * step


def _of_row(parts: Array, tile: Tile) -> Array:
    """Return the windows of a tile's row: rows of tiles follow each other round and round."""
    windows: Array = parts[tile.row % len(parts)]
    return windows
