"""The code of docs/integrations.md runs, and its function for napari does what the page says."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from paths import PROJECT

import nlnet

pytest.importorskip("torch")

BLOCK = re.compile(r"(<!-- not run[^>]*-->\n)?```python\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Run the page from top to bottom; return what its names stand for."""
    page = (PROJECT / "docs" / "integrations.md").read_text()
    blocks = [code for skipped, code in BLOCK.findall(page) if not skipped]
    assert len(blocks) == 3
    held: dict[str, Any] = {}
    for code in blocks:
        exec(compile(code, "integrations.md", "exec"), held)
    return held


def test_the_movie_is_denoised(names: dict[str, Any]) -> None:
    movie, denoised = names["movie"], names["denoised"]
    assert denoised.shape == movie.shape
    assert denoised.dtype == movie.dtype
    assert denoised.std() < movie.std() / 4


def test_the_batch_is_denoised(names: dict[str, Any]) -> None:
    assert names["cleaned"].shape == names["batch"].shape
    assert names["cleaned"][0].std() < names["batch"][0].std() / 4


@pytest.mark.parametrize("shape", [(24, 32), (2, 24, 32), (24, 32, 3), (2, 24, 32, 4)])
def test_the_function_for_napari(names: dict[str, Any], shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(0).normal(128, 25, shape).clip(0, 255)
    rgb = shape[-1] in (3, 4)
    layer = SimpleNamespace(data=values.astype(np.uint8), rgb=rgb, name="cells")
    pixels, settings, kind = names["denoise"](layer, 25.0)
    np.testing.assert_array_equal(pixels, nlnet.denoise_stack(layer.data, 25))
    assert settings == {"name": "cells, denoised", "rgb": rgb}
    assert kind == "image"
    estimated, *_ = names["denoise"](layer)
    np.testing.assert_array_equal(estimated, nlnet.denoise_stack(layer.data))
