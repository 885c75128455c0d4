"""Denoising in one sweep down the image: memory for some rows of it, whatever its height.

Rows of tiles go through matching and all stages like items on a conveyor. A stage works on a row of
tiles as soon as the stage before has finished the rows around it, and finishes rows as soon as all
tiles that add to them have been worked on. At each step everything that can be done is done in
parallel; rows that nobody needs any more are dropped.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Sequence

import numpy as np

from nlnet.arrays import FloatArray, Groups
from nlnet.config import NetworkConfig
from nlnet.errors import InputError
from nlnet.kernels.matching import memory_shapes
from nlnet.kernels.tiles import ROWS_AT_ONCE
from nlnet.matching import check_size, matching_tasks
from nlnet.parallel import Workers
from nlnet.parameters import StageParameters
from nlnet.projection import Box, project
from nlnet.slab import Slab
from nlnet.stage import Stage
from nlnet.tiles import TILE, ImageRows, cut_row

MATCHING_SHARE = 0.5
"""Part of the whole time that matching takes, for progress."""

TASKS_PER_THREAD = 2
"""Tasks that a stage's row of tiles is cut into, so that threads finish at about the same time."""

TILE_ROWS_TO_CHOOSE = (TILE, 32, 16, 8)

Task = Callable[[], None]
ReadRows = Callable[[int, int], FloatArray]
WriteRows = Callable[[int, FloatArray], None]


def _ring_length(margin: int, tile_rows: int) -> int:
    """Return how many rows of tiles must be kept: all that add to rows that are not yet final."""
    return -(-2 * margin // tile_rows) + 1


class _StageSweep:
    """How far one stage has come down the image, and what it still holds."""

    def __init__(
        self, stage: Stage, box: Box | None, shape: tuple[int, ...], tile_rows: int
    ) -> None:
        channels, self._height, self._width = shape
        self._stage = stage
        self._box = box
        self._tile_rows = tile_rows
        self._tile_count = -(-self._height // tile_rows)
        ring = min(_ring_length(stage.margin, tile_rows), self._tile_count)
        self._parts = stage.new_parts(channels, ring, self._width)
        self._spread = 0  # rows of tiles worked on
        self._folded = 0  # rows of the image finished
        self._finished: FloatArray | None = None
        self._unfinished_tasks = 0
        self._lock = threading.Lock()

    def next_tasks(self, estimate: Slab, noisy: Slab, groups: Slab, workers: Workers) -> list[Task]:
        """Return the tasks of the next row of tiles, if what it needs is there.

        Whichever task ends last also finishes the rows that no tile will add to any more.
        """
        if self._spread == self._tile_count:
            return []
        top = self._spread * self._tile_rows
        bottom = min(top + self._tile_rows, self._height)
        if estimate.last < min(bottom + self._stage.margin, self._height) or groups.last < bottom:
            return []
        rows = ImageRows(estimate.rows, estimate.first, self._height)
        near = groups.rows[top - groups.first : bottom - groups.first]
        tiles = cut_row(self._spread, self._tile_rows, self._height, self._width)
        self._spread += 1
        step = -(-len(tiles) // (TASKS_PER_THREAD * workers.threads))
        starts = range(0, len(tiles), step)
        self._unfinished_tasks = len(starts)

        def work(first: int) -> None:
            near_tiles = tiles[first : first + step]
            self._stage.spread_tiles(rows, near, near_tiles, self._parts, workers)
            with self._lock:
                self._unfinished_tasks -= 1
                last = self._unfinished_tasks == 0
            if last:
                self._finished = self._finish_rows(estimate, noisy)

        return [functools.partial(work, first) for first in starts]

    def take_finished_rows(self) -> FloatArray | None:
        """Return the rows of the stage's output that its tasks have finished, if any."""
        finished, self._finished = self._finished, None
        return finished

    def _finish_rows(self, estimate: Slab, noisy: Slab) -> FloatArray | None:
        first, last = self._folded, self._height
        if self._spread < self._tile_count:
            last = max(self._spread * self._tile_rows - self._stage.margin, first)
        if last == first:
            return None
        oldest = max(0, (first - self._stage.margin) // self._tile_rows)
        update = self._stage.fold(
            self._parts,
            range(oldest, self._spread),
            ImageRows(estimate.rows, estimate.first, self._height),
            ImageRows(noisy.rows, noisy.first, self._height),
            first,
            last,
        )
        self._folded = last
        return update if self._box is None else project(update, self._box)  # Eq. (22)

    @property
    def needs_from(self) -> int:
        """First row of the input that this stage still needs."""
        next_top = self._spread * self._tile_rows
        return max(0, min(next_top - self._stage.margin, self._folded))

    @property
    def needs_groups_from(self) -> int:
        """First row whose groups this stage still needs."""
        return min(self._spread * self._tile_rows, self._height)

    @property
    def share_done(self) -> float:
        """Share of the rows of tiles worked on."""
        return self._spread / self._tile_count


class Sweep:
    """A network on its way down one image.

    Parameters
    ----------
    read : callable
        ``read(first, last)`` returns these rows as working planes, (C, rows, W); every row is asked
        for once, in order.
    write : callable
        ``write(first, planes)`` takes finished rows, in order.
    shape : (C, H, W)
        Shape of the whole image.
    config, parameters
        The network; the parameters' dtype is that of the computation.
    box : (low, high) or None
        Intensities that the estimate is kept in.
    tile_rows : int
        Rows of one step: fewer take less memory.
    """

    def __init__(
        self,
        read: ReadRows,
        write: WriteRows,
        shape: tuple[int, int, int],
        config: NetworkConfig,
        parameters: Sequence[StageParameters],
        *,
        box: Box | None,
        tile_rows: int = TILE,
    ) -> None:
        _, self._height, self._width = shape
        check_size(self._height, self._width, config)
        self._read, self._write = read, write
        self._config = config
        self._tile_rows = tile_rows
        boxes = [box if config.project_every_stage else None] * (len(parameters) - 1) + [box]
        self._stages = [
            _StageSweep(Stage(stage, config, tile_rows=tile_rows), limit, shape, tile_rows)
            for stage, limit in zip(parameters, boxes, strict=True)
        ]
        self._groups = Slab((self._height, self._width, config.group_size, 2), 0, np.int8)
        # What enters each stage; the noisy image enters the first, and pulls on all of them.
        dtype = parameters[0].filters.dtype
        self._inputs = [Slab(shape, 1, dtype) for _ in self._stages]
        self._noisy = self._inputs[0]
        self._written = 0

    def run(self, workers: Workers, progress: Callable[[float], None] | None = None) -> None:
        """Go down the whole image; an exception raised by `progress` stops the work."""
        while self._written < self._height:
            matched, tasks = self._matching_step(workers)
            for stage, rows in zip(self._stages, self._inputs, strict=True):
                tasks += stage.next_tasks(rows, self._noisy, self._groups, workers)
            workers.map(lambda task: task(), tasks)
            self._groups.add(matched)
            self._pass_on_finished_rows()
            self._drop_rows()
            if progress is not None:
                progress(self._share_done())

    def _matching_step(self, workers: Workers) -> tuple[int, list[Task]]:
        """Return the tasks that find the groups of one more row of tiles, and how many rows."""
        top = self._groups.last
        bottom = min(top + self._tile_rows, self._height)
        if top == bottom:
            return 0, []
        below = min(bottom + self._margin, self._height)
        if below > self._noisy.last:
            self._noisy.append(self._read(self._noisy.last, below))
        found: Groups = self._groups.room(bottom - top)
        luminance, first = self._noisy.rows[0], self._noisy.first
        tasks = matching_tasks(luminance, first, self._height, top, found, self._config, workers)
        return bottom - top, list(tasks)

    def _pass_on_finished_rows(self) -> None:
        for number, stage in enumerate(self._stages, start=1):
            rows = stage.take_finished_rows()
            if rows is None:
                continue
            if number < len(self._stages):
                self._inputs[number].append(rows)
            else:
                self._write(self._written, rows)
                self._written += rows.shape[1]

    def _drop_rows(self) -> None:
        self._groups.drop(self._stages[-1].needs_groups_from)
        for stage, rows in zip(self._stages[1:], self._inputs[1:], strict=True):
            rows.drop(stage.needs_from)
        for_stages = min(stage.needs_from for stage in self._stages)
        self._noisy.drop(min(for_stages, max(0, self._groups.last - self._margin)))

    def _share_done(self) -> float:
        staged = sum(stage.share_done for stage in self._stages) / len(self._stages)
        matched = self._groups.last / self._height
        return MATCHING_SHARE * matched + (1 - MATCHING_SHARE) * staged

    @property
    def _margin(self) -> int:
        return self._config.window // 2 + self._config.patch_radius


def choose_tile_rows(
    shape: tuple[int, int, int],
    config: NetworkConfig,
    threads: int,
    itemsize: int,
    max_memory: int | None,
) -> int:
    """Return the largest height of tiles whose sweep fits into `max_memory` bytes.

    Raises
    ------
    InputError
        If even the smallest does not fit.
    """
    if max_memory is None:
        return TILE
    for tile_rows in TILE_ROWS_TO_CHOOSE:
        needed = memory_needed(shape, config, threads, itemsize, tile_rows)
        if needed <= max_memory:
            return tile_rows
    raise InputError(
        f"max_memory is {max_memory} bytes, but an image {shape[2]} pixels wide takes at least "
        f"{needed} bytes."
    )


def memory_needed(
    shape: tuple[int, int, int], config: NetworkConfig, threads: int, itemsize: int, tile_rows: int
) -> int:
    """Return an upper bound of the bytes a sweep holds besides what is read and written."""
    channels, height, width = shape
    margin = config.window // 2 + config.patch_radius
    lag = 2 * (margin + tile_rows)  # rows from a stage's input to its output
    pixel = channels * itemsize

    def held(rows: int) -> int:
        return 2 * min(rows, height) * width  # slabs are half empty

    noisy_and_groups = held(config.stages * lag + margin + tile_rows) * (
        pixel + 2 * config.group_size
    )
    inputs = (config.stages - 1) * held(lag + tile_rows) * pixel
    windows = (tile_rows + 2 * margin) * (TILE + 2 * margin + 32)
    ring = min(_ring_length(margin, tile_rows), -(-height // tile_rows))
    parts = config.stages * ring * -(-width // TILE) * windows * pixel
    # One step: groups and strips of one row of tiles, rows being finished, and their copies.
    step = width * tile_rows * (2 * config.group_size + 12 * pixel) + 4 * width * lag
    patch = 2 * config.patch_size**2 * itemsize
    shapes = memory_shapes(
        tile_rows, config.window // 2, config.patch_radius, config.group_size - 1
    )
    matching = 8 * sum(math.prod(shape) for shape in shapes)
    tile = ROWS_AT_ONCE * TILE * patch + 3 * windows * itemsize + matching
    total = noisy_and_groups + inputs + parts + step + threads * tile
    # While a slab grows there are two of it; tables and Python itself take a few megabytes.
    return int(1.25 * total) + 4_000_000
