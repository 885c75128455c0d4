from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pictures import random_image

import nlnet
import nlnet.files.one_file
from nlnet.cli import main
from nlnet.images import ImageFile, read_image, write_image


def test_denoise_writes_what_python_gives(
    noisy_file: Path, gray_model_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.png"
    arguments = ["denoise", noisy_file, "-o", out, "--sigma", "25", "--model", gray_model_file]
    assert main(list(map(str, arguments))) == 0
    expected = nlnet.denoise(random_image(), 25, model=gray_model_file)
    np.testing.assert_array_equal(read_image(out).pixels, expected)


def test_denoise_keeps_depth_and_alpha(color_model_file: Path, tmp_path: Path) -> None:
    pixels, alpha = random_image((20, 24, 3), np.uint16), random_image((20, 24), np.uint16)
    write_image(tmp_path / "in.png", ImageFile(pixels, alpha))
    arguments = ["denoise", tmp_path / "in.png", "-o", tmp_path / "out.tif", "--sigma", "25"]
    assert main([*map(str, arguments), "--model", str(color_model_file)]) == 0
    result = read_image(tmp_path / "out.tif")
    expected = nlnet.denoise(pixels, 25 * 65535 / 255, model=color_model_file)
    np.testing.assert_array_equal(result.pixels, expected)
    np.testing.assert_array_equal(result.alpha, alpha)


def test_an_existing_output_is_kept_unless_told(
    noisy_file: Path, gray_model_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    out = tmp_path / "out.png"
    out.write_bytes(b"precious")
    arguments = ["denoise", noisy_file, "-o", out, "--sigma", "25", "--model", gray_model_file]
    assert "--overwrite" in fails(*arguments)
    assert out.read_bytes() == b"precious"
    assert main([*map(str, arguments), "--overwrite"]) == 0
    assert read_image(out).pixels.shape == (20, 24)


@pytest.mark.parametrize("link", ["same", "dotted", "symlink", "hardlink"])
def test_the_input_is_never_the_output(
    noisy_file: Path,
    gray_model_file: Path,
    tmp_path: Path,
    fails: Callable[..., str],
    link: str,
) -> None:
    out = tmp_path / "other.png"
    if link == "same":
        out = noisy_file
    elif link == "dotted":
        out = tmp_path / ".." / tmp_path.name / noisy_file.name
    elif link == "symlink":
        out.symlink_to(noisy_file)
    else:
        out.hardlink_to(noisy_file)
    before = noisy_file.read_bytes()
    options = ["--sigma", 25, "--model", gray_model_file, "--overwrite"]
    assert "is the input" in fails("denoise", noisy_file, "-o", out, *options)
    assert noisy_file.read_bytes() == before


BAD_FILES = {
    "missing.png": None,
    "empty.png": b"",
    "text.png": b"this is no image",
    "cut.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_unreadable_images(
    tmp_path: Path, gray_model_file: Path, fails: Callable[..., str], name: str
) -> None:
    content = BAD_FILES[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = set(tmp_path.iterdir())
    options = ["-o", tmp_path / "out.png", "--sigma", 25, "--model", gray_model_file]
    assert name in fails("denoise", tmp_path / name, *options)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("sigma", ["0", "-1", "nan", "inf", "256", "abc", ""])
@pytest.mark.parametrize("command", ["denoise", "evaluate"])
def test_bad_sigma(
    noisy_file: Path, tmp_path: Path, fails: Callable[..., str], sigma: str, command: str
) -> None:
    target = [noisy_file, "-o", tmp_path / "out.png"] if command == "denoise" else [tmp_path]
    message = fails(command, *target, f"--sigma={sigma}", "--model", "gray-5x5")
    assert f"{sigma!r} must be a number above 0 and at most 255" in message
    assert not (tmp_path / "out.png").exists()


def test_bad_outputs_are_found_before_the_work(
    noisy_file: Path,
    tmp_path: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def work(*arguments: object, **options: object) -> None:
        pytest.fail("the work began")

    monkeypatch.setattr(nlnet.files.one_file, "denoise_pages", work)
    deep = tmp_path / "deep.png"
    write_image(deep, ImageFile(random_image(dtype=np.uint16)))
    before = set(tmp_path.iterdir())
    for source, out, message in [
        (noisy_file, tmp_path / "missing" / "out.png", "does not exist"),
        (noisy_file, noisy_file / "out.png", "does not exist"),
        (noisy_file, tmp_path / "out.jp2", "suffix '.jp2'"),
        (noisy_file, tmp_path / "out", "suffix ''"),
        (deep, tmp_path / "out.jpg", "JPEG cannot hold uint16"),
    ]:
        options = ["--sigma", 25, "--overwrite"]
        assert message in fails("denoise", source, "-o", out, *options)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_replaced(
    noisy_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    out = tmp_path / "pipe.png"
    os.mkfifo(out)
    options = ["-o", out, "--sigma", 25, "--overwrite"]
    assert "not a plain file" in fails("denoise", noisy_file, *options)
    assert out.is_fifo()


def test_a_folder_that_cannot_be_written(
    noisy_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):  # root may write anywhere but into the kernel's own folders
        folder = Path("/proc/self")
        if not folder.is_dir():
            pytest.skip("no folder that root cannot write")
    message = fails("denoise", noisy_file, "-o", folder / "out.png", "--sigma", 25)
    assert "cannot be written" in message


def test_a_model_for_the_other_number_of_channels(
    noisy_file: Path, color_model_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    options = ["-o", tmp_path / "out.png", "--sigma", 25, "--model"]
    assert "color" in fails("denoise", noisy_file, *options, color_model_file)
    assert "gray-9x9" in fails("denoise", noisy_file, *options, "gray-9x9")
    assert not (tmp_path / "out.png").exists()


def test_an_image_smaller_than_the_patch(
    gray_model_file: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    write_image(tmp_path / "tiny.png", ImageFile(random_image((4, 9))))
    options = ["-o", tmp_path / "out.png", "--sigma", 25, "--model", gray_model_file]
    assert "9x4 pixels" in fails("denoise", tmp_path / "tiny.png", *options)
    assert not (tmp_path / "out.png").exists()


@pytest.mark.parametrize("threads", ["0", "-2", "two", "1.5"])
def test_bad_threads(
    noisy_file: Path, tmp_path: Path, fails: Callable[..., str], threads: str
) -> None:
    options = ["-o", tmp_path / "out.png", "--sigma", 25, f"--threads={threads}"]
    assert "must be a whole number" in fails("denoise", noisy_file, *options)


def test_ctrl_c_is_one_line(
    noisy_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(nlnet.files.one_file, "denoise_pages", interrupt)
    arguments = ["denoise", noisy_file, "-o", tmp_path / "out.png", "--sigma", "25"]
    assert main(list(map(str, arguments))) == 130
    assert capsys.readouterr().err == "nlnet: interrupted\n"
    assert not (tmp_path / "out.png").exists()


WALK = """
import sys
from collections import Counter
seen = Counter()
def watch(event, arguments):
    if event in ("open", "os.scandir", "os.listdir"):
        seen[str(arguments[0])] += 1
sys.addaudithook(watch)
from nlnet.cli import main
main(["denoise", "in.png", "-o", "out.png"])
weights = [count for path, count in seen.items() if path.endswith("weights")]
print(seen["in.png"], *weights)
"""


def test_a_file_is_opened_and_the_weights_are_listed_once(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(0, 20, (96, 96))
    write_image(tmp_path / "in.png", ImageFile((128 + noise).astype(np.uint8)))
    done = subprocess.run(
        [sys.executable, "-c", WALK], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    opened, listed = map(int, done.stdout.split()[-2:])
    assert opened <= 2
    assert listed == 1
