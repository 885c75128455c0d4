"""Making noise even by coarse maps, and removing it from coarse to fine."""

from __future__ import annotations

import numpy as np
import pytest

import nlnet
from nlnet.denoising.evening import Evening, interpolate
from nlnet.noise.record import Camera

pytestmark = pytest.mark.numerical

SIZE = (64, 96)


def smooth_picture(channels: int) -> np.ndarray:
    rows, columns = np.mgrid[0 : SIZE[0], 0 : SIZE[1]]
    plane = 120 + 60 * np.sin(columns / 17) * np.cos(rows / 13)
    return np.stack([plane + 8 * channel for channel in range(channels)]).astype(np.float32)


def growing(planes: int) -> np.ndarray:
    """Noise of 2 on the left, and of 8 on the right."""
    ramp = np.linspace(2, 8, 6, dtype=np.float32)
    return np.broadcast_to(ramp, (planes, 4, 6)).copy()


@pytest.mark.parametrize("channels", [1, 3])
def test_what_was_made_even_comes_back(channels: int) -> None:
    picture = smooth_picture(channels)
    evening = Evening.of(growing(min(channels, 2)), 120.0, SIZE)
    assert evening is not None
    rows = picture[:, 10:30]
    back = evening.restore(evening.even(rows, 10), rows, 10)
    np.testing.assert_allclose(back, rows, atol=2e-3)


def test_noise_is_equally_strong_everywhere_then() -> None:
    ramp = interpolate(growing(1), SIZE, (0, SIZE[0]), (0, SIZE[1]))
    noise = ramp * np.random.default_rng(0).standard_normal((1, *SIZE)).astype(np.float32)
    flat = np.full((1, *SIZE), 100, np.float32)
    evening = Evening.of(growing(1), 100.0, SIZE)
    assert evening is not None
    even = evening.even(flat + noise, 0) - evening.even(flat, 0)
    left, right = even[:, :, :32].std(), even[:, :, -32:].std()
    assert left == pytest.approx(right, rel=0.15)
    assert even.std() == pytest.approx(evening.reference, rel=0.15)


def test_chroma_has_a_scale_of_its_own() -> None:
    strengths = np.array([4.0, 16.0], np.float32).reshape(2, 1, 1)
    picture = smooth_picture(3)
    evening = Evening.of(strengths, 0.0, SIZE)
    assert evening is not None
    even = evening.even(picture, 0)
    scales = [
        float(np.mean(plane(even)) / np.mean(plane(picture)))
        for plane in (lambda rgb: rgb.sum(axis=0), lambda rgb: rgb[0] - rgb[2])
    ]
    assert scales[0] == pytest.approx(4 * scales[1], rel=1e-3)


def test_without_noise_there_is_nothing_to_make_even() -> None:
    assert Evening.of(np.zeros((1, 2, 2), np.float32), 0.0, SIZE) is None


def test_rows_of_a_map_do_not_depend_on_how_many_are_asked_for() -> None:
    grid = np.random.default_rng(0).random((2, 3, 5)).astype(np.float32)
    everything = (0, SIZE[1])
    whole = interpolate(grid, SIZE, (0, SIZE[0]), everything)
    parts = [
        interpolate(grid, SIZE, (first, first + 8), everything) for first in range(0, SIZE[0], 8)
    ]
    np.testing.assert_array_equal(whole, np.concatenate(parts, axis=1))


def test_noise_that_is_only_on_one_side_is_removed_only_there() -> None:
    rng = np.random.default_rng(1)
    clean = np.full((128, 256), 120.0, np.float32)
    clean[:, :96] += 6 * rng.standard_normal((128, 96)).astype(np.float32)  # detail, not noise
    noisy = clean.copy()
    noisy[:, 160:] += 20 * rng.standard_normal((128, 96)).astype(np.float32)
    strengths = np.zeros((2, 3, 1, 8), np.float32)
    strengths[:, 0, 0, 5:] = 20
    result = nlnet.denoise(noisy, noise=Camera(strengths), data_range=255)
    assert np.abs(result - noisy)[:, :64].max() < 0.5
    assert (result - clean)[:, 180:].std() < 4


def test_a_part_of_an_image_is_made_even_as_the_whole_is() -> None:
    picture = smooth_picture(3)
    whole = Evening.of(growing(2), 120.0, SIZE)
    part = Evening.of(growing(2), 120.0, SIZE, origin=(20, 30))
    assert whole is not None
    assert part is not None
    expected = whole.even(picture, 0)[:, 25:40, 30:70]
    np.testing.assert_array_equal(part.even(picture[:, 25:40, 30:70], 5), expected)


@pytest.mark.parametrize(
    "noise", [nlnet.Noise.white(10), nlnet.Noise.poisson(2.0), Camera.even(10.0)]
)
def test_more_strength_removes_more_of_luma_or_of_chroma(noise: nlnet.Noise) -> None:
    rng = np.random.default_rng(0)
    noisy = (100 + 20 * rng.standard_normal((64, 64, 3))).astype(np.float32)

    def left(strength: object) -> tuple[float, float]:
        result = nlnet.denoise(noisy, noise=noise, strength=strength, data_range=255)
        return float(result.mean(axis=2).std()), float((result[..., 0] - result[..., 2]).std())

    usual, more, more_chroma = left(1.0), left(2.0), left((1.0, 2.0))
    assert more[0] < usual[0]
    assert more[1] < usual[1]
    assert more_chroma[1] < usual[1]
    assert more_chroma[0] > (usual[0] + more[0]) / 2
