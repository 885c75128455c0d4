"""Floating results in the units of the input, and what else arrays and commands take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from messages import refused

import nlnet
from nlnet.cli import main
from nlnet.errors import InputError
from nlnet.images import ImageFile, read_image, write_image
from nlnet.noise.levels import Level
from nlnet.noise.record import Photon

RNG = np.random.default_rng(4)
TRUTH = 4 + 3 * np.sin(np.arange(64) / 9)[:, None] * np.cos(np.arange(72) / 11)
COUNTS = RNG.poisson(TRUTH).astype(np.uint16)
PHOTONS = nlnet.Noise.poisson(1.0)


def error(result: np.ndarray) -> float:
    return float(np.mean((result - TRUTH) ** 2))


@pytest.mark.numerical
@pytest.mark.parametrize("dtype", ["float32", np.float64])
def test_counts_are_not_rounded(dtype: Any) -> None:
    rounded = nlnet.denoise(COUNTS, noise=PHOTONS)
    exact = nlnet.denoise(COUNTS, noise=PHOTONS, dtype=dtype)
    assert exact.dtype == dtype
    np.testing.assert_array_equal(np.rint(exact), rounded)
    assert error(exact) < error(rounded) - 0.05  # rounding adds 1 / 12


@pytest.mark.parametrize("along", [None, 0])
def test_stacks(along: int | None) -> None:
    stack = np.stack([COUNTS] * 3)
    exact = nlnet.denoise_stack(stack, noise=PHOTONS, along=along, dtype="float32")
    assert (exact.dtype, exact.shape) == (np.float32, stack.shape)
    assert (exact % 1 != 0).any()
    rounded = nlnet.denoise_stack(stack, noise=PHOTONS, along=along)
    np.testing.assert_array_equal(np.rint(exact), rounded)


def test_masked_pixels_stay() -> None:
    hidden = np.zeros(COUNTS.shape, np.uint8)
    hidden[3, 4] = 7
    exact = nlnet.denoise(COUNTS, noise=PHOTONS, mask=hidden, dtype="float32")
    assert exact[3, 4] == COUNTS[3, 4]
    as_bool = nlnet.denoise(COUNTS, noise=PHOTONS, mask=hidden != 0, dtype="float32")
    np.testing.assert_array_equal(exact, as_bool)
    with refused(InputError, "float64", "bool or integer"):
        nlnet.denoise(COUNTS, noise=PHOTONS, mask=hidden.astype(float))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "nonsense", object])
def test_other_dtypes_are_refused(dtype: Any) -> None:
    with refused(InputError, "float32 or float64"):
        nlnet.denoise(COUNTS, noise=PHOTONS, dtype=dtype)


def test_depth_of_files_keeps_units(tmp_path: Path) -> None:
    alpha = np.full(COUNTS.shape, 9, np.uint16)
    write_image(tmp_path / "in.tif", ImageFile(COUNTS, alpha))
    record = tmp_path / "noise.json"
    record.write_text(PHOTONS.to_json())
    arguments = [str(tmp_path / "in.tif"), "-o", str(tmp_path / "out.tif"), "--noise", str(record)]
    assert main(["denoise", *arguments, "--depth", "float32"]) == 0
    result = read_image(tmp_path / "out.tif")
    exact = nlnet.denoise(COUNTS, noise=PHOTONS, dtype="float32")
    np.testing.assert_array_equal(result.pixels, exact)
    np.testing.assert_array_equal(result.alpha, alpha)


def test_stacks_of_several_axes(tmp_path: Path) -> None:
    stack = np.stack([COUNTS] * 12).reshape(2, 3, 2, *COUNTS.shape)
    np.save(tmp_path / "in.npy", stack)
    assert main(["denoise", str(tmp_path / "in.npy"), "-o", str(tmp_path / "out.npy")]) == 0
    assert np.load(tmp_path / "out.npy").shape == stack.shape


def test_channels_that_differ_in_their_noise(tmp_path: Path) -> None:
    counts = RNG.poisson(TRUTH, (3, 2, *TRUTH.shape)) * np.array([1, 40])[:, None, None]
    stack = counts.astype(np.uint16)
    np.save(tmp_path / "in.npy", stack)
    files = [str(tmp_path / "in.npy"), "-o", str(tmp_path / "out.npy")]
    assert main(["denoise", *files, "--noise-axis", "1"]) == 0
    expected = nlnet.denoise_stack(stack, noise_axis=1)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), expected)
    assert main(["denoise", *files, "--noise-axis", "2", "--overwrite"]) == 2


@pytest.mark.parametrize("kind", ["ome", "imagej"])
def test_channels_that_files_name(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = RNG.poisson(TRUTH, (3, 2, *TRUTH.shape)) * np.array([1, 40])[:, None, None]
    stack = counts.astype(np.uint16)
    path, target = tmp_path / "in.ome.tif", tmp_path / "out.ome.tif"
    tifffile.imwrite(path, stack, **{kind: True}, metadata={"axes": "TCYX"})
    assert main(["noise", str(path), "--json"]) == 0
    gains = [json.loads(line)["noise"]["levels"][0]["gain"] for line in said(capsys)]
    np.testing.assert_allclose(gains, [1, 40], rtol=0.2)
    assert main(["denoise", str(path), "-o", str(target)]) == 0
    expected = nlnet.denoise_stack(stack, noise_axis=1)
    np.testing.assert_array_equal(tifffile.imread(target), expected)


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_bar_shows_the_progress(capsys: pytest.CaptureFixture[str]) -> None:
    nlnet.denoise(COUNTS, noise=PHOTONS, progress=True)
    assert "100%" in capsys.readouterr().err
    nlnet.denoise_stack(COUNTS[None], noise=PHOTONS, progress=True)
    assert "100%" in capsys.readouterr().err
    nlnet.denoise(COUNTS, noise=PHOTONS, progress=False)
    assert capsys.readouterr().err == ""


def test_numbers_that_hold_for_all_channels() -> None:
    one = nlnet.Noise.poisson(2.0, 3.0, 10.0)
    assert (one.gain, one.read, one.black) == (2.0, 3.0, 10.0)
    several = Photon((Level(1.0, 3.0), Level(2.0, 3.0), Level(1.5, 3.0)))
    assert (several.gain, several.read, several.black) == (None, 3.0, 0.0)
    assert str(several).startswith("photon noise, gain 1/2/1.5, read noise 3")
    assert str(nlnet.Noise.poisson(1.0, 0.0, 1e-15)) == "photon noise, gain 1, read noise 0"
    white = nlnet.Noise.white(5.0)
    assert (white.gain, white.read) == (0.0, 5.0)
