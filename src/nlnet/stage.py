r"""One stage of the network: a proximal-gradient step with learned operators.

.. math::

    u = (1 - \gamma)\, x + \gamma\, y - \sum_r L_r^T \psi(L_r x), \qquad x \leftarrow P_C(u)

with :math:`L_r x = F \sum_k w_k P_{i_r,k}\, x`: the patches of a group are summed with their
weights, then transformed. This module computes u and its backward pass (Appendix A), tile by tile;
:mod:`nlnet.projection` has P_C.

Every tile reads a window of the image, and adds to one of its own; the windows are then folded
together in a fixed order. So the result has the same bits for any number of threads.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

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


@dataclasses.dataclass(frozen=True)
class StageGradient:
    """Gradients of a loss with respect to all that a stage's u depends on."""

    filters: FloatArray
    group_weights: FloatArray
    coefficients: FloatArray
    step_size: float
    estimate: FloatArray
    noisy: FloatArray


@dataclasses.dataclass(frozen=True)
class _Tile:
    """A tile of one image of the batch, and where its window's result goes."""

    image: int
    row: int
    column: int
    top: int
    left: int
    height: int
    width: int

    @property
    def pixels(self) -> int:
        return self.height * self.width


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
    """

    def __init__(
        self, parameters: StageParameters, config: NetworkConfig, *, exact: bool = False
    ) -> None:
        self.step_size = parameters.step_size
        self._filters = np.ascontiguousarray(parameters.filters)  # (F, P)
        self._weights = np.ascontiguousarray(parameters.group_weights)
        self._potentials = Potentials(parameters.coefficients, config, exact=exact)
        self._reach = config.window // 2
        self._radius = config.patch_radius
        self._taps = (0,) * config.patch_size
        self._side = TILE + 2 * (self._reach + self._radius)
        self._stride = self._side + row_lanes(config.patch_size)
        self._dtype = self._filters.dtype

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
        tiles = _cut(estimate.shape)
        parts = self._new_parts(estimate.shape, workers)

        def work(tile: _Tile) -> None:
            corners = self._corners(groups, tile, workers)
            for channel, plane in enumerate(estimate[tile.image]):
                window = self._window(plane, tile, "window", workers)
                patches = self._sum_groups(window, corners, "patches", workers)
                features = self._transform(patches, "features", workers)
                self._potentials.forward(channel, features)
                np.matmul(features, self._filters, out=patches)
                self._spread(patches, corners, tile, parts[tile.image, channel], workers)

        workers.map(work, tiles, _share(done, len(tiles)))
        update = self._fold(parts, estimate.shape, workers)
        # Eq. (10) before the projection: u = (1 - gamma) x + gamma y - sum_r L_r^T psi(L_r x)
        np.subtract((1 - self.step_size) * estimate, update, out=update)
        if self.step_size:
            update += self.step_size * noisy
        return update

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
        tiles = _cut(estimate.shape)
        parts = self._new_parts(estimate.shape, workers)

        def work(tile: _Tile) -> tuple[Array, Array, Array]:
            filters = np.zeros_like(self._filters)
            weights = np.zeros_like(self._weights)
            mixtures = self._potentials.new_gradient()
            corners = self._corners(groups, tile, workers)
            for channel, plane in enumerate(estimate[tile.image]):
                inputs = self._window(plane, tile, "window", workers)
                errors = self._window(cotangent[tile.image, channel], tile, "errors", workers)
                patches = self._sum_groups(inputs, corners, "patches", workers)
                error_patches = self._sum_groups(errors, corners, "error_patches", workers)
                values = self._transform(patches, "features", workers)
                slopes = self._transform(error_patches, "slopes", workers)
                # From s and d to psi(s) and psi'(s) d.
                self._potentials.backward(channel, values, slopes, mixtures)
                filters += values.T @ error_patches + slopes.T @ patches
                np.matmul(values, self._filters, out=patches)
                np.matmul(slopes, self._filters, out=error_patches)
                for window, image_patches in ((errors, patches), (inputs, error_patches)):
                    grouping.correlate_groups(
                        window, corners, image_patches.reshape(-1), weights, self._taps
                    )
                self._spread(error_patches, corners, tile, parts[tile.image, channel], workers)
            return filters, weights, mixtures

        filters, weights, mixtures = (
            _add_up(grads) for grads in zip(*workers.map(work, tiles), strict=True)
        )
        inputs = self._fold(parts, estimate.shape, workers)
        np.subtract((1 - self.step_size) * cotangent, inputs, out=inputs)
        return StageGradient(
            filters=-filters,
            group_weights=-weights,
            coefficients=-self._potentials.coefficient_gradient(mixtures),
            step_size=float(np.vdot(cotangent, noisy) - np.vdot(cotangent, estimate)),
            estimate=inputs,
            noisy=self.step_size * cotangent,
        )

    def _window(self, plane: Array, tile: _Tile, name: str, workers: Workers) -> Array:
        """Copy the image around a tile: all that its groups' patches can reach."""
        window = workers.scratch(name, (self._side, self._stride), self._dtype)
        offset = self._reach + self._radius
        grouping.copy_window(plane, tile.top - offset, tile.left - offset, window[:, : self._side])
        return window

    def _corners(self, groups: Groups, tile: _Tile, workers: Workers) -> Array:
        """Return the flat indices, in the window, of the corners of all patches of all groups."""
        corners = workers.scratch("corners", (tile.pixels * len(self._weights),), np.int32)
        grouping.find_corners(
            groups[tile.image], tile.top, tile.left, tile.width, self._reach, self._stride, corners
        )
        return corners

    def _sum_groups(self, window: Array, corners: Array, name: str, workers: Workers) -> Array:
        """Return B_r x for all pixels of a tile: (n, P)."""
        size = len(self._taps) ** 2
        count = corners.size // len(self._weights)
        # The last patch is written, and later read, by whole vectors: leave room for one.
        room = workers.scratch(name, (count * size + self._stride - self._side,), self._dtype)
        grouping.sum_groups(window, corners, self._weights, room, self._taps)
        return room[: count * size].reshape(count, size)

    def _transform(self, patches: Array, name: str, workers: Workers) -> Array:
        """Return F B_r x, that is L_r x: (n, F)."""
        features = workers.scratch(name, (len(patches), len(self._filters)), self._dtype)
        return np.matmul(patches, self._filters.T, out=features)

    def _spread(
        self, patches: Array, corners: Array, tile: _Tile, parts: Array, workers: Workers
    ) -> None:
        """Add B_r^T of a tile's patches to its own window."""
        part = parts[tile.row, tile.column]
        part[:] = 0
        grouping.spread_groups(
            patches.reshape(-1), corners, self._weights, tile.width, part, self._taps
        )

    def _new_parts(self, shape: tuple[int, ...], workers: Workers) -> Array:
        """Memory for what every tile adds to its window: (B, C, tile rows, tile columns, ...)."""
        batch, channels, height, width = shape
        rows, columns = -(-height // TILE), -(-width // TILE)
        size = (batch, channels, rows, columns, self._side, self._stride)
        return workers.scratch("parts", size, self._dtype)

    def _fold(self, parts: Array, shape: tuple[int, ...], workers: Workers) -> Array:
        """Fold all windows into images: (B, C, H, W)."""
        out = np.empty(shape, self._dtype)
        bands = range(0, shape[2], FOLD_ROWS)

        def work(task: tuple[int, int, int]) -> None:
            image, channel, first = task
            last = min(first + FOLD_ROWS, shape[2])
            folding.fold_rows(
                parts[image, channel],
                TILE,
                self._reach,
                self._radius,
                first,
                last,
                out[image, channel],
            )

        workers.map(work, itertools.product(range(shape[0]), range(shape[1]), bands))
        return out


def _cut(shape: tuple[int, ...]) -> list[_Tile]:
    """Cut a batch of images into tiles; those at the right and bottom may be smaller."""
    batch, _, height, width = shape
    return [
        _Tile(image, row, column, top, left, min(TILE, height - top), min(TILE, width - left))
        for image in range(batch)
        for row, top in enumerate(range(0, height, TILE))
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
