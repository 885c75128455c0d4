"""Zarr folders and TIFF files with every kind of noise: as the whole array at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nlnet
from nlnet.cli import main
from nlnet.model.model import Model
from nlnet.noise.camera import Camera

pytest.importorskip("distributed")
tifffile = pytest.importorskip("tifffile")
zarr = pytest.importorskip("zarr")

NEAR = 1e-3 * 255
"""Gray levels; see tests/test_dask_noise.py."""


def image(*shape: int) -> np.ndarray:
    rows, columns = np.indices(shape[:2])
    plane = 120 + 60 * np.sin(columns / 37) * np.cos(rows / 29)
    return plane if len(shape) == 2 else np.stack([plane, 0.8 * plane, 250 - plane], axis=-1)


def photo(*shape: int) -> np.ndarray:
    """An image with correlated noise."""
    noise = np.random.default_rng(4).standard_normal(shape)
    for axis in (0, 1, 0, 1):
        noise = noise + np.roll(noise, 1, axis)
    return np.clip(image(*shape) + 14 * noise / noise.std(), 0, 255).astype(np.float32)


def counts(*shape: int) -> np.ndarray:
    """An image with photon noise."""
    return 3.0 * np.random.default_rng(4).poisson(image(*shape) / 3).astype(np.float32)


def store(path: Path, values: np.ndarray, chunks: int = 40) -> Path:
    zarr.create_array(
        str(path), data=values, chunks=tuple(min(chunks, side) for side in values.shape)
    )
    return path


def run(*arguments: object) -> None:
    assert main([str(argument) for argument in arguments]) == 0


@pytest.mark.parametrize(("make", "kind"), [(photo, "camera"), (counts, "photon")])
@pytest.mark.parametrize("name", ["out.zarr", "out.ome.tif"])
def test_the_kind_is_found_and_told(
    tmp_path: Path,
    gray_model: Model,
    gray_model_file: Path,
    capsys: pytest.CaptureFixture[str],
    make: Any,
    kind: str,
    name: str,
) -> None:
    noisy = make(300, 330)
    source = store(tmp_path / "in.zarr", noisy)
    options = ["--model", gray_model_file, "--data-range", 255, "--workers", 2]
    run("denoise", source, "-o", tmp_path / name, *options)
    assert f"found {kind} noise" in capsys.readouterr().out
    read = tifffile.imread if name.endswith("tif") else lambda path: zarr.open(str(path))[:]
    whole = nlnet.denoise(noisy, model=gray_model, data_range=255)
    np.testing.assert_allclose(read(tmp_path / name), whole, rtol=0, atol=NEAR)


def test_two_strengths_and_a_noise_record(
    tmp_path: Path, color_model: Model, color_model_file: Path
) -> None:
    noise = Camera.even(14.0, (1.0, 1.8, 2.5))
    (tmp_path / "noise.json").write_text(noise.to_json())
    noisy = photo(180, 170, 3)
    source = store(tmp_path / "in.zarr", noisy)
    options = ["--model", color_model_file, "--data-range", 255, "--strength", "0.3,0.9"]
    run(
        *("denoise", source, "-o", tmp_path / "out.zarr", *options),
        *("--noise", tmp_path / "noise.json"),
    )
    whole = nlnet.denoise(
        noisy, noise=noise, strength=(0.3, 0.9), model=color_model, data_range=255
    )
    result = zarr.open(str(tmp_path / "out.zarr"))[:]
    np.testing.assert_allclose(result, whole, rtol=0, atol=NEAR)


def test_signed_pages_have_the_range_of_their_data(
    tmp_path: Path, gray_model: Model, gray_model_file: Path
) -> None:
    rng = np.random.default_rng(0)
    pages = np.stack([rng.normal(1000, sigma, (40, 50)) for sigma in (30, 300)]).astype(np.int16)
    source = store(tmp_path / "in.zarr", pages)
    options = ["--model", gray_model_file, "--sigma", 25]
    run("denoise", source, "-o", tmp_path / "out.zarr", *options)
    result = zarr.open(str(tmp_path / "out.zarr"))[:]
    for page, denoised in zip(pages, result, strict=True):
        whole = nlnet.denoise(page, 25 / 255 * float(np.ptp(page)), model=gray_model)
        assert np.abs(denoised.astype(int) - whole).max() <= 1


def test_values_beyond_white_are_kept_and_told(
    tmp_path: Path, gray_model_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = np.full((2, 60, 70), 0.5, np.float32)
    pages += 0.05 * np.random.default_rng(0).standard_normal(pages.shape).astype(np.float32)
    pages[1, 20:30, 20:30] = 4
    source = store(tmp_path / "in.zarr", pages)
    arguments = ["denoise", source, "-o", tmp_path / "out.zarr", "--model", gray_model_file]
    run(*arguments, "--noise", "white", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["notes"] == [
        "1 of 2 pages have values that noise around a range from 0 to 1 does not explain: nothing "
        "is clipped (--data-range says what white is)"
    ]
    assert told["estimated"] is True
    np.testing.assert_allclose(told["sigmas"], 0.05 * 255, rtol=0.1)
    assert told["noise"][0].startswith("white noise, sigma 12")
    assert zarr.open(str(tmp_path / "out.zarr"))[:].max() > 3
