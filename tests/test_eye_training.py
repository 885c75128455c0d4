"""Training the eye: what it is told about pictures, and that it learns."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from eyes import look

from nlnet.noise.estimation import eye_from_tensors
from nlnet.torch.refinement import EyeNet
from nlnet.training import eye as training
from nlnet.training.eye import Run, optimizer_step
from nlnet.training.eye_data import (
    EyeSettings,
    draw_batch,
    fill_of,
    make_example,
    opponent,
    strengths_of,
)
from nlnet.training.simulation.scenes import Photos

pytestmark = pytest.mark.numerical


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("photos")
    small = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    cv2.imwrite(str(folder / "one.png"), cv2.resize(small, (400, 300), interpolation=3))
    return folder


@pytest.fixture(scope="module")
def photos(folder: Path) -> Photos:
    return Photos(folder)


@pytest.mark.parametrize("channels", [1, 3])
def test_white_noise_is_equally_strong_at_all_scales_in_luma_and_chroma(channels: int) -> None:
    rng = np.random.default_rng(0)
    shape = (128, 128) if channels == 1 else (128, 128, 3)
    first, second = (opponent(rng.normal(100, 9, shape).astype(np.float32)) for _ in range(2))
    strengths = strengths_of(first, second)
    expected = 9 if channels == 1 else 9 / np.sqrt(3)
    assert strengths.shape == (6, 8, 8)
    np.testing.assert_allclose(
        strengths[: 3 * (channels == 3) + 3].mean(axis=(1, 2)), expected, rtol=0.05
    )
    if channels == 1:
        assert not strengths[3:].any()


def test_the_same_picture_twice_has_no_noise() -> None:
    planes = opponent(np.random.default_rng(0).uniform(0, 255, (64, 64)).astype(np.float32))
    assert not strengths_of(planes, planes).any()


def test_a_picture_fills_what_its_values_do() -> None:
    image = np.linspace(1000, 3000, 4096, dtype=np.float32).reshape(64, 64)
    image[0, 0] = 1e6  # a star
    black, unit = fill_of(image)
    assert black == pytest.approx(1000, abs=5)
    assert unit == pytest.approx(2156 / 255, rel=0.01)  # a tenth more than most values fill


def test_the_engine_sees_what_torch_sees() -> None:
    torch.manual_seed(0)
    net = EyeNet().eval()
    pixels = np.random.default_rng(0).uniform(0, 255, (2, 3, 48, 64)).astype(np.float32)
    planes = np.stack([opponent(np.moveaxis(each, 0, -1)) for each in pixels])
    with torch.no_grad():
        expected = net(torch.from_numpy(planes)).numpy()
    found = look(eye_from_tensors(net.export()), pixels)
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_examples_are_the_same_for_the_same_number(photos: Photos) -> None:
    settings = EyeSettings(picture=96, side=64)
    first, second = (make_example(photos, settings, 5) for _ in range(2))
    np.testing.assert_array_equal(first.first, second.first)
    np.testing.assert_array_equal(first.strengths, second.strengths)
    assert first.label == second.label


def test_it_learns(photos: Photos) -> None:
    settings = EyeSettings(picture=64, side=64, batch=8)
    examples = [make_example(photos, settings, number) for number in range(16)]
    torch.manual_seed(0)
    net = EyeNet()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    rng = np.random.default_rng(0)
    errors = [
        optimizer_step(net, optimizer, draw_batch(examples, settings, rng))["error"]
        for _ in range(30)
    ]
    assert np.mean(errors[-5:]) < 0.7 * np.mean(errors[:3])


def test_a_run_that_was_stopped_ends_with_the_same_eye(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EyeSettings(steps=5, picture=64, side=64, batch=2, pictures=4, reuse=1)
    monkeypatch.setattr(training, "_CHECKPOINT", 2)
    monkeypatch.setattr(training, "_VALIDATION", range(2))
    whole, stopped = tmp_path / "whole.safetensors", tmp_path / "stopped.safetensors"
    Run(str(folder), whole, settings).train()

    calls = 0

    def interrupted(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return optimizer_step(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(training, "optimizer_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            Run(str(folder), stopped, settings).train()
    again = Run(str(folder), stopped, settings)
    assert again.done == 2
    again.train()
    assert stopped.read_bytes() == whole.read_bytes()
