"""Runs the numerical tests as on smaller CPUs: ``python -m scripts.baseline``.

Vectors of another width add in another order, and a multiply-add rounds once instead of twice. A
test that passes on one CPU only would fail for somebody else. There are two kinds of passes:

- With the smallest instruction set of the engine, numpy, OpenBLAS and torch do without whatever
  this CPU has beyond their baseline, too. That protects every test from the rounding of this CPU:
  there is no multiply-add anywhere, and all vectors are as short as they get.
- For each of the engine's sets between that and the best one of this CPU, only the engine differs.
  On a CPU with AVX-512 that is AVX2, which has multiply-add in vectors half as wide: what most
  people have, and what neither the first pass nor the tests on the whole CPU compute with. Tests
  that do not call the engine (``pytest.mark.engineless``, which is checked) would repeat to the bit
  what they did on the whole CPU, so they are left out.

So every set of the engine is met once, and every other library with all it has and with the least.
With ``--if-changed`` as the first argument, nothing is run if the engine and all code that computes
are as they were when all of this last passed. Other arguments are passed on to pytest.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from nlnet.engine import describe_engine
from nlnet.engine.library import SET_VARIABLE, SETS, available_sets, instruction_set

ROOT = Path(__file__).resolve().parent.parent
STAMP = ROOT / "build" / "baseline"
"""Holds the digest of what was tested when the tests last passed."""

COMPUTING = (
    "engine/include",
    "engine/src",
    *("constraints.txt", "scripts/baseline.py", "src/nlnet/inputs.py", "src/nlnet/masks.py"),
    *(f"src/nlnet/{name}" for name in ("engine", "network", "model", "noise", "denoising")),
    *(f"src/nlnet/{name}" for name in ("raw", "evaluation", "torch", "training", "dask")),
)
"""Files and folders that results depend on; tests are not among them."""

# The core of OpenBLAS, by platform.machine().
_NUMERICAL = "numerical and not slow"
_SMALLEST_CORE = {"x86_64": "Nehalem", "AMD64": "Nehalem", "aarch64": "ARMV8", "arm64": "ARMV8"}


def smallest_environment() -> dict[str, str]:
    """Return the environment in which processes use baseline features only."""
    return {
        **os.environ,
        "NPY_DISABLE_CPU_FEATURES": " ".join(_numpy_features()),
        "OPENBLAS_CORETYPE": _SMALLEST_CORE[platform.machine()],
        SET_VARIABLE: available_sets()[0],
        "ATEN_CPU_CAPABILITY": "default",
    }


def passes() -> list[tuple[str, dict[str, str]]]:
    """Return what to run, as pytest selects it by marks, and in which environment."""
    between = [name for name in available_sets()[1:] if SETS[name] != instruction_set()]
    return [
        (_NUMERICAL, smallest_environment()),
        *(
            (f"{_NUMERICAL} and not engineless", {**os.environ, SET_VARIABLE: name})
            for name in between
        ),
    ]


def numerical_files() -> list[str]:
    """Return where numerical tests are: the others need not be imported."""
    files = (ROOT / "tests").glob("test_*.py")
    return [*sorted(str(path) for path in files if "mark.numerical" in path.read_text()), "src"]


def digest() -> str:
    """Return a digest of the code that computes, and of the tests of it."""
    files = [path for name in COMPUTING for path in (ROOT / name, *(ROOT / name).rglob("*"))]
    tests = [Path(name) for name in numerical_files() if name != "src"]
    suffixes = {".py", ".h", ".cpp", ".txt", ".safetensors"}
    found = hashlib.sha256()
    for path in sorted(
        {path for path in (*files, *tests) if path.suffix in suffixes and path.is_file()}
    ):
        found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def features() -> dict[str, Any]:
    """Return what the libraries of this process use of the CPU."""
    import torch

    cores = threadpoolctl.ThreadpoolController().select(internal_api="openblas").info()
    return {
        "numpy": _numpy_features(),
        "openblas": sorted({library["architecture"] for library in cores}),
        "engine": describe_engine(),
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
    extensions = np.show_config(mode="dicts")["SIMD Extensions"]
    found: list[str] = extensions.get("found", [])
    return found


def main() -> int:
    """Run pytest on the numerical tests; say beforehand what is used and what is left out."""
    if platform.machine() not in _SMALLEST_CORE:
        print(f"No smaller CPU is known for {platform.machine()}: nothing to run.")
        return 0
    arguments = sys.argv[1:]
    tested = digest()
    if arguments[:1] == ["--if-changed"]:
        arguments = arguments[1:]
        if STAMP.exists() and STAMP.read_text() == tested:
            print("Engine and numerics are as they were when these tests last passed.")
            return 0
    full, smallest = features(), features_of_the_smallest()
    for library, value in full.items():
        print(f"{library}: {smallest[library]} instead of {value}")
    command = [sys.executable, "-m", "pytest", *numerical_files(), *arguments]
    for marks, environment in passes():
        print(f"{SET_VARIABLE}={environment[SET_VARIABLE]}, {marks}", flush=True)
        code = subprocess.run([*command, "-m", marks], cwd=ROOT, env=environment).returncode
        if code:
            return code
    STAMP.parent.mkdir(exist_ok=True)
    STAMP.write_text(tested)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
