from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from messages import refused

import nlnet
from nlnet.errors import FileError, InputError, ModelError
from nlnet.evaluation.datasets import bsd68_ids, checkout_commit, list_images, luma, read_ids
from nlnet.evaluation.metrics import psnr, ssim
from nlnet.evaluation.protocol import Evaluation, Score, evaluate_folder
from nlnet.images import ImageFile, write_image
from nlnet.model.model import Model

pytestmark = pytest.mark.numerical

NAMES = ("b.png", "B.png", "a10.png", "a9.png")
SORTED_NAMES = ["B.png", "a10.png", "a9.png", "b.png"]


def random_image(index: int, shape: tuple[int, ...] = (20, 24)) -> np.ndarray:
    return np.random.default_rng(100 + index).integers(0, 256, shape).astype(np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "images"
    path.mkdir()
    for index, name in enumerate(NAMES):
        write_image(path / name, ImageFile(random_image(index)))
    (path / "notes.txt").write_text("not an image")
    return path


def test_the_protocol_spelled_out(folder: Path, gray_model: Model) -> None:
    result = evaluate_folder(folder, gray_model, 25, seed=3)
    assert list(result.images) == SORTED_NAMES
    for i, name in enumerate(SORTED_NAMES):
        clean = random_image(NAMES.index(name))
        noisy = clean + 25 * np.random.default_rng(3 + i).standard_normal(clean.shape)
        estimate = nlnet.denoise(noisy, 25, model=gray_model, data_range=255)
        assert result.images[name].psnr == pytest.approx(psnr(clean, estimate), abs=1e-3)
        assert result.images[name].ssim == pytest.approx(ssim(clean, estimate), abs=1e-4)
        assert result.images[name].seconds > 0


def test_ids_select_before_the_noise_is_counted(folder: Path, gray_model: Model) -> None:
    some = evaluate_folder(folder, gray_model, 25, ids={"a10", "b"})
    assert list(some.images) == ["a10.png", "b.png"]
    shutil.copy(folder / "a10.png", folder.parent / "a10.png")
    alone = evaluate_folder(folder.parent, gray_model, 25)
    assert alone.images["a10.png"].psnr == some.images["a10.png"].psnr


def test_mean_and_json() -> None:
    scores = {"a.png": Score(30.0, 0.5, 1.0), "b.png": Score(20.0, 0.7, 3.0)}
    evaluation = Evaluation("some-model", 25.0, 0, None, scores)
    assert json.loads(json.dumps(evaluation.to_json())) == {
        "model": "some-model",
        "sigma": 25.0,
        "seed": 0,
        "commit": None,
        "mean": {"psnr": 25.0, "ssim": pytest.approx(0.6), "seconds": 2.0},
        "images": [
            {"name": "a.png", "psnr": 30.0, "ssim": 0.5, "seconds": 1.0},
            {"name": "b.png", "psnr": 20.0, "ssim": 0.7, "seconds": 3.0},
        ],
    }


def test_report_is_called_for_every_image(folder: Path, gray_model: Model) -> None:
    seen: list[str] = []
    evaluate_folder(folder, gray_model, 25, report=lambda name, score: seen.append(name))
    assert seen == SORTED_NAMES


def test_luma_is_that_of_pillow() -> None:
    rgb = random_image(0, (64, 64, 3))
    rgb[0, 0], rgb[0, 1] = 255, 0
    expected = np.asarray(PIL.Image.fromarray(rgb).convert("L"))
    assert luma(rgb).dtype == np.uint8
    np.testing.assert_array_equal(luma(rgb), expected)


def test_gray_models_read_color_files_as_luma(tmp_path: Path, gray_model: Model) -> None:
    rgb = random_image(0, (20, 24, 3))
    for name, pixels in (("color", rgb), ("gray", luma(rgb))):
        (tmp_path / name).mkdir()
        write_image(tmp_path / name / "a.png", ImageFile(pixels))
    color = evaluate_folder(tmp_path / "color", gray_model, 25)
    gray = evaluate_folder(tmp_path / "gray", gray_model, 25)
    assert color.images["a.png"].psnr == gray.images["a.png"].psnr


def test_color_models_need_color_files(folder: Path, color_model: Model) -> None:
    with refused(ModelError, "B.png'", "grayscale"):
        evaluate_folder(folder, color_model, 25)


def test_color(tmp_path: Path, color_model: Model) -> None:
    clean = random_image(0, (20, 24, 3))
    write_image(tmp_path / "a.png", ImageFile(clean))
    noisy = clean + 25 * np.random.default_rng(0).standard_normal(clean.shape)
    estimate = nlnet.denoise(noisy, 25, model=color_model, data_range=255)
    result = evaluate_folder(tmp_path, color_model, 25)
    assert result.mean.psnr == pytest.approx(psnr(clean, estimate), abs=1e-3)


def test_deep_images_are_evaluated_alike(tmp_path: Path, gray_model: Model) -> None:
    clean = random_image(0, (20, 24))
    folders = tmp_path / "short", tmp_path / "deep"
    for folder, pixels in zip(folders, (clean, clean.astype(np.uint16) * 257), strict=True):
        folder.mkdir()
        write_image(folder / "a.png", ImageFile(pixels))
    short, deep = (evaluate_folder(folder, gray_model, 25).mean.psnr for folder in folders)
    assert deep == pytest.approx(short, abs=1e-4)


def test_images_of_floats_are_refused(tmp_path: Path, gray_model: Model) -> None:
    write_image(tmp_path / "a.tif", ImageFile(np.zeros((20, 20), np.float32)))
    with refused(InputError, "8 or 16 bits"):
        evaluate_folder(tmp_path, gray_model, 25)


@pytest.mark.parametrize("seed", [-1, 0.5, True])
def test_bad_seed(folder: Path, gray_model: Model, seed: int) -> None:
    with refused(InputError, "seed is"):
        evaluate_folder(folder, gray_model, 25, seed=seed)


def test_folders_and_ids_that_cannot_be_used(folder: Path, tmp_path: Path) -> None:
    with refused(FileError, "No such file"):
        list_images(tmp_path / "missing")
    with refused(InputError, "no images"):
        list_images(tmp_path)
    with refused(InputError, "1 of the 2 ids", "'zzz'"):
        list_images(folder, {"b", "zzz"})


def test_the_test_set_is_in_the_package() -> None:
    assert len(bsd68_ids()) == 68
    assert {"119082", "101085"} <= bsd68_ids()


def test_ids_file(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("b\r\n\n  a10 \n")
    assert read_ids(path) == {"a10", "b"}
    path.write_text("\n\n")
    with refused(InputError, "lists no ids"):
        read_ids(path)
    path.write_bytes(b"\xff\xfe\x00")
    with refused(FileError, "not a text file"):
        read_ids(path)
    with refused(FileError, "No such file"):
        read_ids(tmp_path / "missing")


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_commit_is_that_of_a_checkout_that_tracks_the_package(tmp_path: Path) -> None:
    source = Path(sys.modules[checkout_commit.__module__].__file__ or "")
    copy = tmp_path / "checkout.py"
    shutil.copy(source, copy)
    code = "import checkout; print(checkout.checkout_commit())"

    def answer() -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "without the package")
    assert answer() == "None"
    git(tmp_path, "add", "checkout.py")
    git(tmp_path, "commit", "--quiet", "-m", "with the package")
    assert answer() == git(tmp_path, "rev-parse", "HEAD")
