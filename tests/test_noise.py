from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nlnet.noise import add_noise

pytestmark = pytest.mark.numerical


def test_noise_is_that_of_the_protocol() -> None:
    clean = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    expected = clean + 15 * np.random.default_rng(7).standard_normal((2, 4, 3))
    noisy = add_noise(clean, 15, seed=7)
    assert noisy.dtype == np.float64
    np.testing.assert_array_equal(noisy, expected)


def test_noise_is_neither_clipped_nor_rounded() -> None:
    noisy = add_noise(np.full((64, 64), 255, np.uint8), 25)
    assert noisy.max() > 255
    assert not np.array_equal(noisy, np.rint(noisy))


def test_seeds_differ() -> None:
    clean = np.zeros((8, 8))
    assert not np.array_equal(add_noise(clean, 1, 0), add_noise(clean, 1, 1))


@pytest.mark.parametrize("kind", ["gray", "color"])
def test_noise_equals_that_of_the_reference(shared: Path, kind: str) -> None:
    with np.load(shared / "reference" / f"expected_{kind}.npz") as reference:
        noisy = add_noise(reference["clean"], 25, seed=0)
        np.testing.assert_allclose(noisy, reference["noisy"], atol=1e-4)
