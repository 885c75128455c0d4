from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from messages import refused
from pictures import noisy_pixels

from nlnet.cli import main
from nlnet.errors import InputError
from nlnet.evaluation.comparison import compare, preview_figure
from nlnet.evaluation.metrics import psnr, ssim
from nlnet.files.findings import Findings, Outcome
from nlnet.images import ImageFile, read_image, write_image
from nlnet.noise import add_noise
from nlnet.plotting.figures import Panel, draw_panels

RED = np.array([220, 40, 40])


def red_frames(figure: ImageFile) -> int:
    """Count the pixels of frames."""
    return int((figure.pixels == RED).all(axis=-1).sum())


# Figures


@pytest.mark.parametrize("shape", [(1, 1), (5, 9), (64, 48), (300, 451, 3), (900, 200), (30, 2000)])
@pytest.mark.parametrize("count", [1, 3, 8])
def test_images_of_any_size_can_be_drawn(shape: tuple[int, ...], count: int) -> None:
    pixels = np.random.default_rng(0).uniform(0, 255, shape)
    figure = draw_panels([Panel(pixels, f"panel {n}", "a note") for n in range(count)])
    height, width, channels = figure.pixels.shape
    assert figure.pixels.dtype == np.uint8
    assert channels == 3
    assert count * 240 <= width <= 2100
    assert height <= 1400
    assert red_frames(figure) > 0


def test_the_detail_is_where_there_is_most_to_see() -> None:
    pixels = np.full((300, 400), 100.0)
    pixels[200:280, 300:390] += 80 * (np.indices((80, 90)).sum(axis=0) % 2)
    figure = draw_panels([Panel(pixels, "detail")])
    bottom = figure.pixels[-350:-100]  # the enlarged part
    assert (bottom == 180).all(axis=-1).mean() > 0.2


def test_a_detail_of_choice() -> None:
    pixels = np.zeros((300, 400))
    pixels[:20, :20] = 200
    shown = [
        int((draw_panels([Panel(pixels, "x")], centre).pixels == 200).all(axis=-1).sum())
        for centre in ((0, 0), (399, 299))
    ]
    assert shown[0] > 4 * shown[1]
    with refused(InputError, "400,0 lies outside of the image of 400x300"):
        draw_panels([Panel(pixels, "x")], (400, 0))


def test_names_of_all_kinds_fit() -> None:
    pixels = np.zeros((50, 50))
    for title in ("x" * 300, "<b>&amp;", "图像", "", "line\nbreak"):
        assert draw_panels([Panel(pixels, title)] * 2).pixels.shape[1] < 1300


def test_sizes_must_agree() -> None:
    with refused(InputError, "10x8 and 8x8 pixels"):
        draw_panels([Panel(np.zeros((8, 8)), "a"), Panel(np.zeros((8, 10)), "b")])


# Preview


def outcome(before: ImageFile, after: ImageFile) -> Outcome:
    return Outcome(before, after, Findings((25.0,), estimated=True, notes=()))


def test_what_was_removed_is_shown_around_gray() -> None:
    before = noisy_pixels(np.uint16)
    after = np.full_like(before, 30000)
    figure = preview_figure(outcome(ImageFile(before), ImageFile(after))).pixels
    removed = figure[20:200, -400:-50].astype(float)
    assert removed.mean() == pytest.approx(128, abs=25)
    assert removed.std() > 30
    unchanged = preview_figure(outcome(ImageFile(before), ImageFile(before))).pixels
    assert (unchanged[20:200, -400:-100] == 128).mean() > 0.9


@pytest.mark.parametrize("draw", ["preview", "compare"])
def test_dark_images_of_more_than_8_bits_are_not_drawn_black(draw: str) -> None:
    bright = noisy_pixels(np.uint8)
    pixels = {"bright": bright, "dark": bright.astype(np.uint16) * 4}  # of 65535

    def drawn(pixels: np.ndarray) -> np.ndarray:
        image = ImageFile(pixels)
        if draw == "preview":
            return preview_figure(outcome(image, image)).pixels
        return compare([image], [("same", [image])])[1].pixels

    # The upper half of the first panel, without its caption.
    shown = {name: drawn(values)[:400, :200].astype(float) for name, values in pixels.items()}
    for figure in shown.values():
        assert figure.std() > 20
    assert np.corrcoef(shown["bright"].ravel(), shown["dark"].ravel())[0, 1] > 0.95


def test_a_preview_is_upright(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.fromarray(np.zeros((40, 120), np.uint8)).save(tmp_path / "a.jpg", exif=exif)
    turned = read_image(tmp_path / "a.jpg")
    flat = dataclasses.replace(turned, metadata=None)
    assert preview_figure(outcome(turned, turned)).pixels.shape[0] > 800
    assert preview_figure(outcome(flat, flat)).pixels.shape[0] < 800


# Comparison


def test_figures_are_those_of_evaluation() -> None:
    clean = noisy_pixels(np.uint8, 3)
    noisy = add_noise(clean, 30)
    images = [("noisy", [ImageFile(noisy.astype(np.float32) / 255)]), ("same", [ImageFile(clean)])]
    (first, second), figure = compare([ImageFile(clean)], images)
    clipped = np.clip(noisy, 0, 255)
    assert first.psnr == pytest.approx(psnr(clean, clipped), abs=1e-4)
    assert first.ssim == pytest.approx(ssim(clean, clipped), abs=1e-5)
    assert second.psnr == float("inf")
    assert figure.pixels.shape[1] > 3 * 240


@pytest.mark.parametrize("other", [np.zeros((24, 31), np.uint8), np.zeros((24, 32, 3), np.uint8)])
def test_images_to_compare_must_be_alike(other: np.ndarray) -> None:
    with refused(InputError, "'b'", "clean image", "32x24 pixels in gray"):
        compare([ImageFile(noisy_pixels(np.uint8))], [("b", [ImageFile(other)])])


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean, noisy, figure = (tmp_path / name for name in ("clean.png", "noisy.tif", "fig.png"))
    write_image(clean, ImageFile(noisy_pixels(np.uint8)))
    options = ["--sigma", "25", "--seed", "3"]
    assert main(["add-noise", str(clean), "-o", str(noisy), *options]) == 0
    files = [str(clean), str(noisy), str(clean)]
    assert main(["compare", *files, "-o", str(figure), "--crop", "3,20"]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["image", "PSNR", "SSIM"]
    expected = psnr(read_image(clean).pixels, read_image(noisy).pixels)
    assert first.split()[:2] == ["noisy.tif", f"{expected:.3f}"]
    assert second.split()[:2] == ["clean.png", "inf"]
    assert read_image(figure).pixels.shape[2] == 3


def test_bad_comparisons(tmp_path: Path, fails: Callable[..., str]) -> None:
    clean = tmp_path / "clean.png"
    write_image(clean, ImageFile(noisy_pixels(np.uint8)))
    before = clean.read_bytes()
    assert "required" in fails("compare", clean, "-o", tmp_path / "fig.png")
    assert "is the input itself" in fails("compare", clean, clean, "-o", clean, "--overwrite")
    assert "'.png'" in fails("compare", clean, clean, "-o", tmp_path / "fig.jpg")
    point = ["-o", tmp_path / "fig.png", "--crop"]
    assert "two whole numbers" in fails("compare", clean, clean, *point, "7")
    assert "lies outside" in fails("compare", clean, clean, *point, "7,99")
    assert clean.read_bytes() == before
    assert not (tmp_path / "fig.png").exists()


def test_two_files_of_one_name_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("a/in", "b/in", "c"):
        (tmp_path / folder).mkdir(parents=True)
        write_image(tmp_path / folder / "x.png", ImageFile(noisy_pixels(np.uint8)))
    files = [str(tmp_path / folder / "x.png") for folder in ("c", "a/in", "b/in", "c")]
    assert main(["compare", *files, "-o", str(tmp_path / "figure.png")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["image", "a/in/x.png", "b/in/x.png", "c/x.png"]


def test_stacks_are_measured_page_by_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: Callable[..., str]
) -> None:
    clean = np.stack([noisy_pixels(np.float32, seed=seed) for seed in range(3)])
    noisy = np.stack([add_noise(page, 0.01 * (n + 1), n) for n, page in enumerate(clean)])
    for name, stack in {
        "clean": clean,
        "noisy": noisy.astype(np.float32),
        "two": clean[:2],
    }.items():
        np.save(tmp_path / f"{name}.npy", stack)
    files = [str(tmp_path / f"{name}.npy") for name in ("clean", "noisy")]
    figures = [tmp_path / f"{page}.png" for page in (1, 3)]
    for page, figure in zip((1, 3), figures, strict=True):
        assert main(["compare", *files, "-o", str(figure), "--page", str(page)]) == 0
    assert figures[0].read_bytes() != figures[1].read_bytes()
    said = capsys.readouterr().out.splitlines()
    pairs = zip(clean, np.clip(noisy, 0, 1), strict=True)
    expected = np.mean([psnr(*pair, data_range=1) for pair in pairs])
    assert float(said[1].split()[1]) == pytest.approx(expected, abs=2e-3)
    assert said[2] == "These are means over 3 pages; the figure shows page 1."
    output = ["-o", tmp_path / "bad.png"]
    two = tmp_path / "two.npy"
    assert "has 2 pages, but the clean image 3 pages" in fails("compare", files[0], two, *output)
    told = fails("compare", *files, *output, "--page", 4)
    assert "--page is 4, but 'clean.npy' has 3 pages." in told


@pytest.mark.parametrize("command", ["compare", "add-noise"])
def test_values_far_from_white_are_no_silent_nonsense(
    tmp_path: Path, fails: Callable[..., str], command: str
) -> None:
    source = tmp_path / "counts.npy"
    np.save(source, np.linspace(-2, 900, 400).reshape(20, 20))
    output = tmp_path / ("out.npy" if command == "add-noise" else "out.png")
    rest = ["--sigma", 25] if command == "add-noise" else [source]
    message = fails(command, source, *rest, "-o", output)
    assert "counts.npy' has values from -2 to 900, but white is taken to be 1;" in message
    assert "--data-range" in message
    words = [command, source, *rest, "-o", output, "--data-range", 900]
    assert main([*map(str, words)]) == 0


@pytest.mark.parametrize("options", [[], ["--data-range", "4000"]])
def test_signed_values_are_compared_on_the_scale_of_the_clean_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """Nothing is cut off at 0, and noise does not make the range larger."""
    clean = np.linspace(-1000, 3000, 24 * 32).reshape(24, 32).round().astype(np.int16)
    change = np.where(np.indices(clean.shape).sum(axis=0) % 2, 40, -40)
    inside = np.clip(clean + change, -1000, 3000).astype(np.int16)
    inside[0, 0] = 3000
    for name, pixels in (("clean.tif", clean), ("noisy.tif", inside)):
        write_image(tmp_path / name, ImageFile(pixels))
    files = [str(tmp_path / name) for name in ("clean.tif", "noisy.tif")]
    assert main(["compare", *files, "-o", str(tmp_path / "out.png"), *options]) == 0
    error = np.mean((inside.astype(float) - clean) ** 2)
    expected = 10 * np.log10(4000**2 / error)
    shown = float(capsys.readouterr().out.splitlines()[1].split()[1])
    assert shown == pytest.approx(expected, abs=1e-3)


# Noise


@pytest.mark.parametrize(
    ("dtype", "options", "unit", "white"),
    [
        (np.uint8, [], 1, 255),
        (np.uint16, [], 257, 65535),
        (np.uint16, ["--data-range", "4095"], 4095 / 255, 4095),
        (np.float32, [], 1 / 255, None),
    ],
)
def test_noise_is_that_of_the_protocol(
    tmp_path: Path, dtype: Any, options: list[str], unit: float, white: float | None
) -> None:
    clean = np.linspace(0, white or 1, 24 * 32).reshape(24, 32).astype(dtype)
    write_image(tmp_path / "in.tif", ImageFile(clean, np.flipud(clean)))
    files = ["add-noise", str(tmp_path / "in.tif"), "-o", str(tmp_path / "out.tif")]
    assert main([*files, "--sigma", "40", "--seed", "7", *options]) == 0
    expected = add_noise(clean, 40 * unit, seed=7)
    if white is not None:
        expected = np.rint(np.clip(expected, 0, white))
    result = read_image(tmp_path / "out.tif")
    np.testing.assert_allclose(result.pixels, expected, rtol=1e-6)
    np.testing.assert_array_equal(result.alpha, np.flipud(clean))


@pytest.mark.parametrize(
    ("dtype", "low", "high", "options"),
    [
        (np.int16, -1000, 3000, []),
        (np.int16, -32768, 32767, []),
        (np.int16, -1000, 3000, ["--data-range", "4000"]),
        (np.int32, -(2**31), 2**31 - 1, []),
        (np.uint32, 1000, 1500, []),
    ],
)
def test_noise_on_integers_without_a_range_of_their_own(
    tmp_path: Path, dtype: Any, low: int, high: int, options: list[str]
) -> None:
    """Rounded, not cut off; and what would not fit into the dtype is its nearest limit."""
    clean = np.linspace(low, high, 24 * 32).reshape(24, 32).astype(dtype)
    write_image(tmp_path / "in.tif", ImageFile(clean))
    files = ["add-noise", str(tmp_path / "in.tif"), "-o", str(tmp_path / "out.tif")]
    assert main([*files, "--sigma", "40", *options]) == 0
    unit = (float(options[1]) if options else high - low) / 255
    limits = np.iinfo(dtype)
    expected = np.clip(np.rint(add_noise(clean, 40 * unit)), limits.min, limits.max)
    result = read_image(tmp_path / "out.tif").pixels
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, expected)


def test_noise_of_a_stack_and_bad_calls(tmp_path: Path, fails: Callable[..., str]) -> None:
    np.save(tmp_path / "in.npy", np.zeros((2, 16, 16)))
    files = [tmp_path / "in.npy", "-o", tmp_path / "out.npy"]
    assert main(["add-noise", *map(str, files), "--sigma", "255", "--seed", "5"]) == 0
    expected = np.stack([add_noise(np.zeros((16, 16)), 1, seed) for seed in (5, 6)])
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected)
    assert "required" in fails("add-noise", *files)
    assert "'auto' must be a number" in fails("add-noise", *files, "--sigma", "auto")
    assert "--overwrite" in fails("add-noise", *files, "--sigma", 5)
    png = [files[0], "-o", tmp_path / "out.png", "--sigma", 5]
    assert "PNG cannot hold float64 values; write TIFF or npy" in fails("add-noise", *png)
