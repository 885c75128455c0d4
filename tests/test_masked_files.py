"""Files of which some pixels are left out: NaN, or what an image given as a mask says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pictures import DenoiseFile, noisy_pixels

import nlnet
from nlnet.cli import main
from nlnet.images import ImageFile, WritingOptions, losses, read_image, write_image, write_pages
from nlnet.model.model import Model

pytestmark = pytest.mark.numerical


def bar(height: int = 24, width: int = 32) -> np.ndarray:
    mask = np.zeros((height, width), bool)
    mask[5:9] = True
    mask[20, 30] = True
    return mask


@pytest.mark.parametrize("suffix", [".tif", ".npy"])
@pytest.mark.parametrize("channels", [1, 3])
def test_nan_is_left_out(
    tmp_path: Path,
    denoise_file: DenoiseFile,
    gray_model: Model,
    color_model: Model,
    capsys: pytest.CaptureFixture[str],
    suffix: str,
    channels: int,
) -> None:
    pixels, mask = noisy_pixels(np.float32, channels), bar()
    pixels[mask] = np.nan
    write_image(tmp_path / f"in{suffix}", ImageFile(pixels))
    result = denoise_file(tmp_path / f"in{suffix}", tmp_path / f"out{suffix}")
    model = gray_model if channels == 1 else color_model
    expected = nlnet.denoise(pixels, 25 / 255, model=model)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(result).reshape(24, 32, -1).all(axis=2), mask)
    assert "129 pixels are masked or NaN: left as they are" in capsys.readouterr().out


def test_nan_where_the_noise_is_found(
    tmp_path: Path, gray_model_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As without it, and in every page of a stack on its own; `noise` says the same."""
    rng = np.random.default_rng(0)
    stack = 0.5 + rng.normal(0, 0.1, (2, 64, 64))
    stack[1, 10:30] = np.nan
    np.save(tmp_path / "in.npy", stack)
    words = ["denoise", "in.npy", "-o", "out.npy", "--model", str(gray_model_file)]
    files = [str(tmp_path / word) if word.endswith(".npy") else word for word in words]
    assert main(files) == 0
    told = capsys.readouterr().out
    assert "1280 pixels are masked or NaN" in told
    assert main(["noise", str(tmp_path / "in.npy")]) == 0
    for line in capsys.readouterr().out.splitlines():
        assert float(line.split()[-1]) == pytest.approx(25.5, rel=0.15)
    result = np.load(tmp_path / "out.npy")
    np.testing.assert_array_equal(np.isnan(result), np.isnan(stack))
    assert np.nanstd(result[1]) < 0.8 * np.nanstd(stack[1])


def test_infinity_names_file_and_page(tmp_path: Path, fails: Callable[..., str]) -> None:
    stack = noisy_pixels(np.float64)[np.newaxis].repeat(3, axis=0)
    stack[1, 3, 4] = np.inf
    np.save(tmp_path / "in.npy", stack)
    message = fails("denoise", tmp_path / "in.npy", "-o", tmp_path / "out.npy", "--sigma", 25)
    assert "in.npy', page 2 of 3: The image has values that cannot be used: 1 infinite" in message
    stack[1] = np.nan
    np.save(tmp_path / "in.npy", stack)
    message = fails("denoise", tmp_path / "in.npy", "-o", tmp_path / "out.npy", "--sigma", 25)
    assert "page 2 of 3: 768 of the image's 768 pixels are masked or NaN" in message


def test_nan_is_zero_where_there_is_none(tmp_path: Path) -> None:
    pixels = noisy_pixels(np.float32)
    pixels[bar()] = np.nan
    image, depth = ImageFile(pixels), WritingOptions(depth="uint8")
    write_image(tmp_path / "out.png", image, depth)
    written = read_image(tmp_path / "out.png").pixels
    np.testing.assert_array_equal(written[bar()], 0)
    assert written[~bar()].mean() > 100
    assert "uint8 has no NaN, so it is written as 0" in losses("out.png", image, depth)
    assert losses("out.tif", image) == ()


# A mask in a file


@pytest.mark.parametrize("dtype", [np.uint8, np.int16])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_mask(
    tmp_path: Path,
    denoise_file: DenoiseFile,
    gray_model: Model,
    color_model: Model,
    dtype: type,
    channels: int,
) -> None:
    """What is under it changes nothing else, not even the range of the data."""
    pixels, mask = noisy_pixels(np.uint8, channels).astype(dtype), bar()
    suffix = ".png" if dtype == np.uint8 else ".tif"
    white = 255.0 if dtype == np.uint8 else float(np.ptp(pixels[~mask]))
    model = gray_model if channels == 1 else color_model
    expected = nlnet.denoise(pixels, 25 * white / 255, mask=mask, model=model)
    pixels[mask] = np.iinfo(dtype).max
    write_image(tmp_path / f"in{suffix}", ImageFile(pixels))
    write_image(tmp_path / "mask.png", ImageFile(mask.astype(np.uint8)))
    result = denoise_file(
        tmp_path / f"in{suffix}", tmp_path / f"out{suffix}", "--mask", tmp_path / "mask.png"
    )
    np.testing.assert_array_equal(result[~mask], expected[~mask])
    np.testing.assert_array_equal(result[mask], pixels[mask])


def test_masks_of_stacks(
    tmp_path: Path,
    denoise_file: DenoiseFile,
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A mask of one page is for all of them; other numbers of pages must be the same."""
    stack = np.stack([noisy_pixels(np.uint16, seed=seed) for seed in range(3)])
    np.save(tmp_path / "in.npy", stack)
    masks = [np.roll(bar(), 3 * number, axis=0) for number in range(3)]
    for count in (1, 2, 3):
        pages = [ImageFile(mask.astype(np.uint8)) for mask in masks[:count]]
        write_pages(tmp_path / f"mask-{count}.tif", pages)
    source = tmp_path / "in.npy"
    for count in (1, 3):
        target = tmp_path / f"out-{count}.npy"
        denoise_file(source, target, "--mask", tmp_path / f"mask-{count}.tif")
        result = np.load(target)
        for page, kept in enumerate(masks[:1] * 3 if count == 1 else masks):
            np.testing.assert_array_equal(result[page][kept], stack[page][kept])
            assert not np.array_equal(result[page][~kept], stack[page][~kept])
    capsys.readouterr()
    options = ["--sigma", 25, "--mask", tmp_path / "mask-2.tif"]
    message = fails("denoise", source, "-o", tmp_path / "out.npy", *options)
    assert "mask-2.tif' has 2 pages, but must have 1 page or 3" in message


def test_masks_that_cannot_be(tmp_path: Path, fails: Callable[..., str]) -> None:
    write_image(tmp_path / "in.png", ImageFile(noisy_pixels(np.uint8)))
    write_image(tmp_path / "wide.png", ImageFile(np.zeros((24, 40), np.uint8)))
    write_image(tmp_path / "all.png", ImageFile(np.ones((24, 32), np.uint8)))
    words = ["denoise", tmp_path / "in.png", "-o", tmp_path / "out.png", "--sigma", 25, "--mask"]
    assert "missing.png': No such file" in fails(*words, tmp_path / "missing.png")
    message = fails(*words, tmp_path / "wide.png")
    assert "in.png': The mask has shape (24, 40), but must be (24, 32)" in message
    assert "768 of the image's 768 pixels are masked" in fails(*words, tmp_path / "all.png")
    zarr = ["denoise", tmp_path / "in.zarr", "-o", tmp_path / "out.zarr"]
    assert "--mask is for images in memory" in fails(*zarr, "--mask", tmp_path / "all.png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.png", "in.png", "wide.png"]


def test_the_preview_of_an_image_with_nan(tmp_path: Path, denoise_file: DenoiseFile) -> None:
    pixels = noisy_pixels(np.float32)
    pixels[bar()] = np.nan
    write_image(tmp_path / "in.tif", ImageFile(pixels))
    figure = tmp_path / "figure.png"
    denoise_file(tmp_path / "in.tif", tmp_path / "out.tif", "--preview", figure)
    assert read_image(figure).pixels.std() > 0


def test_what_cannot_be_compared(tmp_path: Path, fails: Callable[..., str]) -> None:
    pixels = noisy_pixels(np.float32)
    np.save(tmp_path / "a.npy", pixels)
    pixels[bar()] = np.nan
    np.save(tmp_path / "b.npy", pixels)
    message = fails("compare", tmp_path / "a.npy", tmp_path / "b.npy", "-o", tmp_path / "c.png")
    assert "'b.npy': The image has values that cannot be used: 129 NaN" in message
