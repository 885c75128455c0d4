"""Simulated noise: repeatable, of the strength that was asked for, and with a truth."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from nlnet.errors import InputError
from nlnet.training.simulation.cameras import InCamera
from nlnet.training.simulation.means import HELD_BACK, TRAINED
from nlnet.training.simulation.recipes import KINDS, draw_recipe
from nlnet.training.simulation.scenes import Photos, draw_scene
from nlnet.training.simulation.steps import Encode, Grain, Photons, Quantise, Scale, Sensor, White

pytestmark = [pytest.mark.numerical, pytest.mark.engineless]

GRAY = np.full((96, 96), 120, np.float32)
COLORS = np.stack([np.full((96, 96), value, np.float32) for value in (90, 120, 150)], axis=-1)


@pytest.fixture
def photos(tmp_path: Path) -> Photos:
    rng = np.random.default_rng(0)
    for number in range(2):
        small = rng.integers(0, 256, (12, 16, 3), np.uint8)
        big = cv2.resize(small, (320, 240), interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(tmp_path / f"{number}.png"), big)
    return Photos(tmp_path)


@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS])
@pytest.mark.parametrize("means", [TRAINED, HELD_BACK])
def test_a_recipe_gives_the_same_picture_for_the_same_seed(photos, kind, means) -> None:
    for seed in range(3):
        first, second = (
            draw_recipe(photos, 64, np.random.default_rng(seed), kinds=((kind, 1.0),), means=means)
            for _ in range(2)
        )
        np.testing.assert_array_equal(first.render(7), second.render(7))
        assert first.render(7).shape == first.truth().shape
        assert np.isfinite(first.render(7)).all()
        same = np.array_equal(first.render(7), first.render(8))
        assert same or kind != "clean"


def test_two_noisy_pictures_differ(photos) -> None:
    recipe = draw_recipe(photos, 64, np.random.default_rng(0), kinds=(("white", 1.0),))
    assert not np.array_equal(recipe.render(1), recipe.render(2))


def test_nothing_that_is_held_back_is_trained_on() -> None:
    for name in ("demosaicers", "denoisers"):
        trained, kept = ({each for each, _ in getattr(m, name)} for m in (TRAINED, HELD_BACK))
        assert not trained & kept
    assert "webp" not in dict(TRAINED.encoders)


def noise_of(step, image) -> np.ndarray:
    return step.apply(image, np.random.default_rng(3)) - step.apply(image, None)


@pytest.mark.parametrize("softness", [0.0, 0.6])
def test_white_noise_has_its_strength_soft_or_not(softness: float) -> None:
    noise = noise_of(White(12.0, softness), GRAY)
    assert noise.std() == pytest.approx(12, rel=0.02)
    neighbors = float(np.corrcoef(noise[:, 1:].ravel(), noise[:, :-1].ravel())[0, 1])
    assert (neighbors > 0.3) == (softness > 0)


def test_photon_noise_grows_with_the_light() -> None:
    dark, bright = (noise_of(Photons(100), np.full_like(GRAY, value)) for value in (60, 240))
    assert bright.var() / dark.var() == pytest.approx(4, rel=0.15)
    assert bright.var() == pytest.approx(240 * 255 / 100, rel=0.1)


def test_gray_grain_is_gray_and_colored_grain_is_not() -> None:
    for colored in (False, True):
        noise = noise_of(Grain(10, 0.8, colored), COLORS + 10)
        alike = np.corrcoef(noise[..., 0].ravel(), noise[..., 2].ravel())[0, 1]
        assert (alike > 0.9) == (not colored)


@pytest.mark.parametrize("demosaicer", ["none", "bilinear", "malvar", "edge", "vng"])
def test_a_sensor_without_noise_gives_flat_colors_back(demosaicer) -> None:
    sensor = Sensor(photons=500, read=2, demosaicer=demosaicer)
    tolerance = 2.5 if demosaicer == "vng" else 1.0  # 8 bits inside
    np.testing.assert_allclose(sensor.apply(COLORS, None), COLORS, atol=tolerance)
    assert noise_of(sensor, COLORS).std() > 3


@pytest.mark.parametrize(
    "method", ["bilateral", "median", "guided", "shrinkage", "smoothing", "nonlocal"]
)
def test_in_camera_denoisers_leave_less_noise_and_the_mean(method) -> None:
    noisy = COLORS + 8 * np.random.default_rng(0).standard_normal(COLORS.shape, np.float32)
    result = InCamera(method, sigma=8).apply(noisy, None)
    assert (result - COLORS).std() < 0.8 * 8
    np.testing.assert_allclose(result.mean(axis=(0, 1)), COLORS.mean(axis=(0, 1)), atol=1.5)


@pytest.mark.parametrize("form", ["jpeg", "webp"])
def test_files_are_near_the_picture_and_the_worse_the_quality_the_less(form) -> None:
    rng = np.random.default_rng(0)
    picture = cv2.GaussianBlur(rng.uniform(0, 255, (64, 64, 3)).astype(np.float32), (0, 0), 2)
    errors = [
        np.abs(Encode(form, q, False).apply(picture, None) - picture).mean() for q in (95, 50)
    ]
    assert errors[0] < errors[1] < 10


def test_scaling_and_rounding() -> None:
    assert Scale(48, 40).apply(COLORS, None).shape == (48, 40, 3)
    assert Quantise(0.5).apply(np.array([[300.0, 0.3]], np.float32), None).tolist() == [[255, 0.5]]


def test_drawings_are_pictures() -> None:
    for seed in range(24):
        drawing = draw_scene(48, 64, np.random.default_rng(seed))
        assert drawing.shape == (48, 64)
        assert drawing.dtype == np.float32
        assert np.isfinite(drawing).all()


def test_a_folder_without_photos_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="photos"):
        Photos(tmp_path)
