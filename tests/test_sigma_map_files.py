"""Maps of sigma in files: `nlnet denoise --sigma MAP`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pictures import noisy_pixels

import nlnet
from nlnet.cli import main
from nlnet.images import ImageFile, read_image, write_image, write_pages

pytestmark = pytest.mark.numerical

RAMP = np.broadcast_to(np.geomspace(10.0, 40.0, 32), (24, 32)).astype(np.float32)


@pytest.fixture
def ramp(tmp_path: Path) -> Path:
    write_image(tmp_path / "ramp.tif", ImageFile(RAMP))
    return tmp_path / "ramp.tif"


@pytest.fixture
def command(tmp_path: Path, gray_model_file: Path) -> Callable[..., int]:
    def run(source: Path, sigma: object, *options: object) -> int:
        words = ["denoise", source, "-o", tmp_path / "out.tif", "--sigma", sigma]
        return main([*map(str, [*words, "--model", gray_model_file, "--overwrite", *options])])

    return run


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_a_map_is_on_the_8_bit_scale_as_sigma_is(
    tmp_path: Path, command: Callable[..., int], ramp: Path, gray_model_file: Path, dtype: type
) -> None:
    pixels = noisy_pixels(dtype)
    write_image(tmp_path / "in.tif", ImageFile(pixels))
    white = {np.uint8: 255, np.uint16: 65535, np.float32: 1.0}[dtype]
    expected = nlnet.denoise(pixels, RAMP * (white / 255), model=gray_model_file)
    assert command(tmp_path / "in.tif", ramp) == 0
    result = read_image(tmp_path / "out.tif").pixels
    np.testing.assert_allclose(result, expected, atol=2e-4 * white)
    assert np.abs(result - nlnet.denoise(pixels, white / 10, model=gray_model_file)).max() > 0


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float64])
def test_the_type_of_a_map_does_not_matter(
    tmp_path: Path, command: Callable[..., int], dtype: type, gray_model_file: Path
) -> None:
    pixels, sigmas = noisy_pixels(np.float32), np.rint(RAMP)
    write_image(tmp_path / "in.tif", ImageFile(pixels))
    np.save(tmp_path / "map.npy", sigmas.astype(dtype))
    assert command(tmp_path / "in.tif", tmp_path / "map.npy") == 0
    expected = nlnet.denoise(pixels, sigmas / 255, model=gray_model_file)
    np.testing.assert_allclose(read_image(tmp_path / "out.tif").pixels, expected, atol=1e-4)


def test_what_is_said(
    tmp_path: Path, command: Callable[..., int], ramp: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_image(tmp_path / "in.tif", ImageFile(noisy_pixels(np.uint8)))
    assert command(tmp_path / "in.tif", ramp, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["noise"] == ["white noise, sigma 10 to 40"]
    assert told["sigmas"] == [pytest.approx(RAMP.mean(), rel=1e-3)]
    assert told["estimated"] is False


def test_maps_for_stacks_and_masks(
    tmp_path: Path, command: Callable[..., int], ramp: Path, gray_model_file: Path
) -> None:
    pages = [noisy_pixels(np.float32), noisy_pixels(np.float32)[::-1].copy()]
    write_pages(tmp_path / "in.tif", [ImageFile(page) for page in pages])
    each = [RAMP, RAMP[:, ::-1].copy()]
    write_pages(tmp_path / "maps.tif", [ImageFile(page) for page in each])
    mask = np.zeros((24, 32), np.uint8)
    mask[4:7, 5:9] = 1
    write_image(tmp_path / "mask.png", ImageFile(mask))
    for path, sigmas in ((ramp, [RAMP, RAMP]), (tmp_path / "maps.tif", each)):
        assert command(tmp_path / "in.tif", path, "--mask", tmp_path / "mask.png") == 0
        for page, image, values in zip(
            nlnet.images.read_pages(tmp_path / "out.tif"), pages, sigmas, strict=True
        ):
            expected = nlnet.denoise(image, values / 255, mask=mask > 0, model=gray_model_file)
            np.testing.assert_allclose(page.pixels, expected, atol=1e-4)


def test_a_folder(tmp_path: Path, ramp: Path, gray_model_file: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in ("a.png", "b.png"):
        write_image(tmp_path / "in" / name, ImageFile(noisy_pixels(np.uint8)))
    words = ["denoise", tmp_path / "in", "-o", tmp_path / "out", "--sigma", ramp]
    assert main([*map(str, [*words, "--model", gray_model_file])]) == 0
    for name in ("a.png", "b.png"):
        expected = nlnet.denoise(noisy_pixels(np.uint8), RAMP, model=gray_model_file)
        found = read_image(tmp_path / "out" / name).pixels
        assert np.abs(found.astype(int) - expected).max() <= 1


def test_maps_that_cannot_be_used(tmp_path: Path, ramp: Path, fails: Callable[..., str]) -> None:
    source = tmp_path / "in.tif"
    write_image(source, ImageFile(noisy_pixels(np.uint8)))
    write_image(tmp_path / "color.tif", ImageFile(noisy_pixels(np.uint8, 3)))
    write_image(tmp_path / "small.tif", ImageFile(RAMP[:20].copy()))
    np.save(tmp_path / "zero.npy", RAMP - 10)
    np.save(tmp_path / "three.npy", np.stack([RAMP] * 3))

    def complaint(sigma: object, *options: object) -> str:
        return fails("denoise", source, "-o", tmp_path / "out.tif", "--sigma", sigma, *options)

    assert "missing.tif" in complaint(tmp_path / "missing.tif")
    assert "has 3 channels, but must have one" in complaint(tmp_path / "color.tif")
    assert "sigma has shape (20, 32), but must be a number, or" in complaint(tmp_path / "small.tif")
    assert "values from 0 to 30, but they must be above 0" in complaint(tmp_path / "zero.npy")
    assert "has 3 pages, but must have 1 page" in complaint(tmp_path / "three.npy")
    assert "the noise is given as 'camera'" in complaint(ramp, "--noise", "camera")
    assert "cannot be estimated per page" in complaint(ramp, "--per-page")
    for nonsense in ("abc", "2.5.1"):
        assert f"{nonsense!r} must be a number above 0" in complaint(nonsense)
    source = tmp_path / "in.zarr"
    assert "not for zarr" in complaint(ramp)
    assert not (tmp_path / "out.tif").exists()
