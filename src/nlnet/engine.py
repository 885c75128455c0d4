"""What does the computing: its name, and which vectors of the CPU it uses."""

from __future__ import annotations

import os
from importlib.metadata import version

_SETS = {
    "avx512f": "AVX-512",
    "avx2": "AVX2",
    "avx": "AVX",
    "sse4.2": "SSE4.2",
    "sve": "SVE",
    "neon": "NEON",
}
"""Features of CPUs by LLVM's names, widest vectors first, and what people call them."""


def describe_engine() -> str:
    """Return the engine and its instruction set, such as "numba 0.60.0, AVX2"."""
    return f"numba {version('numba')}, {instruction_set()}"


def instruction_set() -> str:
    """Return the widest vector instructions that kernels are compiled for."""
    import llvmlite.binding

    # The variable is how numba is told to use less than there is.
    told = os.environ.get("NUMBA_CPU_FEATURES")
    features = told or llvmlite.binding.get_host_cpu_features().flatten()
    enabled = {name[1:] for name in features.split(",") if name.startswith("+")}
    return next((title for name, title in _SETS.items() if name in enabled), "no vectors")
