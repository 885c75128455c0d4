"""Runs the numerical tests as on the smallest CPU: ``python -m scripts.baseline``.

Vectors of another width add in another order, and a multiply-add rounds once instead of twice. A
test that passes on one CPU only would fail for somebody else; here numpy, OpenBLAS, numba and torch
do without whatever this CPU has beyond their baseline. Arguments are passed on to pytest.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import threadpoolctl

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "numba-baseline"

# The core of OpenBLAS, and the CPU and features of numba, by platform.machine().
_SMALLEST = {
    "x86_64": ("Nehalem", "nehalem", "+sse4.2,+popcnt"),
    "AMD64": ("Nehalem", "nehalem", "+sse4.2,+popcnt"),
    "aarch64": ("ARMV8", "generic", "+neon"),
    "arm64": ("ARMV8", "generic", "+neon"),
}


def smallest_environment() -> dict[str, str]:
    """Return the environment in which processes use baseline features only."""
    core, cpu, cpu_features = _SMALLEST[platform.machine()]
    return {
        **os.environ,
        "NPY_DISABLE_CPU_FEATURES": " ".join(_numpy_features()),
        "OPENBLAS_CORETYPE": core,
        "NUMBA_CPU_NAME": cpu,
        "NUMBA_CPU_FEATURES": cpu_features,
        "NUMBA_CACHE_DIR": str(CACHE),
        "ATEN_CPU_CAPABILITY": "default",
    }


def features() -> dict[str, Any]:
    """Return what the libraries of this process use of the CPU."""
    import torch

    cores = threadpoolctl.ThreadpoolController().select(internal_api="openblas").info()
    return {
        "numpy": _numpy_features(),
        "openblas": sorted({library["architecture"] for library in cores}),
        "numba": _numba_vector_bits(),
        "torch": torch.backends.cpu.get_cpu_capability(),
    }


def features_of_the_smallest() -> dict[str, Any]:
    """Return what a process in the smallest environment uses of the CPU."""
    command = [sys.executable, "-c", "from scripts import baseline; baseline.print_features()"]
    done = subprocess.run(
        command, cwd=ROOT, env=smallest_environment(), check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def print_features() -> None:
    """Print :func:`features` as JSON."""
    print(json.dumps(features()))


def _numpy_features() -> list[str]:
    """Return the features of this CPU that numpy uses, beyond those it was built for."""
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]  # type: ignore[call-arg]
    found: list[str] = extensions.get("found", [])
    return found


def _numba_vector_bits() -> int:
    """Return the width of the vectors that numba makes of a plain loop."""

    @numba.njit
    def scale(values: Any) -> None:
        for place in range(values.size):
            values[place] *= 3

    scale(np.ones(64, np.float32))
    (assembly,) = scale.inspect_asm().values()
    return 512 if "%zmm" in assembly else 256 if "%ymm" in assembly else 128


def main() -> int:
    """Run pytest on the numerical tests; say beforehand what is used and what is left out."""
    if platform.machine() not in _SMALLEST:
        print(f"No smaller CPU is known for {platform.machine()}: nothing to run.")
        return 0
    full, smallest = features(), features_of_the_smallest()
    for library, value in full.items():
        print(f"{library}: {smallest[library]} instead of {value}")
    command = [sys.executable, "-m", "pytest", "-m", "numerical and not slow", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=smallest_environment(), check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
