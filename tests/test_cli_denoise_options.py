from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from pictures import noisy_pixels, random_image

import nlnet
import nlnet.denoising.page
from nlnet.cli import main
from nlnet.denoising.network import Network
from nlnet.denoising.plan import Plan
from nlnet.images import ImageFile, read_image, write_image, write_pages


@dataclasses.dataclass
class Asked:
    """What `denoise` was asked for."""

    noise: nlnet.Noise
    data_range: float | None
    strength: object
    network: Network


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    calls: list[Asked] = []

    def record(
        planes: np.ndarray, plan: Plan, network: Network, *_: object, **__: object
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        if plan.idle:
            return planes.copy(), ()
        calls.append(Asked(plan.noise, plan.white, network.strength, network))
        return planes // 2 if planes.dtype.kind == "u" else planes / 2, ("model",)

    monkeypatch.setattr(nlnet.denoising.page, "denoise_planes", record)
    return calls


@pytest.mark.parametrize(
    ("dtype", "options", "sigma", "data_range"),
    [
        (np.uint8, (), 25, 255),
        (np.uint16, (), 25 * 257, 65535),
        (np.uint16, ("--data-range", 65000), 25 * 65000 / 255, 65000),
        (np.float32, (), 25 / 255, 1),
        (np.float32, ("--data-range", "1e4"), 25 * 1e4 / 255, 1e4),
    ],
)
def test_sigma_is_on_the_8_bit_scale(
    tmp_path: Path,
    asked: list[Asked],
    dtype: type,
    options: tuple[object, ...],
    sigma: float,
    data_range: float | None,
) -> None:
    write_image(tmp_path / "in.tif", ImageFile(noisy_pixels(dtype)))
    arguments = ["denoise", tmp_path / "in.tif", "-o", tmp_path / "out.tif", "--sigma", "25"]
    assert main(list(map(str, [*arguments, *options]))) == 0
    (call,) = asked
    assert call.noise.kind == "white"
    assert call.noise.sigma == pytest.approx(sigma)
    assert call.data_range == data_range


def test_options_reach_the_work(
    noisy_file: Path, gray_model_file: Path, tmp_path: Path, asked: list[Asked]
) -> None:
    files = ["denoise", str(noisy_file), "-o", str(tmp_path / "out.png"), "--sigma", "25"]
    options = ["--max-memory", "1.5G", "--threads", "3", "--model", str(gray_model_file)]
    assert main([*files, *options]) == 0
    network = asked[0].network
    assert (network.max_memory, network.threads, network.device) == (3 * 2**29, 3, "cpu")
    assert network.choose(25.0).name == "small-1"


@pytest.mark.parametrize("arguments", [[], ["--sigma", "auto"]])
def test_sigma_is_estimated_and_said(
    tmp_path: Path,
    asked: list[Asked],
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
) -> None:
    pixels = np.random.default_rng(0).normal(30000, 2570, (100, 100)).astype(np.uint16)
    write_image(tmp_path / "in.png", ImageFile(pixels))
    files = ["denoise", str(tmp_path / "in.png"), "-o", str(tmp_path / "out.png")]
    assert main([*files, *arguments]) == 0
    sigma = nlnet.estimate_sigma(pixels)
    assert asked[0].noise.sigma == sigma
    told = capsys.readouterr().out
    assert told == f"{tmp_path / 'in.png'}: found white noise, sigma {sigma / 257:.3g}\n"


def test_data_of_fewer_bits_needs_no_data_range(tmp_path: Path) -> None:
    clean = np.tile(np.linspace(600, 3800, 96), (80, 1))
    noisy = clean + np.random.default_rng(0).normal(0, 100, clean.shape)
    write_image(tmp_path / "in.tif", ImageFile(noisy.astype(np.uint16)))
    for number, options in enumerate(([], ["--data-range", "4095"])):
        files = ["denoise", str(tmp_path / "in.tif"), "-o", str(tmp_path / f"{number}.tif")]
        assert main([*files, *options]) == 0
    first, second = (read_image(tmp_path / f"{number}.tif").pixels for number in (0, 1))
    assert np.abs(first.astype(int) - second).max() <= 1
    assert np.std(first - clean) < 25


def test_an_image_without_noise_is_copied(
    tmp_path: Path, asked: list[Asked], capsys: pytest.CaptureFixture[str]
) -> None:
    ramp = np.tile(np.arange(64, dtype=np.uint8), (64, 1))
    write_image(tmp_path / "in.jpg", ImageFile(ramp))
    for out in ("out.jpg", "out.png"):
        assert main(["denoise", str(tmp_path / "in.jpg"), "-o", str(tmp_path / out)]) == 0
        told = capsys.readouterr().out
        assert "found no noise worth removing" in told
        assert "left as it is" in told
    assert asked == []
    assert (tmp_path / "out.jpg").read_bytes() == (tmp_path / "in.jpg").read_bytes()
    before, after = (read_image(tmp_path / name).pixels for name in ("in.jpg", "out.png"))
    np.testing.assert_array_equal(after, before)


def test_estimates_of_a_stack(
    tmp_path: Path, asked: list[Asked], capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    ramp = np.linspace(0.3, 0.7, 99)
    stack = np.stack([rng.normal(ramp, sigma / 255, (99, 99)) for sigma in (0.1, 10, 20)])
    np.save(tmp_path / "in.npy", stack)
    files = ["denoise", str(tmp_path / "in.npy"), "-o", str(tmp_path / "out.npy")]
    assert main([*files, "--per-page"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"found noise of 0\.00 to (19|20)\.\d+", told)
    assert "1 of 3 pages left as it is" in told
    sigmas = [(call.noise.sigma or 0) * 255 for call in asked]
    assert sigmas == pytest.approx([10, 20], rel=0.1)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy")[0], stack[0])


@pytest.mark.parametrize(("text", "strength"), [("0", 0.0), ("0.25", 0.25), ("0.5,1", (0.5, 1.0))])
def test_strength_reaches_the_work(
    tmp_path: Path, asked: list[Asked], text: str, strength: object
) -> None:
    """Of a pair, a gray image takes the strength of luma."""
    write_image(tmp_path / "color.png", ImageFile(random_image((20, 24, 3))))
    write_image(tmp_path / "gray.png", ImageFile(random_image((20, 24))))
    for name in ("color", "gray"):
        files = ["denoise", str(tmp_path / f"{name}.png"), "-o", str(tmp_path / f"{name}-out.png")]
        assert main([*files, "--sigma", "25", "--strength", text]) == 0
    gray = strength[0] if isinstance(strength, tuple) else strength
    pairs = [each if isinstance(each, tuple) else (each, each) for each in (strength, gray)]
    assert [call.strength for call in asked] == pairs


def test_kinds_of_noise(
    tmp_path: Path,
    asked: list[Asked],
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    source, record = tmp_path / "in.png", tmp_path / "noise.json"
    ramp = np.linspace(50, 200, 160) + np.random.default_rng(0).normal(0, 20, (160, 160))
    write_image(source, ImageFile(ramp.clip(0, 255).astype(np.uint8)))
    record.write_text(nlnet.Noise.poisson(2.0, 3.0).to_json())
    for number, noise in enumerate(("white", "camera", record)):
        files = ["denoise", str(source), "-o", str(tmp_path / f"{number}.png")]
        assert main([*files, "--noise", str(noise)]) == 0
    assert [call.noise.kind for call in asked] == ["white", "camera", "poisson"]
    assert asked[2].noise == nlnet.Noise.poisson(2.0, 3.0)
    capsys.readouterr()
    out = ["-o", tmp_path / "out.png"]
    assert "but must be auto, white" in fails("denoise", source, *out, "--noise", "grain")
    assert "not a text file" in fails("denoise", source, *out, "--noise", source)
    told = fails("denoise", source, *out, "--noise", "poisson", "--sigma", "9")
    assert "sigma is given for poisson noise" in told


def test_conversions_are_said(
    tmp_path: Path, asked: list[Asked], capsys: pytest.CaptureFixture[str]
) -> None:
    exif = PIL.Image.Exif()
    exif[0x010F] = "Maker"
    colors = PIL.Image.fromarray(random_image((20, 24, 3))).convert("P")
    colors.save(tmp_path / "in.png", exif=exif)
    source, target = str(tmp_path / "in.png"), str(tmp_path / "out.ppm")
    assert main(["denoise", source, "-o", target, "--sigma", "9"]) == 0
    told = capsys.readouterr().out
    assert "its palette of colors becomes RGB" in told
    assert "PPM has no place for EXIF: left out" in told


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--strength=3"], "'3' must be a number from 0 to 2"),
        (["--strength=x"], "from 0 to 2"),
        (["--data-range=0"], "'0' must be a number above 0"),
        (["--data-range=inf"], "above 0"),
        (["--max-memory=lots"], "'lots' must be a number of bytes, such as 500M or 2G"),
        (["--max-memory=0"], "number of bytes"),
        (["--max-pixels=0"], "at least 1"),
        (["--workers=0"], "at least 1"),
        (["--device=gpu"], "device is 'gpu', but must be one of cpu, cuda, mps"),
        (["--model=best"], "Unknown model 'best'; the shipped ones are"),
        (["--preview=look.jpg"], "must have the suffix '.png'"),
        (["--preview=out.png"], "both"),
    ],
)
def test_bad_options(
    noisy_file: Path,
    tmp_path: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in fails("denoise", noisy_file, "-o", "out.png", "--sigma=25", *options)
    assert not (tmp_path / "out.png").exists()


def test_too_many_pixels(noisy_file: Path, tmp_path: Path, fails: Callable[..., str]) -> None:
    write_image(tmp_path / "big.png", ImageFile(np.zeros((1001, 1000), np.uint8)))
    options = ["-o", tmp_path / "out.png", "--sigma", 25, "--max-pixels", 1]
    assert "1000x1001 pixels" in fails("denoise", tmp_path / "big.png", *options)


def test_preview(noisy_file: Path, gray_model_file: Path, tmp_path: Path) -> None:
    look = tmp_path / "look.png"
    options = ["--sigma", "25", "--model", str(gray_model_file), "--preview", str(look)]
    assert main(["denoise", str(noisy_file), "-o", str(tmp_path / "out.png"), *options]) == 0
    _, width, channels = read_image(look).pixels.shape
    assert channels == 3
    assert width > 3 * 240


def test_noise_of_all_pages_or_per_page(
    asked: list[Asked],
    tmp_path: Path,
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    generator = np.random.default_rng(3)
    pages = [
        ImageFile(
            (np.linspace(60, 200, 90) + generator.normal(0, sigma, (80, 90))).astype(np.float32)
        )
        for sigma in (4.0, 8.0, 12.0)
    ]
    source = tmp_path / "stack.tif"
    write_pages(source, pages)
    command = ["denoise", str(source), "-o", str(tmp_path / "out.tif"), "--data-range", "255"]
    assert main([*command, "--per-page"]) == 0
    assert [call.noise.sigma for call in asked] == pytest.approx([4, 8, 12], rel=0.1)
    asked.clear()
    assert main([*command, "--overwrite"]) == 0
    (first,) = {call.noise.sigma for call in asked}
    assert len(asked) == 3
    assert first is not None
    assert 5 < first < 10
    assert "found white noise" in capsys.readouterr().out.splitlines()[-1]
    assert "cannot be estimated per page" in fails(*command, "--per-page", "--sigma", 5)


def test_a_page_that_spoils_the_estimate_of_a_stack_is_named(
    tmp_path: Path, fails: Callable[..., str]
) -> None:
    pages = [noisy_pixels(np.float32) for _ in range(3)]
    pages[2][3, 4] = np.inf
    np.save(tmp_path / "stack.npy", np.stack(pages))
    told = fails("denoise", tmp_path / "stack.npy", "-o", tmp_path / "out.npy")
    assert "stack.npy', page 3 of 3: " in told
    assert "infinite" in told
