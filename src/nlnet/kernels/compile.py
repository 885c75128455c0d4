"""How kernels are compiled: one decorator, so that all of them share the same promises.

Kernels release the GIL, are cached on disk (in the package folder or, where that is read-only, in
the user's cache folder) and never reassociate sums: the same input gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on plain arrays with numba, typed as the Python function it was."""
    compiled = numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    return cast(Callable[P, R], compiled)
