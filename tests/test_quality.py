"""`quality`: which model is chosen where none is named, in arrays, files, dask and the command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from test_denoising import as_color

import nlnet
import nlnet.dask
import nlnet.model.loading
from nlnet.cli import main
from nlnet.defaults import BEST, FAMILIES, FAST, QUALITIES
from nlnet.errors import InputError
from nlnet.files.settings import Settings
from nlnet.model.loading import choose_model, load_model, select_model
from nlnet.model.model import Model
from nlnet.noise.camera import Camera
from nlnet.raw.mosaic import denoise_mosaic

pytestmark = pytest.mark.numerical

SELECT = select_model


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The names of the models that are chosen."""
    names: list[object] = []

    def select(name: object, sigma: float) -> Model:
        names.append(name)
        return SELECT(name, sigma)

    monkeypatch.setattr(nlnet.model.loading, "select_model", select)
    return names


@pytest.mark.parametrize("channels", [1, 3])
def test_there_is_a_model_for_every_quality(channels: int) -> None:
    for quality in QUALITIES:
        chosen = choose_model("auto", channels, 25.0, quality)
        assert chosen.config.channels == channels
        expected = select_model(FAMILIES[quality][channels], 25.0)
        assert chosen.name == expected.name
    fast = choose_model("auto", channels, 25.0, FAST)
    assert choose_model("auto", channels, 25.0).name == fast.name


def entries() -> dict[str, Callable[..., object]]:
    def lazily(image: np.ndarray, sigma: float, **options: object) -> object:
        array = da.from_array(image, chunks=-1)
        return nlnet.dask.denoise(array, sigma, **options).compute(scheduler="synchronous")

    return {
        "image": nlnet.denoise,
        "stack": lambda image, *rest, **options: nlnet.denoise_stack(image[None], *rest, **options),
        "dask": lazily,
    }


@pytest.mark.parametrize("entry", entries())
@pytest.mark.parametrize("channels", [1, 3])
def test_quality_chooses_the_model(
    noisy_gray: np.ndarray, asked: list[object], entry: str, channels: int
) -> None:
    image = (noisy_gray if channels == 1 else as_color(noisy_gray)) / 255
    denoise = entries()[entry]
    for quality, wanted in ((None, FAST), (FAST, FAST), (BEST, BEST)):
        asked.clear()
        denoise(image, 0.1, quality=quality)
        assert set(asked) == {FAMILIES[wanted][channels]}


def test_every_scale_of_camera_noise_has_its_model(
    noisy_gray: np.ndarray, asked: list[object]
) -> None:
    image = np.tile(noisy_gray, (2, 2)) / 255
    noise = Camera.even(0.1, (1.0, 1.0))
    nlnet.denoise(image, noise=noise, quality=BEST)
    assert asked == [FAMILIES[BEST][1]] * 2


def test_the_best_is_another_result(noisy_gray: np.ndarray) -> None:
    image = noisy_gray / 255
    best = nlnet.denoise(image, 0.1, quality=BEST)
    np.testing.assert_array_equal(best, nlnet.denoise(image, 0.1, model=FAMILIES[BEST][1]))
    assert np.abs(best - nlnet.denoise(image, 0.1)).max() > 1e-3


@pytest.mark.parametrize("entry", entries())
def test_a_model_and_a_quality_are_not_both_given(noisy_gray: np.ndarray, entry: str) -> None:
    denoise = entries()[entry]
    for model in ("gray-5x5", Path("gray-5x5"), load_model("gray-5x5-s25")):
        with pytest.raises(InputError, match=r"Both the model 'gray-5x5.* the quality 'fast'"):
            denoise(noisy_gray / 255, 0.1, model=model, quality=FAST)
    for wrong in ("Best", "", 1, ["best"]):
        with pytest.raises(InputError, match=r"^quality is .*, but must be one of fast, best\.$"):
            denoise(noisy_gray / 255, 0.1, quality=wrong)


def test_a_raw_mosaic(asked: list[object]) -> None:
    photons = np.random.default_rng(0).poisson(100, size=(32, 32)).astype(np.float32)
    denoise_mosaic(photons, ((0, 1), (1, 2)), gain=1.0, read=0.0, quality=BEST)
    assert set(asked) == set(FAMILIES[BEST].values())
    with pytest.raises(InputError, match="quality is 'good'"):
        denoise_mosaic(photons, None, gain=1.0, read=0.0, quality="good")


# --- Files and the command -------------------------------------------------------------------


def test_settings_are_checked_before_a_file_is_read() -> None:
    Settings(quality=BEST).check()
    with pytest.raises(InputError, match="Both the model 'gray-5x5'"):
        Settings(quality=BEST, model="gray-5x5").check()
    with pytest.raises(InputError, match="quality is 'good'"):
        Settings(quality="good").check()


def test_the_command(
    noisy_file: Path, tmp_path: Path, asked: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["denoise", str(noisy_file), "--sigma", "25"]
    assert main([*command, "-o", str(tmp_path / "best.png"), "--quality", "best"]) == 0
    assert set(asked) == {FAMILIES[BEST][1]}
    options = ["-o", str(tmp_path / "both.png"), "--quality", "best", "--model", "gray-5x5"]
    assert main([*command, *options]) == 2
    assert "Both the model 'gray-5x5' and the quality 'best'" in capsys.readouterr().err
    assert not (tmp_path / "both.png").exists()
