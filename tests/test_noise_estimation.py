"""What is found in images whose noise is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from noise_cases import clean, correlated_noise, estimate, photon_noise

import nlnet
from nlnet.errors import InputError
from nlnet.noise import add_noise
from nlnet.noise.camera import Camera
from nlnet.noise.sample import Sample

pytestmark = pytest.mark.numerical

# White noise


@pytest.mark.parametrize("name", ["scene", "cat"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sigma", [5, 15, 25, 50])
def test_white_noise_stays_white(name: str, channels: int, sigma: float) -> None:
    noisy = add_noise(clean(name, channels), sigma)
    found = estimate(noisy)
    assert found.kind == "white"
    assert found.sigma == pytest.approx(nlnet.estimate_sigma(noisy), rel=1e-3)
    assert found.sigma == pytest.approx(sigma, rel=0.03)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sigma", [10, 40])
def test_white_noise_that_was_clipped_stays_white(channels: int, sigma: float) -> None:
    noisy = np.rint(np.clip(add_noise(clean("cat", channels), sigma), 0, 255)).astype(np.uint8)
    found = estimate(noisy, data_range=None)
    assert found.kind == "white"
    assert found.sigma == pytest.approx(sigma, rel=0.05)


@pytest.mark.parametrize(
    ("dtype", "unit"), [(np.uint16, 64.0), (np.int16, 64.0), (np.float64, 1 / 255)]
)
def test_the_answer_is_in_the_units_of_the_image(dtype: type, unit: float) -> None:
    noisy = add_noise(clean("scene"), 12) * unit
    given = (np.rint(noisy) if unit > 1 else noisy).astype(dtype)
    found = nlnet.estimate_noise(given)
    assert found.kind == "white"
    assert found.sigma == pytest.approx(12 * unit, rel=0.03)


# Photon noise


@pytest.mark.parametrize("name", ["scene", "cat"])
@pytest.mark.parametrize(
    ("gain", "read"), [(0.5, 0), (0.5, 2), (2, 2), (2, 8), (8, 0), (8, 8), (30, 8)]
)
def test_gain_and_read_noise(name: str, gain: float, read: float) -> None:
    """The gain to 10 percent. In the scene, noise at every brightness to 10 percent and the foot of
    the line to 10 values; in the photo, whose dark parts are fur, to 20 percent and 15 values.
    """
    found = estimate(photon_noise(clean(name), gain, read))
    assert found.kind == "poisson"
    level, truth = found.levels[0], nlnet.Noise.poisson(gain, read).levels[0]
    assert level.gain == pytest.approx(gain, rel=0.1)
    assert level.black < 4
    values = np.linspace(25, 235, 8)
    bound = 0.1 if name == "scene" else 0.2
    np.testing.assert_allclose(level.sigma(values), truth.sigma(values), rtol=bound)
    foot = 10 if name == "scene" else 15
    assert level.offset == pytest.approx(read**2, abs=foot * gain)


@pytest.mark.parametrize(("gain", "read", "black"), [(2, 2, 40), (8, 8, 40), (0.5, 0, 1000)])
def test_black_that_is_not_zero(gain: float, read: float, black: float) -> None:
    found = estimate(photon_noise(clean("scene"), gain, read, black), data_range=255 + black)
    assert found.kind == "poisson"
    # Read noise is a lower black, as far as one line can tell.
    assert found.levels[0].black == pytest.approx(black - read**2 / gain, abs=10)
    assert found.levels[0].gain == pytest.approx(gain, rel=0.1)


@pytest.mark.parametrize(("factor", "shift"), [(3.0, 0.0), (1.0, -500.0), (0.01, 7.0)])
def test_a_scaled_and_shifted_image_has_scaled_and_shifted_noise(
    factor: float, shift: float
) -> None:
    noisy = photon_noise(clean("scene"), 2, 3)
    plain = estimate(noisy).levels[0]
    moved = estimate(factor * noisy + shift, data_range=255 * factor).levels[0]
    assert moved.gain == pytest.approx(factor * plain.gain, rel=1e-3)
    assert moved.offset + moved.gain * shift == pytest.approx(factor**2 * plain.offset, rel=0.02)


def test_each_channel_has_its_own_gain() -> None:
    planes = clean("scene", 3)
    noisy = np.dstack([photon_noise(planes[..., i], gain, 0) for i, gain in enumerate((2, 6, 4))])
    found = estimate(noisy, kind="poisson")
    for level, gain in zip(found.levels, (2, 6, 4), strict=True):
        assert level.gain == pytest.approx(gain, rel=0.12)
    swapped = estimate(np.moveaxis(noisy, -1, 0), channel_axis=0, kind="poisson")
    assert swapped == found


def other_noise(image: np.ndarray) -> np.ndarray:
    """Noise that is strongest in the middle, as a tone curve makes it: 4 to 16."""
    sigma = 4 + 12 * np.exp(-(((image - 120) / 45) ** 2))
    return np.asarray(image + sigma * np.random.default_rng(0).standard_normal(image.shape))


def ramp() -> np.ndarray:
    return np.tile(np.linspace(10, 240, 400), (320, 1))


def test_noise_that_follows_no_line() -> None:
    """Where no line fits, maps follow the brightness."""
    found = estimate(other_noise(ramp()))
    assert isinstance(found, Camera)
    columns = found.strengths[0, 0].mean(axis=0)
    assert columns.max() > 1.8 * columns[[0, -1]].max()


def test_photons_in_integers() -> None:
    noisy = np.clip(photon_noise(clean("scene"), 4, 3), 0, 65535)
    found = estimate(np.rint(noisy).astype(np.uint16))
    assert found.kind == "poisson"
    assert found.levels[0].gain == pytest.approx(4, rel=0.1)


def test_insisting() -> None:
    noisy = photon_noise(clean("scene"), 2, 2)
    assert estimate(noisy, kind="white").sigma == nlnet.estimate_sigma(noisy)
    assert estimate(noisy, kind="camera").kind == "camera"
    white = add_noise(clean("scene") * 0.3, 10)
    assert estimate(white).kind == "white"
    assert estimate(white, kind="camera").sigma == pytest.approx(10, rel=0.3)
    weak = photon_noise(clean("scene"), 0.5, 8)  # hardly to be told from white noise
    assert estimate(weak, kind="poisson").levels[0].gain == pytest.approx(0.5, rel=0.3)


# Images that are not what an estimate wants


@pytest.mark.parametrize("name", ["scene", "cat"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_clean_image(name: str, channels: int) -> None:
    assert estimate(np.rint(clean(name, channels)).astype(np.uint8)).kind == "none"


ODD: dict[str, np.ndarray] = {
    "constant": np.full((64, 64), 7.0),
    "black": np.zeros((64, 64, 3), np.uint8),
    "two levels": np.random.default_rng(0).integers(0, 2, (64, 64)).astype(np.uint8) * 255,
    "stripes": np.tile(np.array([0, 255], np.uint8), (64, 32)),
    "8x8": np.random.default_rng(0).random((8, 8)),
    "8x8 color": np.random.default_rng(0).random((8, 8, 3)),
    "8x600": np.random.default_rng(0).random((8, 600)),
    "far from 0": 1e9 + np.random.default_rng(0).random((64, 64)),
    "near 0": 1e-300 * np.random.default_rng(0).random((32, 32)),
    "one bright pixel": np.pad(np.ones((1, 1)), 30),
    "large": np.full((16, 16), 1e38),
}


@pytest.mark.parametrize("kind", [None, "white", "poisson", "camera"])
@pytest.mark.parametrize("name", ODD)
def test_odd_images_have_a_record(name: str, kind: str | None) -> None:
    found = nlnet.estimate_noise(ODD[name], kind=kind)
    assert str(found)
    assert nlnet.Noise.from_json(found.to_json()) == found
    if name in ("constant", "black", "large"):
        assert found.kind == "none"


@pytest.mark.parametrize("kind", [None, "poisson", "camera"])
def test_half_of_the_image_is_saturated(kind: str | None) -> None:
    image = clean("scene").copy()
    image[:, 200:] = 300
    noisy = np.rint(np.clip(add_noise(image, 12), 0, 255)).astype(np.uint8)
    found = nlnet.estimate_noise(noisy, kind=kind)
    if kind is None:
        assert found.kind == "white"
    if isinstance(found, Camera):
        left = found.strengths[0, 0, :, : found.strengths.shape[3] // 3]
        assert left.mean() == pytest.approx(12, rel=0.2)
    elif found.sigma is not None:
        assert found.sigma == pytest.approx(12, rel=0.1)


@pytest.mark.parametrize("kind", [None, "white", "poisson", "camera"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 20), (1, 500), (7, 7), (7, 64, 3)])
def test_images_that_are_too_small(shape: tuple[int, ...], kind: str | None) -> None:
    with pytest.raises(InputError, match="takes at least 8x8"):
        nlnet.estimate_noise(np.zeros(shape), kind=kind)


@pytest.mark.parametrize(
    ("image", "options", "message"),
    [
        (np.full((16, 16), np.nan), {}, "256 of the image's 256 pixels are masked or NaN"),
        (np.full((16, 16), np.inf), {}, "infinite"),
        (np.zeros((16, 16), bool), {}, "dtype is bool"),
        (np.zeros((16, 16), np.int64), {}, "dtype is int64"),
        (np.zeros((16, 16, 4)), {}, "must be 3"),
        (np.zeros((16, 16)), {"kind": "pink"}, "noise is 'pink'"),
        (np.zeros((16, 16)), {"data_range": -1}, "data_range is -1"),
        (np.zeros((16, 16, 3)), {"channel_axis": 7}, "channel_axis is 7"),
    ],
)
def test_bad_input(image: np.ndarray, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        nlnet.estimate_noise(image, **options)


@pytest.mark.parametrize("sort", ["white", "poisson", "camera"])
def test_masked_pixels_are_left_out(sort: str) -> None:
    image = clean("scene")
    noisy = {
        "white": lambda: add_noise(image, 12),
        "poisson": lambda: photon_noise(image, 4, 2),
        "camera": lambda: image + correlated_noise(image.shape, [1, 2, 1], 12),
    }[sort]()
    expected = estimate(noisy)
    hidden = np.zeros(image.shape, bool)
    hidden[100:200, 100:220] = True
    spoilt = np.where(hidden, np.nan, noisy)
    found = estimate(spoilt)
    assert found == estimate(np.ma.MaskedArray(np.where(hidden, -1e9, noisy), mask=hidden))
    assert found.kind == expected.kind == sort
    assert found.sigma_at(100) == pytest.approx(expected.sigma_at(100), rel=0.1)


# Large images


@pytest.mark.parametrize(
    "shape", [(1, 3000, 4000), (3, 4000, 2000), (1, 300, 90_000), (1, 90_000, 300)]
)
def test_a_bounded_sample_of_large_images(shape: tuple[int, int, int]) -> None:
    """An image of no memory: each tile is a view, and together they are no more than the bound."""
    image = np.broadcast_to(np.float32(0), shape)
    tiles = Sample.of(image).tiles
    pixels = sum(tile.shape[1] * tile.shape[2] for tile in tiles)
    assert 300_000 < pixels <= 620_000
    assert all(np.shares_memory(tile, image) for tile in tiles)


@pytest.mark.parametrize("sort", ["poisson", "camera"])
def test_the_sample_says_the_same_as_the_whole(sort: str) -> None:
    image = clean("scene")
    small = (
        photon_noise(image, 4, 2)
        if sort == "poisson"
        else image + correlated_noise(image.shape, [1, 2, 1], 12)
    )
    expected, found = estimate(small), estimate(np.tile(small, (5, 5)).astype(np.float32))
    assert found.kind == expected.kind == sort
    assert found.sigma_at(100) == pytest.approx(expected.sigma_at(100), rel=0.1)
    np.testing.assert_allclose(found.octaves, expected.octaves, rtol=0.1)
