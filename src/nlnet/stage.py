r"""One stage of the network: a proximal-gradient step with learned operators.

.. math::

    u = (1 - \gamma)\, x + \gamma\, y - \sum_r L_r^T \psi(L_r x), \qquad x \leftarrow P_C(u)

with :math:`L_r x = F \sum_k w_k P_{i_r,k}\, x`: the patches of a group are summed with their
weights, then transformed. This module computes u and its backward pass (Appendix A);
:mod:`nlnet.projection` has P_C.

The work is cut into tiles. Every tile reads a window of the image, and adds to one of its own; the
windows are then folded together in a fixed order. So the result has the same bits for any number of
threads. Training runs whole batches (:meth:`Stage.forward`, :meth:`Stage.backward`); denoising
calls :meth:`Stage.spread_tile` and :meth:`Stage.fold` on a few rows at a time.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nlnet.arrays import Array, FloatArray, Groups
from nlnet.config import NetworkConfig
from nlnet.kernels import folding, grouping
from nlnet.kernels.simd.vectors import row_lanes
from nlnet.parallel import Workers
from nlnet.parameters import StageParameters
from nlnet.potentials import Potentials

TILE = 64
FOLD_ROWS = 32

Done = Callable[[float], None]


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


@dataclasses.dataclass(frozen=True)
class StageGradient:
    """Gradients of a loss with respect to all that a stage's u depends on."""

    filters: FloatArray
    group_weights: FloatArray
    coefficients: FloatArray
    step_size: float
    estimate: FloatArray
    noisy: FloatArray


class Stage:
    """A stage with its parameters made ready for the kernels.

    Parameters
    ----------
    parameters : StageParameters
        Their dtype, float32 or float64, is that of the whole computation.
    config : NetworkConfig
        Sizes of patches, window and mixtures.
    exact : bool
        Evaluate psi exactly instead of by its table (slow; for tests).
    tile_rows : int
        Height of a tile. It moves the result by rounding only.
    """

    def __init__(
        self,
        parameters: StageParameters,
        config: NetworkConfig,
        *,
        exact: bool = False,
        tile_rows: int = TILE,
    ) -> None:
        self.step_size = parameters.step_size
        self._filters = np.ascontiguousarray(parameters.filters)  # (F, P)
        self._weights = np.ascontiguousarray(parameters.group_weights)
        self._potentials = Potentials(parameters.coefficients, config, exact=exact)
        self._reach = config.window // 2
        self._radius = config.patch_radius
        self._taps = (0,) * config.patch_size
        self._tile_rows = tile_rows
        self._window_rows = tile_rows + 2 * self.margin
        self._window_columns = TILE + 2 * self.margin
        self._stride = self._window_columns + row_lanes(config.patch_size)
        self.dtype = self._filters.dtype

    @property
    def margin(self) -> int:
        """How far, in pixels, a tile reads and writes around itself."""
        return self._reach + self._radius

    def parts_shape(self, channels: int, tile_rows: int, width: int) -> tuple[int, ...]:
        """Return the shape of the memory for what so many rows of tiles add to their windows."""
        columns = -(-width // TILE)
        return channels, tile_rows, columns, self._window_rows, self._stride

    def spread_tile(
        self, estimate: ImageRows, groups: Groups, tile: Tile, parts: Array, workers: Workers
    ) -> None:
        """Compute L_r^T psi(L_r x) for the pixels r of a tile, into the tile's own window.

        `groups` are those of the tile's rows, (rows, W, K, 2).
        """
        corners = self._corners(groups, tile, workers)
        for channel in range(len(estimate.planes)):
            window = self._window(estimate, channel, tile, "window", workers)
            patches = self._sum_groups(window, corners, "patches", workers)  # Eq. (11)
            features = self._transform(patches, "features", workers)  # Eq. (12), Eq. (42)
            self._potentials.forward(channel, features)  # Eq. (14)
            # Eq. (13): the two steps of the adjoint.
            np.matmul(features, self._filters, out=patches)
            self._spread(patches, corners, tile, parts[channel])

    def fold(
        self,
        parts: Array,
        tiles: range,
        estimate: ImageRows,
        noisy: ImageRows,
        first: int,
        last: int,
    ) -> FloatArray:
        """Return u for the image's rows from `first` to `last`: (C, rows, W).

        `tiles` are the rows of tiles that `parts` holds, all that add to these rows among them.
        """
        present = estimate.between(first, last)
        update = self._fold(parts, tiles, estimate.height, present, first)
        return self._descend(update, present, noisy.between(first, last))

    def forward(
        self,
        estimate: FloatArray,
        noisy: FloatArray,
        groups: Groups,
        workers: Workers,
        done: Done | None = None,
    ) -> FloatArray:
        """Return u for a batch of estimates x and noisy images y, all (B, C, H, W).

        `groups` is (B, H, W, K, 2); `done` is called with the share of the work finished.
        """
        parts = self._new_parts(estimate.shape, workers)

        def work(place: tuple[int, Tile]) -> None:
            image, tile = place
            rows = ImageRows(estimate[image], 0, estimate.shape[2])
            near = groups[image, tile.top : tile.top + tile.rows]
            self.spread_tile(rows, near, tile, parts[image], workers)

        places = self._places(estimate.shape)
        workers.map(work, places, _share(done, len(places)))
        return self._descend(self._fold_all(parts, estimate, workers), estimate, noisy)

    def backward(
        self,
        cotangent: FloatArray,
        estimate: FloatArray,
        noisy: FloatArray,
        groups: Groups,
        workers: Workers,
    ) -> StageGradient:
        """Return all gradients, given the cotangent e of u; the features are computed again.

        With z for the stage's input: s = L_r z, and d = L_r e, so the sums over r are

        - pi: -rho_j(s) d;
        - F: -(psi(s) (B_r e)^T + psi'(s) d (B_r z)^T), where B_r sums a group's patches;
        - w_k: -(psi(s)^T F P_k e + (psi'(s) d)^T F P_k z);
        - z: (1 - gamma) e - L_r^T (psi'(s) d).
        """
        parts = self._new_parts(estimate.shape, workers)

        def work(place: tuple[int, Tile]) -> tuple[Array, Array, Array]:
            image, tile = place
            near = groups[image, tile.top : tile.top + tile.rows]
            inputs = ImageRows(estimate[image], 0, estimate.shape[2])
            errors = ImageRows(cotangent[image], 0, estimate.shape[2])
            return self._differentiate_tile(inputs, errors, near, tile, parts[image], workers)

        results = workers.map(work, self._places(estimate.shape))
        filters, weights, mixtures = (_add_up(part) for part in zip(*results, strict=True))
        inputs = self._fold_all(parts, estimate, workers)
        np.subtract((1 - self.step_size) * cotangent, inputs, out=inputs)  # Eq. (49)
        return StageGradient(
            filters=-filters,
            group_weights=-weights,
            coefficients=-self._potentials.coefficient_gradient(mixtures),
            # Eq. (29)
            step_size=float(np.vdot(cotangent, noisy - estimate)),
            estimate=inputs,
            noisy=self.step_size * cotangent,
        )

    def _differentiate_tile(
        self,
        inputs: ImageRows,
        errors: ImageRows,
        groups: Groups,
        tile: Tile,
        parts: Array,
        workers: Workers,
    ) -> tuple[Array, Array, Array]:
        """Return a tile's part of the gradients of F, w and psi's table, all negated."""
        filters = np.zeros_like(self._filters)
        weights = np.zeros_like(self._weights)
        mixtures = self._potentials.new_gradient()
        corners = self._corners(groups, tile, workers)
        for channel in range(len(inputs.planes)):
            window = self._window(inputs, channel, tile, "window", workers)
            error_window = self._window(errors, channel, tile, "error_window", workers)
            patches = self._sum_groups(window, corners, "patches", workers)
            error_patches = self._sum_groups(error_window, corners, "error_patches", workers)
            values = self._transform(patches, "features", workers)
            slopes = self._transform(error_patches, "slopes", workers)
            # From s and d to psi(s) and psi'(s) d; the mixtures' part is Eq. (35).
            self._potentials.backward(channel, values, slopes, mixtures)
            filters += values.T @ error_patches + slopes.T @ patches  # Eq. (45)
            np.matmul(values, self._filters, out=patches)
            np.matmul(slopes, self._filters, out=error_patches)
            # Eq. (41), its first term and its second.
            for image, terms in ((error_window, patches), (window, error_patches)):
                grouping.correlate_groups(image, corners, terms.reshape(-1), weights, self._taps)
            self._spread(error_patches, corners, tile, parts[channel])
        return filters, weights, mixtures

    def _window(
        self, image: ImageRows, channel: int, tile: Tile, name: str, workers: Workers
    ) -> Array:
        """Copy the image around a tile: all that its groups' patches can reach."""
        window = workers.scratch(name, (self._window_rows, self._stride), self.dtype)
        grouping.copy_window(
            image.planes[channel],
            image.first,
            image.height,
            tile.top - self.margin,
            tile.left - self.margin,
            window[: tile.rows + 2 * self.margin, : self._window_columns],
        )
        return window

    def _corners(self, groups: Groups, tile: Tile, workers: Workers) -> Array:
        """Return the flat indices, in the window, of the corners of all patches of all groups."""
        count = tile.rows * tile.columns * len(self._weights)
        corners = workers.scratch("corners", (count,), np.int32)
        grouping.find_corners(groups, tile.left, tile.columns, self._reach, self._stride, corners)
        return corners

    def _sum_groups(self, window: Array, corners: Array, name: str, workers: Workers) -> Array:
        """Return B_r x for all pixels of a tile: (n, P)."""
        size = len(self._taps) ** 2
        count = corners.size // len(self._weights)
        # The last patch is written, and later read, by whole vectors: leave room for one.
        room = self._stride - self._window_columns
        patches = workers.scratch(name, (count * size + room,), self.dtype)
        grouping.sum_groups(window, corners, self._weights, patches, self._taps)
        return patches[: count * size].reshape(count, size)

    def _transform(self, patches: Array, name: str, workers: Workers) -> Array:
        """Return F B_r x, that is L_r x: (n, F)."""
        features = workers.scratch(name, (len(patches), len(self._filters)), self.dtype)
        return np.matmul(patches, self._filters.T, out=features)

    def _spread(self, patches: Array, corners: Array, tile: Tile, parts: Array) -> None:
        """Add B_r^T of a tile's patches to its own window."""
        part = parts[tile.row % len(parts), tile.column]
        part[:] = 0
        grouping.spread_groups(
            patches.reshape(-1), corners, self._weights, tile.columns, part, self._taps
        )

    def _descend(self, update: Array, estimate: Array, noisy: Array) -> Array:
        """Turn sum_r L_r^T psi(L_r x) into u, in place."""
        # Eq. (24), to be projected: u = (1 - gamma) x + gamma y - sum_r L_r^T psi(L_r x)
        np.subtract((1 - self.step_size) * estimate, update, out=update)
        if self.step_size:
            update += self.step_size * noisy
        return update

    def _places(self, shape: tuple[int, ...]) -> list[tuple[int, Tile]]:
        """List all tiles of all images of a batch."""
        batch, _, height, width = shape
        return [
            (image, tile)
            for image in range(batch)
            for row in range(-(-height // self._tile_rows))
            for tile in cut_row(row, self._tile_rows, height, width)
        ]

    def _new_parts(self, shape: tuple[int, ...], workers: Workers) -> Array:
        """Return memory for what all tiles of a batch add to their windows."""
        batch, channels, height, width = shape
        rows = -(-height // self._tile_rows)
        size = (batch, *self.parts_shape(channels, rows, width))
        return workers.scratch("parts", size, self.dtype)

    def _fold(self, parts: Array, tiles: range, height: int, like: Array, first: int) -> Array:
        """Fold the windows of one image into some of its rows: (C, rows, W)."""
        out = np.empty_like(like)
        for channel, rows in enumerate(out):
            folding.fold_rows(
                parts[channel],
                tiles.start,
                tiles.stop,
                self._tile_rows,
                TILE,
                self._reach,
                self._radius,
                height,
                first,
                rows,
            )
        return out

    def _fold_all(self, parts: Array, like: FloatArray, workers: Workers) -> Array:
        """Fold all windows of a batch into images: (B, C, H, W)."""
        out = np.empty_like(like)
        height = like.shape[2]
        tiles = range(parts.shape[2])

        def work(place: tuple[int, int]) -> None:
            image, first = place
            rows = slice(first, first + FOLD_ROWS)
            near = like[image, :, rows]
            out[image, :, rows] = self._fold(parts[image], tiles, height, near, first)

        workers.map(work, itertools.product(range(len(like)), range(0, height, FOLD_ROWS)))
        return out


def cut_row(row: int, tile_rows: int, height: int, width: int) -> list[Tile]:
    """Cut one row of tiles out of an image."""
    top = row * tile_rows
    rows = min(tile_rows, height - top)
    return [
        Tile(row, column, top, left, rows, min(TILE, width - left))
        for column, left in enumerate(range(0, width, TILE))
    ]


def _add_up(arrays: tuple[Array, ...]) -> Array:
    """Sum in order, in float64: rounding must not depend on how many tiles there are."""
    total = arrays[0].astype(np.float64)
    for array in arrays[1:]:
        total += array
    return total.astype(arrays[0].dtype)


def _share(done: Done | None, total: int) -> Callable[[int], None] | None:
    return None if done is None else lambda count: done(count / total)
