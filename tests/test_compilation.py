"""The first run says that it compiles; the second finds the compiled kernels in the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from nlnet.images import ImageFile, write_image
from nlnet.model import Model


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
