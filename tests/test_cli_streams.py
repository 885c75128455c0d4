"""``nlnet denoise`` in pipes and scripts: standard input and output, and lines of JSON."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import noisy_pixels

from nlnet.cli import main
from nlnet.images import ImageFile, read_image, read_pages, write_image, write_pages

GivenInput = Callable[[bytes], None]


@pytest.fixture
def given_input(monkeypatch: pytest.MonkeyPatch) -> GivenInput:
    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


@pytest.fixture
def options(gray_model_file: Path) -> list[str]:
    return ["--sigma", "25", "--model", str(gray_model_file)]


@pytest.mark.parametrize(("piped_in", "piped_out"), [(True, True), (True, False), (False, True)])
def test_pipes_do_what_files_do(
    noisy_file: Path,
    given_input: GivenInput,
    options: list[str],
    capfdbinary: pytest.CaptureFixture[bytes],
    piped_in: bool,
    piped_out: bool,
) -> None:
    wanted, out = noisy_file.with_name("wanted.png"), noisy_file.with_name("out.png")
    assert main(["denoise", str(noisy_file), "-o", str(wanted), *options]) == 0
    given_input(noisy_file.read_bytes())
    capfdbinary.readouterr()
    files = ["-" if piped_in else str(noisy_file), "-o", "-" if piped_out else str(out)]
    assert main(["denoise", *files, *options]) == 0
    result = capfdbinary.readouterr().out if piped_out else out.read_bytes()
    assert result == wanted.read_bytes()


def test_the_format_is_that_of_the_input_or_as_asked(
    tmp_path: Path,
    given_input: GivenInput,
    options: list[str],
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    pages = [ImageFile(noisy_pixels(np.uint8, seed=seed), leading=(3,)) for seed in range(3)]
    write_pages(tmp_path / "stack.tif", pages)
    given_input((tmp_path / "stack.tif").read_bytes())
    assert main(["denoise", "-", "-o", "-", *options]) == 0
    (tmp_path / "result.tif").write_bytes(capfdbinary.readouterr().out)
    assert len(read_pages(tmp_path / "result.tif")) == 3
    write_image(tmp_path / "one.png", pages[0])
    assert main(["denoise", str(tmp_path / "one.png"), "-o", "-", "--format", "npy", *options]) == 0
    result = capfdbinary.readouterr().out
    assert np.load(io.BytesIO(result)).shape == pages[0].pixels.shape


@pytest.mark.parametrize(
    ("data", "words", "message"),
    [
        (b"", ["-o", "-"], "Cannot read 'standard input': the file is empty"),
        (b"junk", ["-o", "out.png"], "Cannot read 'standard input': it is none of PNG"),
        (b"junk", ["-o", "-"], "Cannot read 'standard input': it is none of PNG"),
        (b"junk", ["-", "-o", "out.png"], "stands for one image, but there are 2 inputs"),
        (b"junk", ["-o", "-", "--format", "gifs"], "--format is 'gifs', but must be one of png"),
        (b"junk", ["-o", "out.png", "--format", "png"], "--format is for standard output"),
        (b"junk", ["-o", "-", "--scheduler", "tcp://a:1"], "--scheduler is for files"),
    ],
)
def test_bad_calls(
    given_input: GivenInput,
    fails: Callable[..., str],
    data: bytes,
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    given_input(data)
    assert message in fails("denoise", "-", *words)
    assert not list(tmp_path.iterdir())


def test_terminals_are_no_images(
    noisy_file: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", Terminal())
        assert "Standard input is no image" in fails("denoise", "-", "-o", "out.png")
        patch.setattr(sys, "stdin", None)
        assert "Standard input is no image" in fails("denoise", "-", "-o", "out.png")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(["denoise", str(noisy_file), "-o", "-"]) == 2
    assert screen.getvalue() == ""


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_of_one_file(
    noisy_file: Path, given_input: GivenInput, options: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    out = noisy_file.with_name("out.png")
    assert main(["denoise", str(noisy_file), "-o", str(out), "--json", *options]) == 0
    (line,) = lines(capfd.readouterr().out)
    assert line == {
        "status": "written",
        "source": str(noisy_file),
        "target": str(out),
        "sigmas": [25.0],
        "estimated": False,
        "notes": [],
        "noise": ["white noise, sigma 25"],
    }
    assert main(["denoise", str(noisy_file), "-o", "-", "--format", "pgm", "--json", *options]) == 0
    captured = capfd.readouterr()
    assert captured.out.startswith("P5")
    assert lines(captured.err)[-1]["target"] == "-"


def test_json_of_a_folder(
    tmp_path: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    out.mkdir()
    for name in ("a.png", "b.png", "there.png"):
        write_image(source / name, ImageFile(noisy_pixels(np.uint8)))
    (source / "bad.png").write_bytes(b"junk")
    (source / "photo.psd").touch()
    (out / "there.png").touch()
    assert main(["denoise", str(source), "-o", str(out), "--json", *options]) == 1
    captured = capsys.readouterr()
    told = {os.path.basename(line["source"]): line for line in lines(captured.out)}
    assert {name: line["status"] for name, line in told.items()} == {
        "a.png": "written",
        "b.png": "written",
        "there.png": "exists",
        "bad.png": "failed",
        "photo.psd": "left out",
    }
    assert "none of PNG" in told["bad.png"]["error"]
    assert told["photo.psd"]["reason"].startswith("images of formats that are not read")
    assert told["a.png"]["target"] == str(out / "a.png")
    assert read_image(out / "a.png").pixels.shape == (24, 32)
    assert "not denoised" in captured.err
