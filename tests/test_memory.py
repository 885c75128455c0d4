"""Memory of denoising a large image, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from refinements import STAGES, refined_config, refined_family

from nlnet.denoising.network import least_memory
from nlnet.network.refinement import RefinementConfig

pytest.importorskip("resource")

MEASURE = """
import json, resource, sys
import numpy as np
import nlnet

def peak():
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

def rise(image, ballast):
    # The mark only ever rises, and starts with that of the parent: go beyond it first.
    before = peak()
    while peak() == before:
        ballast.append(np.ones(2**22, np.uint8))
    before = peak()
    output = nlnet.denoise(image, 25, data_range=255, **options)
    return peak() - before - output.nbytes

shape = tuple(json.loads(sys.argv[1]))
options = {"threads": 2, **json.loads(sys.argv[2])}
if len(shape) == 3:
    options["channel_axis"] = -1
rng = np.random.default_rng(0)
image = rng.uniform(0, 255, shape).astype(np.float32)
nlnet.denoise(image[:64, :64], 25, data_range=255, **{**options, "max_memory": None})
print(rise(image, []))
"""


def measure(shape: tuple[int, ...], **options: object) -> int:
    """Return the bytes that denoising such an image takes besides input and output."""
    arguments = [json.dumps(shape), json.dumps(options)]
    command = [sys.executable, "-c", MEASURE, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout)


# As wide as 8 megapixels, but not as high: memory grows with the width, so a pixel of the whole
# image takes less.
@pytest.mark.parametrize(
    ("shape", "limit"), [((800, 3266), 64), ((800, 3266, 3), 112)], ids=["gray", "color"]
)
def test_a_wide_image_takes_few_bytes_a_pixel(shape: tuple[int, ...], limit: int) -> None:
    pixels = shape[0] * shape[1]
    assert 0 < measure(shape) < limit * pixels


def test_max_memory_is_kept() -> None:
    limit = 40_000_000
    shape = (600, 2000)
    assert measure(shape) > limit > measure(shape, max_memory=limit) > 0


def test_max_memory_is_kept_with_a_refinement(tmp_path: Path) -> None:
    """Its ring buffers are most of it: 64 values for every four pixels of their rows."""
    sizes = RefinementConfig((64, 64), (3, 2), (3,))
    refined_family(sizes).save(tmp_path / "refined.safetensors")
    shape, model = (300, 2000), str(tmp_path / "refined.safetensors")
    limit = least_memory((1, *shape), refined_config(sizes), threads=2)
    assert limit > least_memory((1, *shape), STAGES, threads=2) + 20_000_000
    assert measure(shape, model=model) > limit
    assert limit > measure(shape, model=model, max_memory=limit) > 0
