"""The second run of the numerical tests, with fewer CPU features, really has fewer of them."""

from __future__ import annotations

import platform

import pytest

pytest.importorskip("torch")
baseline = pytest.importorskip("scripts.baseline")


@pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="names x86-64's features")
def test_no_library_uses_more_than_the_baseline() -> None:
    assert baseline.features_of_the_smallest() == {
        "numpy": [],
        "openblas": ["Nehalem"],
        "engine": "nlnet engine 1, SSE2",
        "torch": "DEFAULT",
    }
