"""Making noise even by coarse maps, and removing it from coarse to fine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from elsewhere import identity, remove_with

import nlnet
from nlnet.engine.planes import widen
from nlnet.engine.removal import Part
from nlnet.noise.camera import Camera

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


def growing_noise(factor: float = 1.0) -> Camera:
    strengths = np.zeros((2, 3, 4, 6), np.float32)
    strengths[:, 0] = growing(2)
    return Camera(strengths * np.float32(factor))


def even(planes: np.ndarray, noise: Camera, center: float, **options: Any) -> np.ndarray:
    """What networks see of planes, in the units of the image."""
    seen = []

    def look(scaled: np.ndarray, sigma: float) -> np.ndarray:
        seen.append(scaled)
        return scaled

    remove_with(planes, noise, look, span=255.0, black=center - 127.5, **options)
    return np.asarray(seen[0])


@pytest.mark.parametrize("channels", [1, 3])
def test_what_was_made_even_comes_back(channels: int) -> None:
    picture = smooth_picture(channels)
    back, _ = remove_with(picture, growing_noise(), identity, black=-7.5)
    np.testing.assert_allclose(back, picture, atol=2e-3)


def test_noise_is_equally_strong_everywhere_then() -> None:
    ramp = widen(growing(1)[0], SIZE)
    noise = ramp * np.random.default_rng(0).standard_normal((1, *SIZE)).astype(np.float32)
    flat = np.full((1, *SIZE), 100, np.float32)
    left_over = even(flat + noise, growing_noise(), 100.0) - even(flat, growing_noise(), 100.0)
    left, right = left_over[:, :, :32].std(), left_over[:, :, -32:].std()
    assert left == pytest.approx(right, rel=0.15)
    reference = np.sqrt(np.mean(growing(1) ** 2))
    assert left_over.std() == pytest.approx(reference, rel=0.15)


def test_chroma_has_a_scale_of_its_own() -> None:
    strengths = np.zeros((2, 3, 1, 1), np.float32)
    strengths[:, 0, 0, 0] = 4.0, 16.0
    picture = smooth_picture(3)
    seen = even(picture, Camera(strengths), 0.0)
    scales = [
        float(np.mean(plane(seen)) / np.mean(plane(picture)))
        for plane in (lambda rgb: rgb.sum(axis=0), lambda rgb: rgb[0] - rgb[2])
    ]
    assert scales[0] == pytest.approx(4 * scales[1], rel=1e-3)


def test_a_scale_without_noise_is_left_as_it_is() -> None:
    """Nothing at the full size of the luma is left, but what half the size changed is added."""
    strengths = np.zeros((2, 3, 1, 1), np.float32)
    strengths[1, 0], strengths[0, 1] = 1.0, 1.0  # chroma, which gray does not have
    strengths[0, 0] = 0
    picture = smooth_picture(1)
    with pytest.raises(nlnet.InputError):
        Camera(strengths)
    strengths[0, 0] = 1e-30
    noise = Camera(strengths)
    noise.strengths[0, 0] = 0
    back, asked = remove_with(picture, noise, lambda planes, _: planes + 1)
    assert asked == [((1, 32, 48), 1.0)]
    np.testing.assert_allclose(back, picture + 1, atol=1e-4)


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
    whole = even(picture, growing_noise(), 120.0)
    part = np.ascontiguousarray(picture[:, 25:40, 30:70])
    place = Part(0, SIZE, (25, 30))
    seen = even(part, growing_noise(), 120.0, part=place)
    np.testing.assert_array_equal(seen, whole[:, 25:40, 30:70])


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
