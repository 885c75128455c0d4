from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages import refused

from nlnet.errors import InputError
from nlnet.evaluation.metrics import psnr, ssim

pytestmark = pytest.mark.numerical


def image_pair(seed: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    clean = rng.integers(0, 256, shape).astype(np.uint8)
    return clean, clean + rng.normal(0, 20, shape)


def test_psnr_of_a_known_error() -> None:
    assert psnr(np.zeros((4, 4)), np.ones((4, 4))) == pytest.approx(20 * math.log10(255))
    assert psnr(np.zeros((4, 4)), np.full((4, 4), 0.1), data_range=1.0) == pytest.approx(20)


def test_psnr_of_unsigned_integers_does_not_wrap_around() -> None:
    dark, bright = np.zeros((4, 4), np.uint8), np.full((4, 4), 255, np.uint8)
    assert psnr(dark, bright) == psnr(bright, dark) == 0.0


def test_psnr_of_equal_images_is_infinite() -> None:
    assert psnr(np.ones((4, 4)), np.ones((4, 4))) == math.inf


@pytest.mark.parametrize("metric", [psnr, ssim])
def test_shapes_must_agree(metric) -> None:
    with refused(InputError, "(12, 12) and (12, 13)"):
        metric(np.zeros((12, 12)), np.zeros((12, 13)))


@pytest.mark.parametrize("shape", [(10, 30), (30, 10), (12,)])
def test_ssim_needs_room_for_its_window(shape: tuple[int, ...]) -> None:
    with refused(InputError, "at least 11 x 11"):
        ssim(np.zeros(shape), np.zeros(shape))


@given(
    seed=st.integers(0, 2**32),
    height=st.integers(11, 40),
    width=st.integers(11, 40),
    channels=st.sampled_from([None, 1, 3]),
)
def test_ssim_equals_that_of_scikit_image(
    seed: int, height: int, width: int, channels: int | None
) -> None:
    peer = pytest.importorskip("skimage.metrics")
    shape = (height, width) if channels is None else (height, width, channels)
    clean, noisy = image_pair(seed, shape)
    expected = peer.structural_similarity(
        clean.astype(np.float64),
        noisy,
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        data_range=255,
        channel_axis=None if channels is None else -1,
    )
    assert ssim(clean, noisy) == pytest.approx(expected, abs=1e-9)


def test_ssim_scales_with_the_data_range() -> None:
    clean, noisy = image_pair(0, (20, 20))
    assert ssim(clean / 255, noisy / 255, data_range=1.0) == pytest.approx(ssim(clean, noisy))
