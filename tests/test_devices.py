from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from messages import refused

import nlnet
from nlnet.errors import InputError
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("every", [True, False])
def test_the_torch_network_gives_the_same(
    noisy_gray: np.ndarray, channels: int, every: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr("nlnet.denoising.devices._find_device", lambda name: torch.device("cpu"))
    config = NetworkConfig(channels=channels, stages=2, window=7, project_every_stage=every)
    model = Model(config, initial_parameters(config), sigma=25.0, name="small")
    hard = 3 * noisy_gray - 250  # beyond black and white, so that projections matter
    image = hard if channels == 1 else np.dstack([hard, hard[::-1], hard[:, ::-1]])
    for clip in (True, False):
        shares: list[float] = []
        options: dict[str, Any] = {"sigma": 60.0, "clip": clip, "data_range": 255}
        expected = nlnet.denoise(image, model=model, **options)
        result = nlnet.denoise(image, model=model, **options, device="cuda", progress=shares.append)
        np.testing.assert_allclose(result, expected, atol=2e-3)
        assert shares == sorted(shares)
        assert shares[-1] == 1.0


def test_a_device_that_is_not_there(noisy_gray: np.ndarray, gray_model: Model) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with refused(InputError, "'cuda' cannot be used"):
        nlnet.denoise(noisy_gray, 25, model=gray_model, data_range=255, device="cuda")


@pytest.mark.parametrize("device", ["gpu", "meta", "", "cuda:x", 0, None])
def test_unknown_devices(noisy_gray: np.ndarray, gray_model: Model, device: Any) -> None:
    with pytest.raises(InputError, match=r"[dD]evice"):
        nlnet.denoise(noisy_gray, 25, model=gray_model, data_range=255, device=device)


def test_a_device_without_torch(
    noisy_gray: np.ndarray, gray_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with refused(InputError, "needs torch", "pip install 'nlnet[train]'"):
        nlnet.denoise(noisy_gray, 25, model=gray_model, data_range=255, device="cuda")
