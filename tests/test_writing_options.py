"""Quality, depth and background of the files that are written."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from messages import refused
from pictures import noisy_pixels

from nlnet import images
from nlnet.cli import main
from nlnet.errors import InputError
from nlnet.images import ImageFile, WritingOptions, encode, losses, read_image, write_image

Capture = pytest.CaptureFixture[str]


def encoded_size(suffix: str, **options: Any) -> int:
    return len(encode(ImageFile(noisy_pixels(np.uint8, 3)), suffix, WritingOptions(**options)))


def test_quality() -> None:
    assert encoded_size(".jpg", jpeg_quality=30) < 0.5 * encoded_size(".jpg")
    assert encoded_size(".webp", webp_quality=30) < 0.5 * encoded_size(".webp")
    exact = images.decode(encode(ImageFile(noisy_pixels(np.uint8, 3)), ".webp"), "a.webp")
    np.testing.assert_array_equal(exact.pixels, noisy_pixels(np.uint8, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jpeg_quality": 0}, "jpeg_quality is 0, but must be from 1 to 100"),
        ({"webp_quality": 101}, "webp_quality is 101"),
        ({"background": "white"}, "background is 'white', but must be three whole numbers"),
        ({"background": (0, 0, 256)}, "background is"),
        ({"depth": "uint12"}, "depth is 'uint12', but must be one of uint8, uint16, float32"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with refused(InputError, message):
        WritingOptions(**options)


@pytest.mark.parametrize(
    ("given", "depth", "expected"),
    [
        (np.array([[0, 128, 255]], np.uint8), "uint16", [[0, 32896, 65535]]),
        (np.array([[0, 32896, 65535]], np.uint16), "uint8", [[0, 128, 255]]),
        (np.array([[-0.5, 0.5, 2.0]], np.float32), "uint8", [[0, 128, 255]]),
        (np.array([[0, 255]], np.uint8), "float32", [[0.0, 255.0]]),
        (np.array([[0.0, 0.25]], np.float16), "float32", [[0.0, 0.25]]),
    ],
)
def test_depth(given: np.ndarray, depth: str, expected: list[list[float]]) -> None:
    options = WritingOptions(depth=depth)
    image = images.decode(encode(ImageFile(given, given), ".tif", options), "a.tif")
    assert image.pixels.dtype == depth
    np.testing.assert_array_equal(image.pixels, expected)
    np.testing.assert_array_equal(image.alpha, expected)


def test_depth_of_values_without_a_white() -> None:
    image = ImageFile(np.array([[-1000, 500]], np.int16))
    with refused(InputError, "int16 values", "no white", "known"):
        encode(image, ".png", WritingOptions(depth="uint8"))
    known = ImageFile(image.pixels, data_range=1000.0)
    back = images.decode(encode(known, ".png", WritingOptions(depth="uint8")), "a.png")
    np.testing.assert_array_equal(back.pixels, [[0, 128]])


def test_background() -> None:
    alpha = np.array([[0, 51, 255]], np.uint8)
    color = ImageFile(np.full((1, 3, 3), 100, np.uint8), alpha)
    flat = images.decode(encode(color, ".png", WritingOptions(background=(255, 0, 200))), "a.png")
    assert flat.alpha is None
    np.testing.assert_array_equal(flat.pixels[0], [[255, 0, 200], [224, 20, 180], [100, 100, 100]])
    gray = ImageFile(np.full((1, 3), 30_000, np.uint16), alpha.astype(np.uint16) * 257)
    flat = images.decode(encode(gray, ".png", WritingOptions(background=(255,) * 3)), "a.png")
    np.testing.assert_array_equal(flat.pixels, [[65535, 58428, 30000]])


@pytest.mark.parametrize(
    ("pages", "message"),
    [
        ([], "no pages to write"),
        ([ImageFile(np.zeros((4, 4, 2)))], "shape (4, 4, 2), but must be (H, W)"),
        ([ImageFile(np.zeros((0, 4)))], "shape (0, 4)"),
        ([ImageFile(np.zeros((4, 4)), np.zeros((4, 5)))], "Alpha is float64 of shape (4, 5)"),
        ([ImageFile(np.zeros((4, 4)), np.zeros((4, 4), np.uint8))], "Alpha is uint8"),
        ([ImageFile(np.zeros((4, 4))), ImageFile(np.zeros((4, 5)))], "pages differ in size"),
        ([ImageFile(np.zeros((4, 4), bool))], "npy cannot hold bool values; no format can"),
    ],
)
def test_what_is_no_image(tmp_path: Path, pages: list[ImageFile], message: str) -> None:
    with refused(InputError, message):
        images.write_pages(tmp_path / "a.npy", pages)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".tif", ".png", ".pgm", ".npy", ".bmp"])
def test_arrays_of_the_other_byte_order(suffix: str) -> None:
    values = noisy_pixels(np.uint16).astype(">u2")
    options = WritingOptions(depth="uint8") if suffix == ".bmp" else WritingOptions()
    back = images.decode(encode(ImageFile(values), suffix, options), f"a{suffix}")
    expected = np.rint(values / 257) if suffix == ".bmp" else values
    np.testing.assert_array_equal(back.pixels, expected)


# A white of its own


@pytest.mark.parametrize(("white", "dtype"), [(4095, np.uint16), (100, np.uint8)])
@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_a_white_that_a_format_cannot_say(
    tmp_path: Path, capsys: Capture, gray_model_file: Path, white: int, dtype: type, suffix: str
) -> None:
    """A 12-bit PGM file became a PNG file that is nearly black."""
    pixels = np.rint(noisy_pixels(np.float32) * white).astype(dtype)
    write_image(tmp_path / "a.pgm", ImageFile(pixels, data_range=float(white)))
    target = tmp_path / f"b{suffix}"
    command = ["denoise", tmp_path / "a.pgm", "-o", target, "--sigma", 25]
    assert main([*map(str, command), "--model", str(gray_model_file)]) == 0
    full = np.iinfo(dtype).max
    result = read_image(target).pixels
    assert result.dtype == dtype
    assert result.mean() / full == pytest.approx(pixels.mean() / white, rel=0.02)
    said = capsys.readouterr().out
    assert said.count(f"has no white but {full}, so values are scaled to it from {white}") == 1


def test_formats_that_can_say_it() -> None:
    image = ImageFile(noisy_pixels(np.uint16) // 16, data_range=4095.0)
    for suffix in (".pgm", ".npy"):
        assert losses(f"a{suffix}", image) == ()
        back = images.decode(encode(image, suffix), f"a{suffix}")
        np.testing.assert_array_equal(back.pixels, image.pixels)


# On the command line


def test_the_options_of_the_command(
    tmp_path: Path, capsys: Capture, gray_model_file: Path, fails: Callable[..., str]
) -> None:
    source, target = tmp_path / "a.tif", tmp_path / "b.jpg"
    deep = noisy_pixels(np.uint16)
    write_image(source, ImageFile(deep, np.full_like(deep, 65535)))
    command = ["denoise", source, "-o", target, "--sigma", 25, "--model", gray_model_file]
    said = fails(*command)
    assert "or convert it with --depth 8 --background white" in said
    options = ["--depth", 8, "--background", "white", "--jpeg-quality", 40]
    assert main([str(part) for part in [*command, *options]]) == 0
    with PIL.Image.open(target) as image:
        assert image.mode == "L"
        assert np.asarray(image).mean() == pytest.approx(deep.mean() / 257, rel=0.03)
    capsys.readouterr()
    assert "must be from 1 to 100" in fails(*command, "--jpeg-quality", 101)
    assert "a color such as #ff8000" in fails(*command, "--background", "pinkish")
    assert "invalid choice" in fails(*command, "--depth", 12)
    assert "is for image files" in fails("denoise", "a.zarr", "-o", "b.zarr", "--depth", 8)


def test_a_clean_file_is_converted_all_the_same(tmp_path: Path, capsys: Capture) -> None:
    ramp = np.tile(np.arange(64, dtype=np.uint16) * 1000, (64, 1))
    write_image(tmp_path / "a.png", ImageFile(ramp))
    command = ["denoise", str(tmp_path / "a.png"), "-o", str(tmp_path / "b.png")]
    assert main([*command, "--depth", "8"]) == 0
    assert read_image(tmp_path / "b.png").pixels.dtype == np.uint8
    assert "left as it is" in capsys.readouterr().out


def test_the_white_of_the_command_counts_for_the_depth(
    tmp_path: Path, gray_model_file: Path
) -> None:
    pixels = noisy_pixels(np.uint16) // 16
    write_image(tmp_path / "a.tif", ImageFile(pixels))
    command = ["denoise", tmp_path / "a.tif", "-o", tmp_path / "b.png", "--sigma", 25]
    options = ["--model", gray_model_file, "--data-range", 4095, "--depth", 8]
    assert main([str(part) for part in [*command, *options]]) == 0
    result = read_image(tmp_path / "b.png").pixels
    assert result.mean() == pytest.approx(pixels.mean() / 4095 * 255, rel=0.03)


def test_a_file_that_is_copied_loses_nothing_and_says_nothing(
    tmp_path: Path, capsys: Capture
) -> None:
    small = io.BytesIO()
    ramp = PIL.Image.fromarray(np.tile(np.arange(64, dtype=np.uint8), (64, 1)))
    ramp.convert("RGB").quantize(64).save(small, "png")
    (tmp_path / "a.png").write_bytes(small.getvalue())
    assert main(["denoise", str(tmp_path / "a.png"), "-o", str(tmp_path / "b.png")]) == 0
    assert (tmp_path / "b.png").read_bytes() == small.getvalue()
    assert "palette" not in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".npy", ".tif"])
def test_values_that_are_no_numbers_are_placed(
    tmp_path: Path, fails: Callable[..., str], suffix: str
) -> None:
    pages = [ImageFile(noisy_pixels(np.float32, seed=seed)) for seed in range(3)]
    pages[1].pixels[3, 4] = np.inf
    source = tmp_path / f"a{suffix}"
    images.write_pages(source, pages)
    said = fails("denoise", source, "-o", tmp_path / "b.tif", "--sigma", 25)
    assert f"{str(source)!r}, page 2 of 3: " in said
    images.write_image(source, pages[1])
    said = fails("denoise", source, "-o", tmp_path / "b.tif", "--sigma", 25)
    assert f"{str(source)!r}: " in said
    assert "page" not in said
