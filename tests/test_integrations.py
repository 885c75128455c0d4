"""The code of docs/integrations.md runs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from paths import PROJECT

pytest.importorskip("torch")

BLOCK = re.compile(r"(<!-- not run[^>]*-->\n)?```python\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Run the page from top to bottom; return what its names stand for."""
    page = (PROJECT / "docs" / "integrations.md").read_text()
    blocks = [code for skipped, code in BLOCK.findall(page) if not skipped]
    assert len(blocks) == 2
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
