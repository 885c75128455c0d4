from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pictures import noisy_pixels

import nlnet.files.one_file
import nlnet.model.loading
from nlnet.cli import main
from nlnet.errors import FileError
from nlnet.files.many_files import run_jobs
from nlnet.files.plan import FileJob
from nlnet.files.settings import Settings
from nlnet.images import ImageFile, read_image, write_image
from tests.messages import refused

NAMES = ("a.png", "b.tif", "sub/c.png", "sub/deep/d.ppm")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Gray and color images in a tree."""
    path = tmp_path / "in"
    for seed, name in enumerate(NAMES):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        channels = 3 if name.endswith("ppm") else 1
        write_image(path / name, ImageFile(noisy_pixels(np.uint8, channels, seed)))
    return path


Run = Callable[..., int]


@pytest.fixture
def run(
    tmp_path: Path, gray_model_file: Path, color_model_file: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Denoise into the folder ``out``, with the models of the tests instead of the shipped ones."""
    models = {"gray": gray_model_file, "color": color_model_file}
    select = nlnet.model.loading.select_model
    monkeypatch.setattr(
        nlnet.model.loading,
        "select_model",
        lambda name, sigma: select(models.get(name, name), sigma),
    )

    def start(*inputs: object, options: str = "--recursive", sigma: str = "25") -> int:
        arguments = ["denoise", *inputs, "-o", tmp_path / "out", "--sigma", sigma]
        return main([*map(str, arguments), *options.split()])

    return start


def outputs(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("workers", [1, 3])
def test_a_tree(
    folder: Path,
    run: Run,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    workers: int,
) -> None:
    assert run(folder, options=f"--recursive --workers {workers}") == 0
    assert outputs(tmp_path / "out") == set(NAMES)
    for name in NAMES:
        before, after = (read_image(tmp_path / top / name).pixels for top in ("in", "out"))
        assert after.shape == before.shape
        assert after.std() < 0.9 * before.std()
    captured = capsys.readouterr()
    assert captured.out == "4 written\n"
    assert captured.err == ""


def test_one_bad_file_does_not_stop_the_rest(
    folder: Path, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "b.tif").write_bytes(b"no image")
    (folder / "sub" / "gone.png").symlink_to(tmp_path / "nowhere")
    (folder / "sub" / "self.png").symlink_to(folder / "sub" / "self.png")
    (folder / "tiny.png").write_bytes((folder / "a.png").read_bytes()[:60])
    (folder / "loop").symlink_to(folder)
    assert run(folder) == 1
    assert outputs(tmp_path / "out") == {"a.png", "sub/c.png", "sub/deep/d.ppm"}
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == "3 written, 4 failed"
    *errors, last = captured.err.splitlines()
    assert len(errors) == 4
    assert all(line.startswith("nlnet: error: ") for line in errors)
    for name in ("b.tif", "gone.png", "self.png", "tiny.png"):
        assert sum(name in line for line in errors) == 1
        assert name in last


def test_errors_name_their_file(folder: Path, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    write_image(folder / "tiny.png", ImageFile(np.zeros((4, 4), np.uint8)))
    np.save(folder / "far.npy", np.full((24, 32), np.inf))
    assert run(folder, sigma="auto") == 1
    *errors, _ = capsys.readouterr().err.splitlines()
    assert "far.npy'" in min(errors)
    assert "tiny.png'" in max(errors)
    assert "infinite" in min(errors)
    assert "8x8" in max(errors)


def test_a_file_that_vanishes(
    folder: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = nlnet.files.many_files.denoise_file

    def vanish(source: Path, *rest: object) -> object:
        (folder / "b.tif").unlink(missing_ok=True)
        return work(source, *rest)

    monkeypatch.setattr(nlnet.files.many_files, "denoise_file", vanish)
    assert run(folder) == 1
    assert outputs(tmp_path / "out") == set(NAMES) - {"b.tif"}


def test_existing_outputs_are_skipped_or_replaced_as_asked(
    folder: Path, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "sub").mkdir(parents=True)
    (tmp_path / "out" / "sub" / "c.png").write_bytes(b"precious")
    (tmp_path / "out" / "a.png").symlink_to(tmp_path / "elsewhere.png")
    assert run(folder) == 0
    assert "2 written, 2 skipped that exist (--overwrite" in capsys.readouterr().out
    assert (tmp_path / "out" / "sub" / "c.png").read_bytes() == b"precious"
    (tmp_path / "out" / "a.png").unlink()
    assert run(folder, options="--recursive --overwrite") == 0
    assert capsys.readouterr().out == "4 written\n"
    assert read_image(tmp_path / "out" / "sub" / "c.png").pixels.shape == (24, 32)


def test_an_output_that_another_run_wrote_meanwhile(folder: Path, tmp_path: Path) -> None:
    job = FileJob(folder / "a.png", tmp_path / "a.png")
    job.target.write_bytes(b"precious")
    (report,) = run_jobs([job], Settings(sigma=25))
    assert (report.findings, report.error) == (None, None)
    assert job.target.read_bytes() == b"precious"


def test_an_output_that_is_no_plain_file(
    folder: Path, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out" / "a.png").mkdir(parents=True)
    assert run(folder, options="--overwrite") == 1
    assert "a.png' exists, but is not a plain file" in capsys.readouterr().err


def test_a_single_file_into_a_folder(folder: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert run(folder / "a.png") == 0
    assert run(folder / "sub" / "*.png") == 0
    assert outputs(tmp_path / "out") == {"a.png", "c.png"}


def test_sigma_is_said_for_each_file(
    folder: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, sigma="auto") == 0
    told = capsys.readouterr().out
    for name in NAMES:
        assert f"{folder / name}: found white noise, sigma 2" in told


def test_errors_of_all_files_are_one(
    folder: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    place = ["denoise", folder, "-o", tmp_path / "out", "--sigma", 25]
    assert "Unknown model 'best'" in fails(*place, "--model", "best")
    assert "device is 'gpu'" in fails(*place, "--device", "gpu")
    assert "--preview is for one image" in fails(*place, "--preview", tmp_path / "x.png")
    assert "no images" in fails(*place[:1], tmp_path, *place[2:])
    assert not (tmp_path / "out").exists()


def test_an_output_inside_a_file(folder: Path, fails: Callable[..., str]) -> None:
    place = folder / "a.png" / "out"
    assert "Cannot make the output folder" in fails("denoise", folder, "-o", f"{place}/")


def test_an_unusual_name_makes_one_line(
    folder: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "line\nbreak.png").write_bytes(b"no image")
    assert run(folder) == 1
    assert len(capsys.readouterr().err.splitlines()) == 2


# Interruptions


@pytest.mark.parametrize("workers", [1, 3])
def test_a_full_disk_ends_the_run(
    folder: Path,
    run: Run,
    tmp_path: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
) -> None:
    calls = []

    def full(path: Path, data: bytes) -> None:
        calls.append(path)
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as error:
            raise FileError(f"Cannot write {str(path)!r}: No space left on device.") from error

    monkeypatch.setattr(nlnet.images, "write_atomically", full)
    arguments = [folder, "-o", tmp_path / "out", "--sigma", 25, "--recursive"]
    said = fails("denoise", *arguments, "--workers", workers)
    assert "No space left on device" in said
    assert 1 <= len(calls) <= workers  # those under way may meet it, too; no other is begun


def test_what_is_written_beside_a_full_disk_is_told(
    folder: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file meets the full disk while another is past the point at which it would stop."""
    work, begun = nlnet.files.many_files.denoise_file, threading.Event()

    def denoise(
        source: Path, target: Path, settings: Settings, progress: Callable[[float], bool]
    ) -> object:
        if source.name == "b.tif":
            assert begun.wait(60)
            error = FileError("The disk is full.")
            error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
            raise error
        result = work(source, target, settings, lambda share: True)
        begun.set()
        deadline = time.monotonic() + 60
        while progress(0.5) and time.monotonic() < deadline:  # until the run is told to stop
            time.sleep(0.001)
        return result

    monkeypatch.setattr(nlnet.files.many_files, "denoise_file", denoise)
    jobs = [FileJob(folder / name, tmp_path / "out" / name) for name in NAMES[:3]]
    reports = run_jobs(jobs, Settings(sigma=25), workers=2)
    assert next(reports).job == jobs[0]
    with refused(FileError, "disk is full"):
        next(reports)
    assert outputs(tmp_path / "out") == {"a.png"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_whole_files(
    folder: Path,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
) -> None:
    work, done = nlnet.files.many_files.denoise_file, []

    def interrupt(
        source: Path, target: Path, settings: Settings, progress: Callable[[float], bool]
    ) -> object:
        result = work(source, target, settings, progress)
        done.append(source)
        if len(done) == 2:
            os.kill(os.getpid(), number)
            deadline = time.monotonic() + 60
            while progress(0.5) and time.monotonic() < deadline:  # until the run is told to stop
                time.sleep(0.001)
        return result

    monkeypatch.setattr(nlnet.files.many_files, "denoise_file", interrupt)
    before = signal.getsignal(number)
    assert run(folder) == code
    assert signal.getsignal(number) is before
    first = outputs(tmp_path / "out")
    assert 2 <= len(first) < 4
    assert run(folder) == 0
    assert outputs(tmp_path / "out") == set(NAMES)


def test_what_a_folder_run_leaves_out_is_said(
    folder: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(12):
        (folder / f"{number:02}.psd").touch()
    (folder / "v.zarr").mkdir()
    assert run(folder, options="") == 0
    said = capsys.readouterr().out.splitlines()
    assert "2 written" in said
    psd = next(line for line in said if "00.psd" in line)
    assert psd.startswith("12 left out (images of formats that are not read; convert them")
    assert psd.endswith("09.psd, and 2 more")
    assert f"1 left out (zarr is denoised alone): {folder / 'v.zarr'}" in said
    assert f"1 left out (folders inside; --recursive goes into them): {folder / 'sub'}" in said


@pytest.mark.parametrize("name", ["clean.png", "clean.TIF", "clean.zarr"])
def test_a_folder_is_not_named_like_a_file(
    folder: Path, tmp_path: Path, fails: Callable[..., str], name: str
) -> None:
    message = fails("denoise", folder / "a.png", folder / "b.tif", "-o", tmp_path / name)
    assert f"{name}' is named like a file" in message
    assert not (tmp_path / name).exists()


def test_a_folder_that_exists_may_have_any_name(folder: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "old.png").mkdir()
    files = [folder / "a.png", folder / "b.tif"]
    words = ["denoise", *files, "--sigma", 25, "-o", tmp_path / "old.png"]
    assert main([*map(str, words)]) == 0
    assert outputs(tmp_path / "old.png") == {"a.png", "b.tif"}
