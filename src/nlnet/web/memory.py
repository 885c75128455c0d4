"""A budget for the memory that the uploads and results of all requests take together."""

from __future__ import annotations

from nlnet.web.queue import Busy


class Memory:
    """A budget in bytes.

    Parameters
    ----------
    size : int
        Bytes that all claims together may hold.
    """

    def __init__(self, size: int) -> None:
        self._free = size

    @property
    def free(self) -> int:
        """Bytes that are left; negative if results have taken more than there was."""
        return self._free

    def take(self, count: int) -> None:
        """Take bytes, or with a negative count give them back."""
        self._free -= count

    def claim(self) -> Claim:
        """Return an empty claim, to be used in a ``with`` block."""
        return Claim(self)


class Claim:
    """The bytes of one request; they are given back at the end of its ``with`` block."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._count = 0

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.hold(-self._count)

    def add(self, count: int) -> None:
        """Claim more bytes, or raise Busy if there are not as many."""
        if count > self._memory.free:
            raise Busy("The server holds as many images as it can; try again later.", 5)
        self.hold(count)

    def hold(self, count: int) -> None:
        """Claim bytes that are in use already, even beyond the budget."""
        self._memory.take(count)
        self._count += count
