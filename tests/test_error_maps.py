"""Error maps: as large as the errors are, in the units of the image, for every kind of noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from messages import refused

import nlnet
from nlnet.cli import main
from nlnet.denoising import error_maps
from nlnet.errors import InputError
from nlnet.images import ImageFile, read_image
from nlnet.noise.record import NoNoise

pytestmark = pytest.mark.numerical

RAMP = np.broadcast_to(np.linspace(60.0, 180.0, 96, dtype=np.float32), (80, 96))


def noisy_ramp(noise: nlnet.Noise, shape: tuple[int, ...] = RAMP.shape) -> tuple[Any, Any]:
    truth = np.broadcast_to(RAMP.reshape(*RAMP.shape, *[1] * (len(shape) - 2)), shape)
    sigmas = noise.levels[0].sigma(truth)
    rng = np.random.default_rng(0)
    return truth, (truth + sigmas * rng.standard_normal(shape)).astype(np.float32)


@pytest.mark.parametrize("quality", ["fast", "best"])
@pytest.mark.parametrize("shape", [(80, 96), (80, 96, 3)])
@pytest.mark.parametrize("noise", [nlnet.Noise.white(20.0), nlnet.Noise.poisson(2.0, 3.0)])
def test_errors_of_a_ramp_are_within_their_map(
    noise: nlnet.Noise, shape: tuple[int, ...], quality: str
) -> None:
    truth, noisy = noisy_ramp(noise, shape)
    options: dict[str, Any] = {"noise": noise, "quality": quality, "data_range": 255}
    denoised, error = nlnet.denoise(noisy, **options, error=True)
    np.testing.assert_array_equal(denoised, nlnet.denoise(noisy, **options))
    assert error.shape == shape
    assert error.dtype == np.float32
    within = np.abs(denoised - truth) / error
    assert np.mean(within < 1) > 0.63
    assert np.mean(within < 3) > 0.99
    assert error.mean() < noise.average_sigma(120.0) / 3


@pytest.mark.parametrize("sigma", [10, 40])
def test_two_thirds_of_the_pixels_of_photos_are_within_their_error(
    shared: Path, sigma: float
) -> None:
    actual, predicted = [], []
    for number, path in enumerate(sorted((shared / "data" / "open" / "val").glob("*.jpg"))[:6]):
        clean = read_image(path).pixels[200:400, 200:400].mean(axis=2)
        rng = np.random.default_rng(number)
        noisy = (clean + sigma * rng.standard_normal(clean.shape)).astype(np.float32)
        denoised, error = nlnet.denoise(noisy, sigma, data_range=255, error=True)
        actual.append(np.abs(denoised - clean))
        predicted.append(error)
    inside = np.ravel(actual) < np.ravel(predicted)
    assert abs(inside.mean() - 0.683) < 0.06
    certain = np.argsort(np.ravel(predicted))
    for half in np.array_split(inside[certain], 2):
        assert abs(half.mean() - 0.683) < 0.1


def test_units_and_rounding() -> None:
    noisy = noisy_ramp(nlnet.Noise.white(20.0))[1]
    error = nlnet.denoise(noisy, 20, data_range=255, error=True)[1]
    scaled = nlnet.denoise(noisy / 255, 20 / 255, error=True)[1]
    np.testing.assert_allclose(255 * scaled, error, rtol=2e-3)
    integers = np.clip(noisy, 0, 255).astype(np.uint8)
    rounded = nlnet.denoise(integers, 20, error=True)[1]
    assert rounded.min() > np.sqrt(1 / 12)


def test_less_strength_keeps_noise_in_the_map() -> None:
    noisy = noisy_ramp(nlnet.Noise.white(20.0), (80, 96, 3))[1]
    means = [
        nlnet.denoise(noisy, 20, strength=strength, data_range=255, error=True)[1].mean()
        for strength in (0.0, (1.0, 0.0), (0.0, 1.0), 1.0)
    ]
    assert means[0] == pytest.approx(20, rel=1e-3)
    assert means == sorted(means, reverse=True)
    assert means[2] == pytest.approx(20 / np.sqrt(3), rel=0.2)


def test_a_map_of_sigma_and_camera_noise() -> None:
    noisy = noisy_ramp(nlnet.Noise.white(20.0))[1]
    sigma = np.where(np.arange(96) < 48, 5.0, 20.0) * np.ones((80, 1))
    varying = RAMP + (noisy - RAMP) * sigma.astype(np.float32) / 20
    error = nlnet.denoise(varying, sigma, data_range=255, error=True)[1]
    assert error[:, :32].mean() < 0.6 * error[:, 64:].mean()
    error = nlnet.denoise(noisy, 20, noise="camera", data_range=255, error=True)[1]
    assert 1 < error.mean() < 20


def test_what_is_left_out_has_no_error_and_what_has_no_noise_that_which_was_measured() -> None:
    noisy = noisy_ramp(nlnet.Noise.white(20.0))[1]
    noisy[3, 4] = np.nan
    error = nlnet.denoise(noisy, 20, data_range=255, error=True)[1]
    assert np.argwhere(np.isnan(error)).tolist() == [[3, 4]]
    with pytest.warns(UserWarning, match="as it is"):
        error = nlnet.denoise(np.zeros((64, 64)), noise=NoNoise(0.01), error=True)[1]
    np.testing.assert_allclose(error, 0.01)


def test_stacks_have_a_map_for_every_page() -> None:
    truth = np.stack([RAMP, RAMP[::-1]])[:, None]
    stack = truth + np.random.default_rng(3).normal(0, 20, truth.shape)
    stack[1, 0, 3, 4] = np.nan
    options: dict[str, Any] = {"data_range": 255, "error": True}
    denoised, error = nlnet.denoise_stack(stack, 20, **options)
    assert (error.shape, error.dtype) == (stack.shape, np.float32)
    for page, one, its_error in zip(stack[:, 0], denoised[:, 0], error[:, 0], strict=True):
        alone, alone_error = nlnet.denoise(page, 20, **options)
        np.testing.assert_array_equal(one, alone)
        np.testing.assert_array_equal(its_error, alone_error)
    np.testing.assert_array_equal(np.isnan(error), np.isnan(stack))
    rgba = np.random.default_rng(0).integers(90, 160, (2, 24, 24, 4), np.uint8)
    _, error = nlnet.denoise_stack(rgba, 20, error=True)
    assert np.isnan(error[..., 3]).all()
    assert np.isfinite(error[..., :3]).all()
    with refused(InputError, "error=True", "along"):
        nlnet.denoise_stack(stack[:, 0], 20, along=0, **options)


def test_bands_have_no_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = noisy_ramp(nlnet.Noise.white(20.0))[1]
    whole = nlnet.denoise(noisy, 20, data_range=255, error=True)[1]
    monkeypatch.setattr(error_maps, "_BAND", 16)
    np.testing.assert_allclose(nlnet.denoise(noisy, 20, data_range=255, error=True)[1], whole, 1e-4)


@pytest.mark.parametrize("side", [9, 17, 33])
def test_small_and_odd_sizes(side: int) -> None:
    noisy = np.random.default_rng(0).normal(100, 10, (side, side + 1)).astype(np.float32)
    error = nlnet.denoise(noisy, 10, data_range=255, error=True)[1]
    assert error.shape == noisy.shape
    assert (error > 0).all()


def test_the_command(tmp_path: Path) -> None:
    noisy = noisy_ramp(nlnet.Noise.white(20.0))[1]
    source, out, target = (tmp_path / name for name in ("noisy.tif", "out.tif", "error.tif"))
    nlnet.write_image(source, ImageFile(np.clip(noisy, 0, 255).astype(np.uint8)))
    start = ["denoise", str(source), "-o", str(out), "--sigma", "20"]
    assert main([*start, "--error", str(target)]) == 0
    written = read_image(target).pixels
    expected = nlnet.denoise(read_image(source).pixels, 20, error=True)[1]
    np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize(
    ("output", "error", "says"),
    [
        ("out.tif", "e.png", "TIFF or npy"),
        ("out.tif", "out.tif", "both"),
        ("folder/", "e.tif", "folder"),
    ],
)
def test_the_command_refuses(
    output: str, error: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "noisy.tif"
    nlnet.write_image(source, ImageFile(np.full((32, 32), 100, np.uint8)))
    out = str(tmp_path / output.rstrip("/")) + output[len(output.rstrip("/")) :]
    command = ["denoise", str(source), "-o", out, "--sigma", "20", "--error", str(tmp_path / error)]
    assert main(command) != 0
    assert says in capsys.readouterr().err
