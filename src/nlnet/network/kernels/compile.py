"""How kernels are compiled: one decorator, so that all of them share the same promises.

Kernels release the GIL, are cached on disk (in the package folder or, where that is read-only, in
the user's cache folder) and never reassociate sums: the same input gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import event

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on plain arrays with numba, typed as the Python function it was."""
    compiled = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return cast(Callable[P, R], compiled)


class _FirstCompilation(event.Listener):
    """Calls back when the first kernel is compiled; those found in the cache do not count."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback: Callable[[], None] | None = callback

    def on_start(self, event: Any) -> None:
        if self._callback is not None:
            self._callback()
            self._callback = None

    def on_end(self, event: Any) -> None:
        """Nothing to do."""


@contextmanager
def on_first_compilation(callback: Callable[[], None]) -> Iterator[None]:
    """Inside the block, call `callback` once if a kernel has to be compiled, before it is."""
    with event.install_listener("numba:compile", _FirstCompilation(callback)):
        yield
