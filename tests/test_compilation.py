"""The first run says that it compiles, the next finds the kernels; narrow vectors do the same."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import noise

import nlnet
from nlnet.images import ImageFile, write_image
from nlnet.model.model import Model


def test_only_the_first_run_compiles(gray_model: Model, tmp_path: Path) -> None:
    gray_model.save(tmp_path / "model.safetensors")
    noisy = np.random.default_rng(0).integers(0, 256, (24, 24)).astype(np.uint8)
    write_image(tmp_path / "noisy.png", ImageFile(noisy))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "nlnet", "denoise", "noisy.png", "--overwrite"]
    command += ["-o", "out.png", "--sigma", "25", "--model", "model.safetensors"]
    told = []
    for _ in range(2):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        )
        told.append(done.stderr.count("compiling"))
    assert told == [1, 0]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names features of x86-64")
def test_a_cpu_with_narrow_vectors_gives_the_same_bits(gray_model: Model, tmp_path: Path) -> None:
    gray_model.save(tmp_path / "model.safetensors")
    noisy = noise(40, 150).astype(np.float32)
    np.save(tmp_path / "noisy.npy", noisy)
    script = (
        "import numpy as np, nlnet; from nlnet.network.kernels.simd.vectors import WIDE_LANES; "
        "np.save('lanes.npy', WIDE_LANES); np.save('out.npy', nlnet.denoise("
        "np.load('noisy.npy'), 25, model='model.safetensors', data_range=255))"
    )
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+sse4.2,+popcnt,+bmi,+bmi2",
    }
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, check=True)
    assert np.load(tmp_path / "lanes.npy") == 8
    wanted = nlnet.denoise(noisy, 25, model=tmp_path / "model.safetensors", data_range=255)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), wanted)
