"""Denoising in one sweep down the image: memory for some rows of it, whatever its height.

Rows of tiles go through matching and all stages like items on a conveyor. A stage works on a row of
tiles as soon as the stage before has finished the rows around it, and finishes rows as soon as all
tiles that add to them have been worked on. Nothing waits for anything else: a thread that has ended
one task takes whichever is ready, and the later its stage, the sooner, so that rows that nobody
needs any more can be dropped.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from nlnet.arrays import FloatArray, Groups
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import matching_tasks
from nlnet.network.parallel import Task, Workers
from nlnet.network.parameters import StageParameters
from nlnet.network.projection import Box, project
from nlnet.network.slab import Slab
from nlnet.network.stage import Stage
from nlnet.network.sweep_memory import ROWS_AHEAD, ring_length, rows_held
from nlnet.network.tiles import TILE, ImageRows, cut_row

MATCHING_SHARE = 0.5
"""Part of the whole time that matching takes, for progress."""

TILES_AT_MOST = 8
"""Tiles of one task: more would keep threads waiting where a row depends on it."""

ReadRows = Callable[[int, int], FloatArray]
WriteRows = Callable[[int, FloatArray], None]


class _Rows:
    """The image's rows of tiles."""

    def __init__(self, height: int, width: int, tile_rows: int) -> None:
        self.height, self.width, self.tile_rows = height, width, tile_rows
        self.count = -(-height // tile_rows)

    def between(self, row: int) -> tuple[int, int]:
        """Return the rows of the image, first and last, that a row of tiles has."""
        top = row * self.tile_rows
        return top, min(top + self.tile_rows, self.height)


class _MatchingSweep:
    """How far matching has come down the image, and the groups that some stage still needs."""

    def __init__(self, read: ReadRows, noisy: Slab, config: NetworkConfig, rows: _Rows) -> None:
        self._read, self._noisy = read, noisy
        self._config = config
        self._rows = rows
        self._begun = 0  # rows of tiles
        self._ended = 0
        self._waiting: deque[Task] = deque()
        self.found: dict[int, Groups] = {}

    def next_task(self, wanted: int, workers: Workers) -> Task | None:
        """Return a task that is ready, if any, of the rows of tiles up to `wanted`."""
        if not self._waiting and self._begun < min(wanted + 1, self._rows.count):
            self._begin_row(workers)
        return self._waiting.popleft() if self._waiting else None

    def _begin_row(self, workers: Workers) -> None:
        row = self._begun
        top, bottom = self._rows.between(row)
        below = min(bottom + self._config.margin, self._rows.height)
        missing = below - self._noisy.last
        if missing > 0:
            self._noisy.room(missing)[:] = self._read(self._noisy.last, below)
            self._noisy.add(missing)
        groups = np.empty((bottom - top, self._rows.width, self._config.group_size, 2), np.int8)
        luminance, first = self._noisy.rows[0], self._noisy.first
        tasks = list(
            matching_tasks(luminance, first, self._rows.height, top, groups, self._config, workers)
        )
        unfinished = len(tasks)

        def end(_: None) -> None:
            nonlocal unfinished
            unfinished -= 1
            if unfinished == 0:
                self.found[row] = groups
                self._ended += 1

        self._begun += 1
        self._waiting.extend(Task(task, end) for task in tasks)

    @property
    def share_done(self) -> float:
        """Share of the rows of tiles whose groups have been found."""
        return self._ended / self._rows.count


class _Output:
    """Where the rows of the last stage go.

    Parameters
    ----------
    write : callable
        Takes them.
    written : callable
        Called each time it has taken some.
    like : Slab
        Such rows.
    """

    def __init__(self, write: WriteRows, written: Callable[[], None], like: Slab) -> None:
        self._write, self._written = write, written
        self._like = like
        self._rows: FloatArray | None = None
        self.last = 0

    def room(self, count: int) -> FloatArray:
        """Return memory for the next `count` rows."""
        rows = self._like.rows
        self._rows = np.empty((rows.shape[0], count, rows.shape[2]), rows.dtype)
        return self._rows

    def add(self, count: int) -> None:
        """Write the rows that :meth:`room` gave memory for."""
        assert self._rows is not None
        self._write(self.last, self._rows)
        self.last += count
        self._written()


class _StageSweep:
    """How far one stage has come down the image, and what it still holds.

    Parameters
    ----------
    stage : Stage
        What it computes.
    box : (low, high) or None
        Intensities that its output is kept in.
    rows : _Rows
        The rows of tiles.
    estimate, noisy : Slab
        Its input, and the noisy image.
    found : dict
        The groups of rows of tiles, where they have been found.
    output : Slab or _Output
        Where its rows go.
    """

    def __init__(
        self,
        stage: Stage,
        box: Box | None,
        rows: _Rows,
        estimate: Slab,
        noisy: Slab,
        found: dict[int, Groups],
        output: Slab | _Output,
    ) -> None:
        self._stage = stage
        self._box = box
        self._rows = rows
        self._estimate, self._noisy = estimate, noisy
        self._found = found
        self._output = output
        ring = min(ring_length(stage.margin, rows.tile_rows), rows.count)
        self._parts = stage.new_parts(len(estimate.rows), ring, rows.width)
        self._waiting: deque[Task] = deque()
        self._unfinished_tasks = 0
        self._folded = 0  # rows of the image finished
        self.spread = 0  # rows of tiles worked on
        self._needs_to = self._last_row_needed()

    def next_task(self, workers: Workers) -> Task | None:
        """Return a task that is ready, if any."""
        if not self._unfinished_tasks and self._estimate.last >= self._needs_to:
            groups = self._found.get(self.spread)
            if groups is not None:
                self._begin_row(groups, workers)
        return self._waiting.popleft() if self._waiting else None

    def _begin_row(self, groups: Groups, workers: Workers) -> None:
        """Make the tasks of the next row of tiles."""
        tiles = cut_row(self.spread, self._rows.tile_rows, self._rows.height, self._rows.width)
        step = min(-(-len(tiles) // workers.threads), TILES_AT_MOST)
        for first in range(0, len(tiles), step):
            near_tiles = tiles[first : first + step]
            work = functools.partial(
                self._stage.spread_tiles,
                self._held(self._estimate),
                groups,
                near_tiles,
                self._parts,
                workers,
            )
            self._add_task(work, functools.partial(self._end_row, workers))

    def _add_task(self, work: Callable[[], object], then: Callable[..., None]) -> None:
        """Add a task; `then` is called with its result if it ends last."""

        def end(result: object) -> None:
            self._unfinished_tasks -= 1
            if not self._unfinished_tasks:
                then(result)

        self._waiting.append(Task(work, end))
        self._unfinished_tasks += 1

    def _end_row(self, workers: Workers, _: None) -> None:
        """Make the task that finishes the rows that no tile will add to any more, if any."""
        self.spread += 1
        self._needs_to = self._last_row_needed()
        first, last = self._folded, self._rows.height
        if self.spread < self._rows.count:
            last = max(self.spread * self._rows.tile_rows - self._stage.margin, first)
        if last > first:
            work = functools.partial(
                self._finish,
                first,
                self._output.room(last - first),
                self._held(self._estimate),
                self._held(self._noisy),
                workers,
            )
            self._add_task(work, self._end_rows)

    def _finish(
        self,
        first: int,
        out: FloatArray,
        estimate: ImageRows,
        noisy: ImageRows,
        workers: Workers,
    ) -> FloatArray:
        oldest = max(0, (first - self._stage.margin) // self._rows.tile_rows)
        tiles = range(oldest, self.spread)
        self._stage.fold(self._parts, tiles, estimate, noisy, first, out, workers)
        return out if self._box is None else project(out, self._box, out)  # Eq. (22)

    def _end_rows(self, finished: FloatArray) -> None:
        count = finished.shape[1]
        self._folded += count
        self._output.add(count)
        if self._estimate is not self._noisy:  # which later stages need for longer
            self._estimate.drop(self.needs_from)

    def _last_row_needed(self) -> int:
        """Return how far down the input must be there for the next row of tiles."""
        _, bottom = self._rows.between(self.spread)
        return min(bottom + self._stage.margin, self._rows.height)

    def _held(self, slab: Slab) -> ImageRows:
        return ImageRows(slab.rows, slab.first, self._rows.height)

    @property
    def needs_from(self) -> int:
        """First row of the input that this stage still needs."""
        next_top, _ = self._rows.between(self.spread)
        return max(0, min(next_top - self._stage.margin, self._folded))

    @property
    def share_done(self) -> float:
        """Share of the rows of tiles worked on."""
        return self.spread / self._rows.count


class Sweep:
    """A network on its way down one image.

    Parameters
    ----------
    read : callable
        ``read(first, last)`` returns these rows as working planes, (C, rows, W); every row is asked
        for once, in order.
    write : callable
        ``write(first, planes)`` takes finished rows, in order. It and `read` are called in any
        thread of the workers', but only one at a time.
    shape : (C, H, W)
        Shape of the whole image, which :func:`nlnet.network.matching.check_size` has seen.
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
        _, self._height, width = shape
        rows = _Rows(self._height, width, tile_rows)
        # What enters each stage; the noisy image enters the first, and pulls on all of them.
        dtype = parameters[0].filters.dtype
        noisy_rows, input_rows = rows_held(config, tile_rows)
        self._noisy = Slab(shape, dtype, noisy_rows)
        self._inputs = [self._noisy, *(Slab(shape, dtype, input_rows) for _ in parameters[1:])]
        self._output = _Output(write, self._drop_rows, self._noisy)
        self._matching = _MatchingSweep(read, self._noisy, config, rows)
        boxes = [box if config.project_every_stage else None] * (len(parameters) - 1) + [box]
        outputs: list[Slab | _Output] = [*self._inputs[1:], self._output]
        self._stages = [
            _StageSweep(
                Stage(stage, config, tile_rows=tile_rows),
                limit,
                rows,
                estimate,
                self._noisy,
                self._matching.found,
                output,
            )
            for stage, limit, estimate, output in zip(
                parameters, boxes, self._inputs, outputs, strict=True
            )
        ]

    def run(self, workers: Workers, progress: Callable[[float], None] | None = None) -> None:
        """Go down the whole image; an exception raised by `progress` stops the work."""

        def report() -> None:
            if progress is not None:
                progress(self._share_done())

        report()
        workers.run(lambda: self._next_task(workers), report)
        assert self._output.last == self._height, (self._output.last, self._height)
        report()

    def _next_task(self, workers: Workers) -> Task | None:
        for stage in reversed(self._stages):
            task = stage.next_task(workers)
            if task is not None:
                return task
        return self._matching.next_task(self._stages[0].spread + ROWS_AHEAD, workers)

    def _drop_rows(self) -> None:
        """Drop what the last stage does not need any more: nobody else is as far behind."""
        last = self._stages[-1]
        self._noisy.drop(last.needs_from)
        for row in [row for row in self._matching.found if row < last.spread]:
            del self._matching.found[row]

    def _share_done(self) -> float:
        staged = sum(stage.share_done for stage in self._stages) / len(self._stages)
        return MATCHING_SHARE * self._matching.share_done + (1 - MATCHING_SHARE) * staged
