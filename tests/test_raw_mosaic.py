from __future__ import annotations

import itertools

import numpy as np
import pytest
from messages import refused

from nlnet.errors import Cancelled, InputError
from nlnet.evaluation.metrics import psnr
from nlnet.raw.demosaicing import PHASES, interpolate, pad, variances
from nlnet.raw.estimation import estimate_mosaic_noise
from nlnet.raw.mosaic import blend_mosaic, denoise_mosaic, is_bayer
from tests.raw_cases import BAYER, BLACK, GAIN, NEUTRAL, READ, WHITE, mosaic_of, scene, shoot

PATTERNS = [
    ((0, 1), (1, 2)),
    ((1, 0), (2, 1)),
    ((1, 2), (0, 1)),
    ((2, 1), (1, 0)),
]
BALANCE = tuple(1 / value for value in NEUTRAL)
PEAK = WHITE - BLACK


def quality(clean: np.ndarray, mosaic: np.ndarray) -> float:
    return psnr(clean / PEAK * 255, mosaic / PEAK * 255)


def interpolate_slowly(mosaic: np.ndarray, pattern: object, row: int, column: int) -> list[float]:
    """The published filters, pixel by pixel, as their figure shows them."""
    green = {(0, 0): 4, (0, 1): 2, (1, 0): 2, (0, 2): -1, (2, 0): -1}
    beside = {(0, 0): 5, (0, 1): 4, (0, 2): -1, (1, 1): -1, (2, 0): 0.5}
    across = {(0, 0): 6, (1, 1): 2, (0, 2): -1.5, (2, 0): -1.5}
    colors = np.array(pattern)
    here = colors[row % 2, column % 2]

    def apply(taps: dict[tuple[int, int], float], turned: bool) -> float:
        total = 0.0
        for down, right in itertools.product(range(-2, 3), repeat=2):
            place = (abs(right), abs(down)) if turned else (abs(down), abs(right))
            total += taps.get(place, 0) / 8 * mosaic[row + down, column + right]
        return total

    values = []
    for color in range(3):
        if color == here:
            values.append(mosaic[row, column])
        elif color == 1:
            values.append(apply(green, False))
        elif here == 1:
            values.append(apply(beside, colors[row % 2, (column + 1) % 2] != color))
        else:
            values.append(apply(across, False))
    return values


@pytest.mark.parametrize("pattern", PATTERNS)
def test_interpolation_is_that_of_the_paper(pattern: tuple) -> None:
    mosaic = np.random.default_rng(0).uniform(size=(11, 13))
    padded = pad(mosaic)
    for row, column in PHASES:
        planes = interpolate(padded, pattern, (row, column))
        assert planes.shape == (3, len(range(row, 11, 2)), len(range(column, 13, 2)))
        for y, x in itertools.product(range(2, 9), range(2, 11)):
            if (y % 2, x % 2) == (row, column):
                wanted = interpolate_slowly(mosaic, pattern, y, x)
                np.testing.assert_allclose(planes[:, y // 2, x // 2], wanted)


def test_variances_are_those_of_interpolated_noise() -> None:
    spreads = np.array([1.5, 1.0, 0.7])
    noise = np.random.default_rng(0).standard_normal((600, 600))
    for row, column in PHASES:
        noise[row::2, column::2] *= spreads[BAYER[row][column]]
    for phase in PHASES:
        measured = interpolate(pad(noise), BAYER, phase).var(axis=(1, 2))
        np.testing.assert_allclose(variances(BAYER, phase, spreads**2), measured, rtol=0.03)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_bayer_pattern_is_denoised(pattern: tuple) -> None:
    clean = mosaic_of(scene(), pattern)
    noisy = shoot(clean).astype(np.float32)
    denoised = denoise_mosaic(noisy, pattern, GAIN, READ, white_balance=BALANCE)
    assert denoised.dtype == np.float32
    assert quality(clean, denoised) > quality(clean, noisy) + 10


def test_the_means_are_kept_in_the_dark() -> None:
    # A few photons and strong read noise: a plain square makes dark areas darker.
    clean = np.full((128, 128), 3.0)
    rng = np.random.default_rng(0)
    noisy = rng.poisson(clean) + rng.normal(0, 1.5, clean.shape)
    denoised = denoise_mosaic(noisy, BAYER, 1.0, 1.5)
    assert abs(denoised.mean() - 3) < 0.1
    assert denoised.std() < noisy.std() / 5


def test_odd_sizes_and_no_colors() -> None:
    clean = mosaic_of(scene(61, 75))
    noisy = shoot(clean)
    denoised = denoise_mosaic(noisy, BAYER, GAIN, READ, white_balance=BALANCE)
    assert denoised.shape == (61, 75)
    assert quality(clean, denoised) > quality(clean, noisy) + 7
    gray = np.asarray(scene().mean(axis=2) * PEAK)
    shot = shoot(gray)
    assert quality(gray, denoise_mosaic(shot, None, GAIN, READ)) > quality(gray, shot) + 10


def test_white_balance_changes_no_color() -> None:
    clean = mosaic_of(scene())
    noisy = shoot(clean)
    plain = denoise_mosaic(noisy, BAYER, GAIN, READ)
    balanced = denoise_mosaic(noisy, BAYER, GAIN, READ, white_balance=BALANCE)
    for row, column in PHASES:
        means = [image[row::2, column::2].mean() for image in (clean, plain, balanced)]
        np.testing.assert_allclose(means, means[0], rtol=0.01)


def test_the_whole_work_is_reported_and_can_be_stopped() -> None:
    noisy = shoot(mosaic_of(scene(40, 40)))
    shares: list[float] = []
    denoise_mosaic(noisy, BAYER, GAIN, READ, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] < 0.2
    assert shares[-1] == pytest.approx(1)
    with pytest.raises(Cancelled):
        denoise_mosaic(noisy, BAYER, GAIN, READ, progress=lambda share: False)


@pytest.mark.parametrize(
    ("mosaic", "gain", "read", "balance"),
    [
        (np.zeros((8, 40)), 1.0, 1.0, (1, 1, 1)),
        (np.zeros((40, 40), np.uint16), 1.0, 1.0, (1, 1, 1)),
        (np.zeros((40, 40, 3)), 1.0, 1.0, (1, 1, 1)),
        (np.zeros((40, 40)), 0.0, 1.0, (1, 1, 1)),
        (np.zeros((40, 40)), 1.0, -1.0, (1, 1, 1)),
        (np.zeros((40, 40)), float("nan"), 1.0, (1, 1, 1)),
        (np.zeros((40, 40)), 1.0, 1.0, (0, 1, 1)),
    ],
)
def test_bad_arguments(mosaic: np.ndarray, gain: float, read: float, balance: tuple) -> None:
    with refused(InputError, "must be"):
        denoise_mosaic(mosaic, BAYER, gain, read, white_balance=balance)


def test_strength_of_brightness_and_color() -> None:
    rng = np.random.default_rng(0)
    noisy, denoised = rng.uniform(size=(2, 40, 40))
    for strength in (0.0, 0.3, 1.0):
        wanted = noisy + strength * (denoised - noisy)
        given = strength, strength
        np.testing.assert_allclose(blend_mosaic(noisy, denoised, BAYER, given), wanted)
    # Noise of brightness alone, white-balanced, is gone with the first number alone.
    grain = np.ones((40, 40))
    for row, column in PHASES:
        grain[row::2, column::2] *= NEUTRAL[BAYER[row][column]]
    luma = blend_mosaic(denoised + grain, denoised, BAYER, (1.0, 0.0), BALANCE)
    chroma = blend_mosaic(denoised + grain, denoised, BAYER, (0.0, 1.0), BALANCE)
    np.testing.assert_allclose(luma, denoised, atol=1e-12)
    np.testing.assert_allclose(chroma, denoised + grain, atol=1e-12)
    with refused(InputError, "grayscale"):
        denoise_mosaic(noisy, None, 1.0, 1.0, strength=(0.5, 1.0))


def test_more_strength_takes_more() -> None:
    noisy = shoot(mosaic_of(scene(64, 64)))
    results = [
        denoise_mosaic(noisy, BAYER, GAIN, READ, white_balance=BALANCE, strength=strength)
        for strength in (0.5, 1.0, 2.0, (2.0, 1.0), (1.0, 2.0))
    ]
    removed = [np.abs(result - noisy).mean() for result in results]
    assert removed[0] < removed[1] < min(removed[2:])


@pytest.mark.parametrize("gain", [0.5, 4.0, 30.0])
@pytest.mark.parametrize("read", [0.0, 5.0, 40.0])
def test_gain_and_read_noise_are_found(gain: float, read: float) -> None:
    clean = mosaic_of(scene(480, 640))
    rng = np.random.default_rng(1)
    noisy = gain * rng.poisson(clean / gain) + rng.normal(0, read, clean.shape)
    found_gain, found_read = estimate_mosaic_noise(noisy.astype(np.float32), BAYER, PEAK)
    assert found_gain == pytest.approx(gain, rel=0.08)
    # What matters is the strength at each brightness.
    levels = np.quantile(clean, [0.05, 0.5, 0.95])
    true, found = gain * levels + read**2, found_gain * levels + found_read**2
    np.testing.assert_allclose(np.sqrt(found), np.sqrt(true), rtol=0.05)


@pytest.mark.parametrize("pattern", [*PATTERNS, None])
def test_noise_is_found_for_every_pattern(pattern: tuple | None) -> None:
    colors = scene(241, 323)
    clean = colors.mean(axis=2) * PEAK if pattern is None else mosaic_of(colors, pattern)
    gain, read = estimate_mosaic_noise(shoot(clean), pattern, PEAK)
    level = np.median(clean)
    assert np.sqrt(gain * level + read**2) == pytest.approx(
        np.sqrt(GAIN * level + READ**2), rel=0.05
    )


@pytest.mark.parametrize("said", [1.0, 1.3])
def test_saturated_and_clipped_pixels_do_not_mislead(said: float) -> None:
    clean = mosaic_of(scene(400, 400)) * 2.2
    noisy = np.clip(shoot(clean), 0, PEAK)  # half of it is white
    noisy[:100] = np.maximum(shoot(np.full((100, 400), 2.0)), 0)  # a quarter is clipped black
    noisy[200, 200] = 4 * PEAK  # a hot pixel
    gain, _ = estimate_mosaic_noise(noisy, BAYER, said * PEAK)
    assert gain == pytest.approx(GAIN, rel=0.15)


@pytest.mark.parametrize("value", [0.0, 1000.0])
def test_a_constant_mosaic_has_no_noise(value: float) -> None:
    assert estimate_mosaic_noise(np.full((64, 64), value), BAYER, PEAK) == (0.0, 0.0)


def test_a_mosaic_too_small_to_look_at() -> None:
    with refused(InputError, "at least"):
        estimate_mosaic_noise(np.zeros((9, 40)), BAYER, PEAK)


def test_which_patterns_are_bayer() -> None:
    assert all(map(is_bayer, PATTERNS))
    assert not is_bayer(((1, 1), (0, 2)))
    assert not is_bayer(((0, 1), (1, 0)))
