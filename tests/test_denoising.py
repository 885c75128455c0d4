from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nlnet
import nlnet.model.loading
from nlnet.denoising.network import Network
from nlnet.errors import Cancelled, FileError, InputError, ModelError
from nlnet.inputs import DATA_RANGES
from nlnet.model.model import Model

pytestmark = pytest.mark.numerical

SIGMA = 20.0


def denoise_255(image: Any, model: Model, **options: Any) -> np.ndarray:
    return nlnet.denoise(image, **{"sigma": SIGMA, "model": model, "data_range": 255, **options})


def as_color(gray: np.ndarray) -> np.ndarray:
    return np.stack([gray, gray[::-1], gray[:, ::-1]], axis=-1)


# What comes back


def test_it_denoises(noisy_gray: np.ndarray, gray_model: Model) -> None:
    result = denoise_255(noisy_gray, gray_model)
    assert result[:, :10].std() < 0.8 * noisy_gray[:, :10].std()
    assert result[:, :10].mean() == pytest.approx(noisy_gray[:, :10].mean(), abs=3)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 3])
def test_shape_and_dtype_come_back_and_the_scale_does_not_matter(
    noisy_gray: np.ndarray, gray_model: Model, color_model: Model, dtype: type, channels: int
) -> None:
    image = noisy_gray if channels == 1 else as_color(noisy_gray)
    model = gray_model if channels == 1 else color_model
    unit = DATA_RANGES[np.dtype(dtype)] / 255
    scaled = np.clip(image, 0, 255) * unit
    given = (np.rint(scaled) if np.dtype(dtype).kind == "u" else scaled).astype(dtype)
    result = nlnet.denoise(given, SIGMA * unit, model=model)
    assert result.dtype == dtype
    assert result.shape == image.shape
    expected = nlnet.denoise(np.clip(image, 0, 255), SIGMA, model=model, data_range=255)
    np.testing.assert_allclose(result / unit, expected, atol=2 if dtype == np.uint8 else 0.1)


def test_integers_are_rounded_not_cut(noisy_gray: np.ndarray, gray_model: Model) -> None:
    image = np.rint(np.clip(noisy_gray, 0, 255)).astype(np.uint8)
    exact = denoise_255(image.astype(np.float32), gray_model)
    np.testing.assert_array_equal(denoise_255(image, gray_model), np.rint(exact))


def test_twelve_bits_in_uint16(noisy_gray: np.ndarray, gray_model: Model) -> None:
    image = np.rint(np.clip(noisy_gray, 0, 255) * 4095 / 255).astype(np.uint16)
    image[:3, :3] = 4095
    result = nlnet.denoise(image, SIGMA * 4095 / 255, model=gray_model, data_range=4095)
    expected = denoise_255(image * np.float32(255 / 4095), gray_model)
    np.testing.assert_allclose(result * (255 / 4095), expected, atol=0.1)
    assert result.max() <= 4095


def test_channel_axis(noisy_gray: np.ndarray, color_model: Model, gray_model: Model) -> None:
    last = as_color(noisy_gray)
    expected = denoise_255(last, color_model)
    for axis in (0, 1, 2, -1, -2, -3):
        moved = np.moveaxis(last, -1, axis)
        result = denoise_255(moved, color_model, channel_axis=axis)
        assert result.shape == moved.shape
        np.testing.assert_array_equal(np.moveaxis(result, axis, -1), expected)
    single = denoise_255(noisy_gray[..., np.newaxis], gray_model, channel_axis=-1)
    np.testing.assert_array_equal(single[..., 0], denoise_255(noisy_gray, gray_model))


def test_memory_layout_does_not_matter(noisy_gray: np.ndarray, gray_model: Model) -> None:
    expected = denoise_255(noisy_gray, gray_model)
    strided = np.repeat(np.repeat(noisy_gray, 2, axis=0), 3, axis=1)[::2, ::3]
    swapped = noisy_gray.astype(noisy_gray.dtype.newbyteorder())
    fixed = noisy_gray.copy()
    fixed.flags.writeable = False
    for image in (strided, np.asfortranarray(noisy_gray), swapped, fixed):
        result = denoise_255(image, gray_model)
        assert result.dtype == image.dtype
        np.testing.assert_array_equal(result, expected)


def test_the_input_is_left_alone(noisy_gray: np.ndarray, gray_model: Model) -> None:
    before = noisy_gray.copy()
    result = denoise_255(noisy_gray, gray_model)
    np.testing.assert_array_equal(noisy_gray, before)
    assert not np.shares_memory(result, noisy_gray)


def test_clip_keeps_the_box_and_no_clip_drops_it(gray_model: Model) -> None:
    image = np.full((20, 20), 300.0, np.float32)
    assert denoise_255(image, gray_model).max() <= 255
    np.testing.assert_allclose(denoise_255(image, gray_model, clip=False), 300, atol=1e-3)


def test_a_constant_passes_through(noisy_gray: np.ndarray, gray_model: Model) -> None:
    plain = denoise_255(noisy_gray, gray_model, clip=False)
    shifted = denoise_255(noisy_gray + 500, gray_model, clip=False)
    np.testing.assert_allclose(shifted, plain + 500, atol=0.01)


def test_integers_do_not_wrap_around_without_clip(
    gray_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overshoot(scale: int, planes: np.ndarray, box: object) -> np.ndarray:
        return 2 * planes - 128

    monkeypatch.setattr(Network, "_elsewhere", lambda *_: overshoot)
    image = np.zeros((8, 8), np.uint8)
    image[0] = 255
    result = nlnet.denoise(image, 25, model=gray_model, clip=False)
    np.testing.assert_array_equal(result, image)


def test_threads_do_not_matter(noisy_gray: np.ndarray, gray_model: Model) -> None:
    one = denoise_255(noisy_gray, gray_model, threads=1)
    np.testing.assert_allclose(denoise_255(noisy_gray, gray_model, threads=2), one, atol=1e-3)


@given(height=st.integers(5, 12), width=st.integers(5, 12), seed=st.integers(0, 99))
def test_any_size_from_the_patch_on(gray_model: Model, height: int, width: int, seed: int) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (height, width)).astype(np.uint8)
    assert nlnet.denoise(image, 25, model=gray_model).shape == (height, width)


def test_memory_limit(noisy_gray: np.ndarray, gray_model: Model) -> None:
    free = denoise_255(noisy_gray, gray_model)
    bound = denoise_255(noisy_gray, gray_model, max_memory=50_000_000)
    np.testing.assert_allclose(bound, free, atol=1e-3)
    with pytest.raises(InputError, match="max_memory is 1000"):
        denoise_255(noisy_gray, gray_model, max_memory=1000)


# Progress


def test_progress_rises_to_one(noisy_gray: np.ndarray, gray_model: Model) -> None:
    shares: list[float] = []
    denoise_255(noisy_gray, gray_model, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] == pytest.approx(1)


def test_progress_may_stop_the_work(noisy_gray: np.ndarray, gray_model: Model) -> None:
    calls: list[float] = []

    def stop(share: float) -> bool:
        calls.append(share)
        return False

    with pytest.raises(Cancelled):
        denoise_255(noisy_gray, gray_model, progress=stop)
    assert len(calls) == 1


def test_progress_may_raise(noisy_gray: np.ndarray, gray_model: Model) -> None:
    def fail(share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        denoise_255(noisy_gray, gray_model, progress=fail)


# Models


@pytest.mark.parametrize(("channels", "family"), [(1, "gray"), (3, "color")])
def test_auto_takes_the_family_of_the_image(
    noisy_gray: np.ndarray,
    gray_model: Model,
    color_model: Model,
    monkeypatch: pytest.MonkeyPatch,
    channels: int,
    family: str,
) -> None:
    asked: list[tuple[object, float]] = []

    def select(name: object, sigma: float) -> Model:
        asked.append((name, sigma))
        return gray_model if channels == 1 else color_model

    monkeypatch.setattr(nlnet.model.loading, "select_model", select)
    image = noisy_gray if channels == 1 else as_color(noisy_gray)
    nlnet.denoise(image / 255, 0.1)
    assert asked == [(family, pytest.approx(25.5))]  # on the 8-bit scale


def test_a_model_file(noisy_gray: np.ndarray, gray_model: Model, gray_model_file: Path) -> None:
    expected = denoise_255(noisy_gray, gray_model)
    for path in (gray_model_file, str(gray_model_file)):
        result = nlnet.denoise(noisy_gray, SIGMA, model=path, data_range=255)
        np.testing.assert_allclose(result, expected, atol=1e-3)


def test_a_model_for_the_other_number_of_channels(
    noisy_gray: np.ndarray, gray_model: Model, color_model: Model
) -> None:
    with pytest.raises(ModelError, match=r"'small-3' is made for color images, but .* grayscale"):
        denoise_255(noisy_gray, color_model)
    with pytest.raises(ModelError, match=r"'small-1' is made for grayscale images, but .* color"):
        denoise_255(as_color(noisy_gray), gray_model)


def test_unknown_models(noisy_gray: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="gray-9x9"):
        nlnet.denoise(noisy_gray / 255, 0.1, model="gray-9x9")
    with pytest.raises(ModelError, match="must be a name, a path or a Model"):
        nlnet.denoise(noisy_gray / 255, 0.1, model=3)  # type: ignore[arg-type]
    with pytest.raises(FileError):
        nlnet.denoise(noisy_gray / 255, 0.1, model=tmp_path / "missing.safetensors")


# Bad input


@pytest.mark.parametrize("sigma", [0, -1.0, 1.01, float("nan"), float("inf"), "25", True, 1j])
def test_bad_sigma(gray_model: Model, sigma: Any) -> None:
    with pytest.raises(InputError, match="sigma is"):
        nlnet.denoise(np.full((16, 16), 1.0), sigma, model=gray_model)


def test_sigma_may_be_as_large_as_the_range_and_a_numpy_scalar(gray_model: Model) -> None:
    assert nlnet.denoise(np.zeros((16, 16)), np.float32(1), model=gray_model).shape == (16, 16)


@pytest.mark.parametrize("data_range", [0, -255, float("nan"), float("inf"), "255", True])
def test_bad_data_range(gray_model: Model, data_range: Any) -> None:
    with pytest.raises(InputError, match="data_range is"):
        denoise_255(np.zeros((16, 16)), gray_model, data_range=data_range)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_bad_threads(gray_model: Model, threads: Any) -> None:
    with pytest.raises(InputError, match="threads is"):
        denoise_255(np.zeros((16, 16)), gray_model, threads=threads)


@pytest.mark.parametrize("dtype", [bool, np.int64, np.uint64, complex, object])
def test_bad_dtype(gray_model: Model, dtype: type) -> None:
    with pytest.raises(
        InputError, match=f"dtype is {np.dtype(dtype)}, but must be an integer of 8"
    ):
        denoise_255(np.zeros((16, 16), dtype), gray_model)


@pytest.mark.parametrize(
    "shape", [(), (64,), (16, 16, 4), (16, 16, 1), (3, 16, 16), (2, 16, 16, 3)]
)
def test_bad_shape(gray_model: Model, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="has shape"):
        denoise_255(np.zeros(shape), gray_model)


@pytest.mark.parametrize(
    ("shape", "axis"), [((16, 16), 0), ((16, 16, 3), 3), ((16, 16, 3), -4), ((16, 16, 3), 0)]
)
def test_bad_channel_axis(gray_model: Model, shape: tuple[int, ...], axis: int) -> None:
    with pytest.raises(InputError, match=r"[aA]xis"):
        denoise_255(np.zeros(shape), gray_model, channel_axis=axis)


@pytest.mark.parametrize("axis", [1.0, "last", True])
def test_channel_axis_must_be_an_integer(gray_model: Model, axis: Any) -> None:
    with pytest.raises(InputError, match="must be an integer"):
        denoise_255(np.zeros((16, 16, 3)), gray_model, channel_axis=axis)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e39])
def test_values_that_are_not_finite(gray_model: Model, value: float) -> None:
    image = np.zeros((16, 16))
    image[3, 4] = value
    with pytest.raises(InputError, match="cannot be used: 1 "):
        denoise_255(image, gray_model)


@pytest.mark.parametrize("shape", [(0, 0), (0, 16), (4, 16), (16, 4)])
def test_images_smaller_than_the_patch(gray_model: Model, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=f"is {shape[1]}x{shape[0]} pixels, but .* 5"):
        denoise_255(np.zeros(shape), gray_model)


# The package


def test_public_names_can_be_used() -> None:
    for name in nlnet.__all__:
        assert getattr(nlnet, name) is not None
    assert set(nlnet.__all__) <= set(dir(nlnet))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nlnet.nothing  # noqa: B018


def test_import_is_light_and_denoise_stays_a_function() -> None:
    code = (
        "import sys, nlnet; assert not {'numpy', 'torch'} & set(sys.modules);"
        "import nlnet.evaluation.protocol; assert callable(nlnet.denoise);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
