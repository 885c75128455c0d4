"""Removing correlated noise, beside a slow version with loops, written from its description."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import denoise_planes
from elsewhere import remove_with, small_network
from messages import refused
from refinements import refined_family

import nlnet
from nlnet.engine.planes import enlarge, halve
from nlnet.engine.removal import Part, Removal, scales_of
from nlnet.errors import InputError
from nlnet.model.model import Model
from nlnet.network.block import prepare
from nlnet.noise.camera import Camera
from nlnet.noise.stabilisation import engine_noise

pytestmark = pytest.mark.numerical

Remove = Callable[[np.ndarray, float], np.ndarray]


def camera_noise(sigma: float, *octaves: float) -> Camera:
    return Camera.even(sigma, (1.0, *octaves))


def sigmas_of(noise: Camera, shape: tuple[int, ...]) -> tuple[float, ...]:
    """Noise that is as strong everywhere: what is removed at each scale."""
    return tuple(noise.strengths[0, : scales_of(engine_noise(noise), shape), 0, 0].tolist())


def image_of(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 255, shape).astype(np.float32)


# The slow version


def slow_halve(plane: np.ndarray) -> np.ndarray:
    height, width = plane.shape
    half = np.zeros((height // 2, width // 2))
    for y in range(height // 2):
        for x in range(width // 2):
            square = [float(plane[2 * y + i, 2 * x + j]) for i in (0, 1) for j in (0, 1)]
            half[y, x] = sum(square) / 4
    return half


def slow_enlarge(half: np.ndarray, height: int, width: int) -> np.ndarray:
    """Bilinear; the centre of a half-size pixel lies between its four full-size ones."""

    def at(y: int, x: int) -> float:
        return float(half[min(max(y, 0), len(half) - 1), min(max(x, 0), len(half[0]) - 1)])

    full = np.zeros((height, width))
    for y in range(height):
        for x in range(width):
            # An even pixel lies a quarter before the centre of its square, an odd one after.
            near_y, near_x = y // 2, x // 2
            far_y, far_x = near_y + (1 if y % 2 else -1), near_x + (1 if x % 2 else -1)
            full[y, x] = (
                0.75 * 0.75 * at(near_y, near_x)
                + 0.25 * 0.75 * at(far_y, near_x)
                + 0.75 * 0.25 * at(near_y, far_x)
                + 0.25 * 0.25 * at(far_y, far_x)
            )
    return full


def slow_remove(planes: np.ndarray, sigmas: tuple[float, ...], remove: Remove) -> np.ndarray:
    if len(sigmas) > 1:
        half = np.stack([slow_halve(plane) for plane in planes])
        change = slow_remove(half, sigmas[1:], remove) - half
        planes = planes + np.stack([slow_enlarge(plane, *planes.shape[1:]) for plane in change])
    return remove(planes, sigmas[0])


def smooth(planes: np.ndarray, sigma: float) -> np.ndarray:
    """Stands for a network: means of neighbors, the more the stronger the noise."""
    padded = np.pad(planes, [(0, 0), (1, 1), (1, 1)], mode="edge")
    mean = (padded[:, :-2, 1:-1] + padded[:, 2:, 1:-1] + padded[:, 1:-1, :-2]) / 3
    return planes + (mean - planes) * min(sigma / 50, 1)


@pytest.mark.parametrize("shape", [(1, 64, 72), (1, 65, 71), (3, 67, 64), (1, 9, 6), (1, 33, 40)])
@pytest.mark.parametrize("octaves", [(), (1.4,), (2.0, 5.0)])
def test_it_is_the_slow_version(shape: tuple[int, ...], octaves: tuple[float, ...]) -> None:
    planes, noise = image_of(*shape), camera_noise(30.0, *octaves)
    restored, _ = remove_with(planes, noise, smooth)
    expected = slow_remove(planes.astype(np.float64), sigmas_of(noise, shape), smooth)
    np.testing.assert_allclose(restored, expected, atol=1e-3)


@pytest.mark.parametrize(("height", "width"), [(40, 52), (37, 41), (32, 70), (20, 31), (8, 9)])
@pytest.mark.parametrize("channels", [1, 3])
def test_denoise_is_the_slow_version_with_the_network(
    gray_model: Model, color_model: Model, height: int, width: int, channels: int
) -> None:
    model = gray_model if channels == 1 else color_model
    image = image_of(height, width, channels)
    noise = camera_noise(20.0, 1.6, 2.5)

    def network(planes: np.ndarray, sigma: float) -> np.ndarray:
        scale = model.sigma / sigma
        scaled = (planes * scale).astype(np.float32)
        return denoise_planes(scaled, model.config, model.stages, box=None) / scale

    planes = np.moveaxis(image, -1, 0).astype(np.float64)
    expected = np.clip(slow_remove(planes, sigmas_of(noise, planes.shape), network), 0, 255)
    result = nlnet.denoise(image, noise=noise, model=model, data_range=255, channel_axis=-1)
    # Rounding may choose another patch of nearly the same distance in a group.
    assert np.mean(np.abs(np.moveaxis(result, -1, 0) - expected) > 0.02) < 0.01


# Its parts


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (8, 8), (11, 4), (601, 6)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.uint16])
def test_halving(shape: tuple[int, int], dtype: type) -> None:
    planes = image_of(2, *shape).astype(dtype)
    half = halve(planes)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, [slow_halve(plane) for plane in planes], rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (8, 8), (11, 4)])
def test_enlarging(shape: tuple[int, int]) -> None:
    height, width = shape
    half = image_of(2, height // 2, width // 2)
    full = enlarge(half, 0, height, width)
    expected = [slow_enlarge(plane, height, width) for plane in half]
    # The last pixel of an odd side has no square of its own, and takes the last one's.
    np.testing.assert_allclose(full, expected, rtol=1e-5)
    for row in range(height):
        np.testing.assert_array_equal(enlarge(half, row, row + 1, width), full[:, row : row + 1])


def test_a_constant_stays_one_both_ways() -> None:
    half = halve(np.full((1, 7, 9), 41, np.uint8))
    np.testing.assert_array_equal(half, 41)
    np.testing.assert_array_equal(enlarge(half, 0, 7, 9), 41)


@pytest.mark.parametrize(
    ("sides", "wanted", "count"),
    [
        ((64, 64), 3, 3),
        ((64, 63), 3, 2),
        ((32, 999), 3, 2),
        ((31, 999), 3, 1),
        ((5, 5), 3, 1),
        ((999, 999), 1, 1),
        ((999, 999), 2, 2),
    ],
)
def test_as_many_scales_as_fit(sides: tuple[int, int], wanted: int, count: int) -> None:
    noise = camera_noise(10.0, *(1.0,) * (wanted - 1))
    assert scales_of(engine_noise(noise), (1, *sides)) == count


def test_the_scales_get_their_sigmas_from_coarse_to_fine() -> None:
    _, asked = remove_with(image_of(1, 65, 72), camera_noise(12.0, 1.5, 2.0), smooth)
    assert asked == [((1, 16, 18), 6.0), ((1, 32, 36), 9.0), ((1, 65, 72), 12.0)]


def test_smaller_sizes_are_left_to_the_stages() -> None:
    """A refinement works at the full size only."""
    model = refined_family().at(20.0)
    planes, noise = image_of(1, 40, 46), camera_noise(20.0, 1.6)

    def removed(scale: int, model: Model) -> np.ndarray:
        network = prepare(model.config, model.stages, model.refinement, model.sigma)
        removal = Removal(planes, engine_noise(noise), part=Part(scale, (40, 46), (0, 0)))
        result = np.empty_like(planes)
        removal.run([network], result)
        return result

    stages = model.without_refinement()
    assert np.abs(removed(0, model) - removed(0, stages)).max() > 0.1
    np.testing.assert_array_equal(removed(1, model), removed(1, stages))


# Around it


def test_progress_rises_from_0_to_1(gray_model: Model) -> None:
    shares: list[float] = []
    image = image_of(70, 66)
    nlnet.denoise(
        image,
        noise=camera_noise(20.0, 1.6, 2.5),
        model=gray_model,
        data_range=255,
        threads=1,
        progress=shares.append,
    )
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.1
    assert shares[-1] == pytest.approx(1)
    assert any(0.2 < share < 0.3 for share in shares)  # when the half size is done


def test_memory_of_the_smaller_images() -> None:
    """Rows come and go; what stays is what changed at half and at a quarter of the size."""

    def memory(height: int, *octaves: float) -> int:
        planes = np.zeros((1, height, 512), np.uint8)
        removal = Removal(planes, engine_noise(camera_noise(3.0, *octaves)))
        return removal.memory([small_network(1)] * (1 + len(octaves)), 1, 0)

    for octaves, halved in (((), 0), ((1.0,), 1 / 4), ((1.0, 1.0), 1 / 4 + 1 / 16)):
        rise = memory(8192, *octaves) - memory(4096, *octaves)
        assert rise == pytest.approx(4 * 4096 * 512 * halved, abs=1000)


def test_a_memory_limit(gray_model: Model) -> None:
    image, noise = image_of(96, 100), camera_noise(20.0, 1.6, 2.5)
    options: dict[str, Any] = {"noise": noise, "model": gray_model, "data_range": 255}
    free = nlnet.denoise(image, **options)
    bound = nlnet.denoise(image, max_memory=50_000_000, **options)
    np.testing.assert_allclose(bound, free, atol=1e-2)
    with refused(InputError, "max_memory is 1000 bytes", "100x96 pixels takes at least") as error:
        nlnet.denoise(image, max_memory=1000, **options)
    least = int(re.findall(r"at least (\d+)", str(error.value))[0])
    np.testing.assert_allclose(nlnet.denoise(image, max_memory=least, **options), free, atol=1e-2)
    with pytest.raises(InputError, match="max_memory"):
        nlnet.denoise(image, max_memory=least - 1, **options)


def test_threads_do_not_matter(color_model: Model) -> None:
    image, noise = image_of(66, 70, 3), camera_noise(20.0, 1.6, 2.5)
    one, two = (
        nlnet.denoise(image, noise=noise, model=color_model, data_range=255, threads=threads)
        for threads in (1, 2)
    )
    np.testing.assert_allclose(one, two, atol=1e-2)


def test_correlated_noise_is_removed() -> None:
    """White noise blurred by a kernel, of which a network for white noise leaves most."""
    clean = np.full((96, 96), 120.0)
    clean[:, 50:] = 60
    white = np.random.default_rng(0).standard_normal((98, 98))
    noise = sum(white[i : i + 96, j : j + 96] for i in range(3) for j in range(3)) / 3 * 15
    noisy = (clean + noise).astype(np.float32)
    plain = nlnet.denoise(noisy, 15, data_range=255)
    removed = nlnet.denoise(noisy, noise=camera_noise(15.0, 1.7, 2.3), data_range=255)
    before, white_only, after = ((x - clean).std() for x in (noisy, plain, removed))
    assert before == pytest.approx(15, rel=0.05)
    assert after < 0.75 * white_only
    assert after < 0.5 * before


# How much of it


@pytest.mark.parametrize("noise", [nlnet.Noise.white(20.0), camera_noise(20.0, 1.6)])
def test_luma_and_chroma_are_blended_in_the_opponent_space(
    color_model: Model, noise: nlnet.Noise
) -> None:
    image = image_of(33, 36, 3)
    options: dict[str, Any] = {"noise": noise, "model": color_model, "data_range": 255}
    full = nlnet.denoise(image, **options)
    blended = nlnet.denoise(image, strength=(0.3, 0.9), **options)
    opponent = np.array([[1 / 3, 1 / 3, 1 / 3], [1 / 2, 0, -1 / 2], [1 / 4, -1 / 2, 1 / 4]])
    before, after = (x.astype(np.float64) @ opponent.T for x in (image, full))
    expected = before + (after - before) * [0.3, 0.9, 0.9]
    np.testing.assert_allclose(blended @ opponent.T, expected, atol=1e-3)


@pytest.mark.parametrize("channels", [1, 3])
def test_one_strength_is_a_blend(gray_model: Model, color_model: Model, channels: int) -> None:
    image = image_of(24, 25, channels).squeeze()
    model = gray_model if channels == 1 else color_model
    full, half, none = (
        nlnet.denoise(image, 20, model=model, data_range=255, strength=strength)
        for strength in (1.0, 0.5, 0)
    )
    np.testing.assert_allclose(half, (image + full) / 2, atol=1e-3)
    np.testing.assert_array_equal(none, image)
    if channels == 3:
        same = nlnet.denoise(image, 20, model=model, data_range=255, strength=(0.5, 0.5))
        np.testing.assert_array_equal(same, half)


@pytest.mark.parametrize(
    ("strength", "message"),
    [
        ((0.5, 1), "the image is grayscale"),
        (np.array([0.5, 1]), "the image is grayscale"),
        (2.5, "strength is 2.5, but must be from 0 to 2"),
        (-0.1, "must be from 0 to 2"),
        (float("nan"), "must be from 0 to 2"),
        ((0.5, 1, 1), "a pair of them"),
        ((), "a pair of them"),
        ("01", "a pair of them"),
        ("half", "a pair of them"),
        (None, "a pair of them"),
        (True, "a pair of them"),
        ((0.5, None), "a pair of them"),
    ],
)
def test_bad_strengths(gray_model: Model, strength: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        nlnet.denoise(np.zeros((16, 16)), 0.1, model=gray_model, strength=strength)
