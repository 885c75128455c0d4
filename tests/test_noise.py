from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nlnet.noise import add_noise, store

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


@pytest.mark.parametrize(
    ("dtype", "data_range", "expected"),
    [
        (np.uint8, 255, [0, 0, 100, 255, 255]),
        (np.uint8, 1000, [0, 0, 100, 255, 255]),  # more than the dtype holds
        (np.uint16, 4095, [0, 0, 100, 300, 4095]),
        (np.uint32, None, [0, 0, 100, 300, 2**32 - 1]),
        (np.int16, None, [-32768, -4, 100, 300, 32767]),
        (np.int16, 250, [-32768, -4, 100, 300, 32767]),  # black is not 0 where values are signed
        (np.int32, None, [-(2**31), -4, 100, 300, 2**31 - 1]),
    ],
)
def test_whole_numbers_are_rounded_and_never_wrap(
    dtype: type, data_range: float | None, expected: list[int]
) -> None:
    noisy = np.array([-1e12, -3.6, 99.6, 299.5001, 1e12])
    stored = store(noisy, np.dtype(dtype), data_range)
    assert stored.dtype == dtype
    assert stored.tolist() == expected
