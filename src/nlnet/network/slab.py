"""Rows of an image that is never held whole: those that somebody still needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array


class Slab:
    """Consecutive rows of planes that grow at the bottom and are dropped at the top.

    Views of its rows stay what they are: rows that make room for others move to new memory.

    Parameters
    ----------
    shape : (C, H, W)
        That of the whole.
    dtype : dtype
        Of the elements.
    rows : int
        How many are needed at once.
    """

    def __init__(self, shape: tuple[int, int, int], dtype: npt.DTypeLike, rows: int) -> None:
        self._shape = shape
        self._rows = rows
        self._held = self._new(0, dtype)
        self._start = 0  # of the rows in use, within what is held
        self.first = 0
        self.last = 0

    def room(self, count: int) -> Array:
        """Return memory for the next `count` rows; they do not belong to the slab yet."""
        used = self.last - self.first
        if self._start + used + count > self._held.shape[1]:
            # Half of it stays free, so that rows are moved only now and then.
            size = min(2 * max(self._rows, used + count), self._shape[1] - self.first)
            held = self._new(size, self._held.dtype)
            held[:, :used] = self.rows
            self._held, self._start = held, 0
        return self._held[:, self._start + used : self._start + used + count]

    def add(self, count: int) -> None:
        """Add rows at the bottom, those that :meth:`room` gave memory for."""
        self.last += count

    def drop(self, before: int) -> None:
        """Forget the rows above row `before`."""
        count = min(max(before - self.first, 0), self.last - self.first)
        self._start += count
        self.first += count

    @property
    def rows(self) -> Array:
        """The rows from `first` to `last`."""
        return self._held[:, self._start : self._start + self.last - self.first]

    def _new(self, rows: int, dtype: npt.DTypeLike) -> Array:
        return np.empty((self._shape[0], rows, self._shape[2]), dtype)
