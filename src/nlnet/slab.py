"""Rows of an image that is never held whole: those that somebody still needs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array


class Slab:
    """Consecutive rows of something that grows at the bottom and is dropped at the top.

    Parameters
    ----------
    shape : tuple
        That of the whole.
    axis : int
        The axis along which rows are counted.
    dtype : dtype
        Of the elements.
    """

    def __init__(self, shape: tuple[int, ...], axis: int, dtype: npt.DTypeLike) -> None:
        self._shape = shape
        self._axis = axis
        self._held = np.empty(self._shape_of(0), dtype)
        self._start = 0  # of the rows in use, within what is held
        self.first = 0
        self.last = 0

    def room(self, count: int) -> Array:
        """Return memory for the next `count` rows; they do not belong to the slab yet."""
        used = self.last - self.first
        if self._start + used + count > self._held.shape[self._axis]:
            # Half of it stays free, so that rows are moved up only now and then.
            wanted = min(2 * (used + count), self._shape[self._axis] - self.first)
            held = self._held
            if wanted > held.shape[self._axis]:
                held = np.empty(self._shape_of(wanted), held.dtype)
            held[self._at(0, used)] = self.rows
            self._held, self._start = held, 0
        return self._held[self._at(self._start + used, self._start + used + count)]

    def add(self, count: int) -> None:
        """Add rows at the bottom, those that :meth:`room` gave memory for."""
        self.last += count

    def append(self, rows: Array) -> None:
        """Add a copy of some rows at the bottom."""
        count = rows.shape[self._axis]
        self.room(count)[:] = rows
        self.add(count)

    def drop(self, before: int) -> None:
        """Forget the rows above row `before`."""
        count = min(max(before - self.first, 0), self.last - self.first)
        self._start += count
        self.first += count

    @property
    def rows(self) -> Array:
        """The rows from `first` to `last`."""
        return self._held[self._at(self._start, self._start + self.last - self.first)]

    def _shape_of(self, rows: int) -> tuple[int, ...]:
        return (*self._shape[: self._axis], rows, *self._shape[self._axis + 1 :])

    def _at(self, first: int, last: int) -> tuple[slice, ...]:
        return (slice(None),) * self._axis + (slice(first, last),)
