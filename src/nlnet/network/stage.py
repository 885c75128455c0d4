r"""One stage of the network: a proximal-gradient step with learned operators.

.. math::

    u = (1 - \gamma)\, x + \gamma\, y - \sum_r L_r^T \psi(L_r x), \qquad x \leftarrow P_C(u)

with :math:`L_r x = F \sum_k w_k P_{i_r,k}\, x`: the patches of a group are summed with their
weights, then transformed. This module computes u and its backward pass (Appendix A);
:mod:`nlnet.network.projection` has P_C.

The work is cut into tiles (:mod:`nlnet.network.tiles`). Training runs whole batches
(:meth:`Stage.forward`,
:meth:`Stage.backward`); denoising calls :meth:`Stage.spread_tiles` and :meth:`Stage.fold` on a few
rows at a time.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from nlnet.arrays import Array, FloatArray, Groups
from nlnet.network.config import NetworkConfig
from nlnet.network.parallel import Workers
from nlnet.network.parameters import StageParameters
from nlnet.network.tiles import TILE, ImageRows, Tile, TileGradient, TileOperator, cut_row

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
        self._operator = TileOperator(parameters, config, exact=exact, tile_rows=tile_rows)

    @property
    def margin(self) -> int:
        """How far, in pixels, a tile reads and writes around itself."""
        return self._operator.margin

    def new_parts(self, channels: int, tile_rows: int, width: int) -> Array:
        """Return memory for what so many rows of tiles add to their windows."""
        shape = self._operator.parts_shape(channels, tile_rows, width)
        return np.empty(shape, self._operator.dtype)

    def spread_tiles(
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
        self._operator.spread(estimate, groups, tiles, parts, workers)

    def fold(
        self,
        parts: Array,
        tiles: range,
        estimate: ImageRows,
        noisy: ImageRows,
        first: int,
        out: FloatArray,
        workers: Workers,
    ) -> None:
        """Compute u for the image's rows from `first` on: (C, rows, W).

        `tiles` are the rows of tiles that `parts` holds, all that add to these rows among them.
        """
        last = first + out.shape[1]
        self._operator.fold(parts, tiles, estimate.height, first, out)
        self._descend(out, estimate.between(first, last), noisy.between(first, last), workers)

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
        parts = self._batch_parts(estimate.shape, workers)

        def work(place: tuple[int, list[Tile]]) -> None:
            image, tiles = place
            rows = ImageRows(estimate[image], 0, estimate.shape[2])
            near = groups[image, tiles[0].top : tiles[0].top + tiles[0].rows]
            self._operator.spread(rows, near, tiles, parts[image], workers)

        places = self._rows(estimate.shape)
        workers.map(work, places, _share(done, len(places)))
        update = self._fold_all(parts, estimate, workers)
        self._descend(update, estimate, noisy, workers)
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
        parts = self._batch_parts(estimate.shape, workers)

        def work(place: tuple[int, Tile]) -> TileGradient:
            image, tile = place
            near = groups[image, tile.top : tile.top + tile.rows]
            inputs = ImageRows(estimate[image], 0, estimate.shape[2])
            errors = ImageRows(cotangent[image], 0, estimate.shape[2])
            return self._operator.differentiate(inputs, errors, near, tile, parts[image], workers)

        rows = self._rows(estimate.shape)
        results = workers.map(work, [(image, tile) for image, tiles in rows for tile in tiles])
        filters, weights, mixtures = (_add_up(part) for part in zip(*results, strict=True))
        inputs = self._fold_all(parts, estimate, workers)
        np.subtract((1 - self.step_size) * cotangent, inputs, out=inputs)  # Eq. (49)
        return StageGradient(
            filters=-filters,
            group_weights=-weights,
            coefficients=-self._operator.potentials.coefficient_gradient(mixtures),
            # Eq. (29)
            step_size=float(np.vdot(cotangent, noisy - estimate)),
            estimate=inputs,
            noisy=self.step_size * cotangent,
        )

    def _descend(self, update: Array, estimate: Array, noisy: Array, workers: Workers) -> None:
        """Turn sum_r L_r^T psi(L_r x) into u, in place."""
        # Eq. (24), to be projected: u = (1 - gamma) x + gamma y - sum_r L_r^T psi(L_r x)
        term = workers.scratch("term", update.shape, update.dtype)
        np.subtract(np.multiply(estimate, 1 - self.step_size, out=term), update, out=update)
        if self.step_size:
            update += np.multiply(noisy, self.step_size, out=term)

    def _rows(self, shape: tuple[int, ...]) -> list[tuple[int, list[Tile]]]:
        """List all rows of tiles of all images of a batch."""
        batch, _, height, width = shape
        tile_rows = self._operator.tile_rows
        return [
            (image, cut_row(row, tile_rows, height, width))
            for image in range(batch)
            for row in range(-(-height // tile_rows))
        ]

    def _batch_parts(self, shape: tuple[int, ...], workers: Workers) -> Array:
        """Return memory for what all tiles of a batch add to their windows."""
        batch, channels, height, width = shape
        rows = -(-height // self._operator.tile_rows)
        size = (batch, *self._operator.parts_shape(channels, rows, width))
        return workers.scratch("parts", size, self._operator.dtype)

    def _fold_all(self, parts: Array, like: FloatArray, workers: Workers) -> Array:
        """Fold all windows of a batch into images: (B, C, H, W)."""
        out = np.empty_like(like)
        height = like.shape[2]
        tiles = range(parts.shape[2])

        def work(place: tuple[int, int]) -> None:
            image, first = place
            rows = out[image, :, first : first + FOLD_ROWS]
            self._operator.fold(parts[image], tiles, height, first, rows)

        workers.map(work, itertools.product(range(len(like)), range(0, height, FOLD_ROWS)))
        return out


def _add_up(arrays: tuple[Array, ...]) -> Array:
    """Sum in order, in float64: rounding must not depend on how many tiles there are."""
    total = arrays[0].astype(np.float64)
    for array in arrays[1:]:
        total += array
    return total.astype(arrays[0].dtype)


def _share(done: Done | None, total: int) -> Callable[[int], None] | None:
    return None if done is None else lambda count: done(count / total)
