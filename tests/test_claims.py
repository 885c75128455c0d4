"""Processes that share a folder do no work twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import filelock
import numpy as np
import pytest
from pictures import noisy_pixels

from nlnet.files.claims import claim, remove_dead_claims
from nlnet.files.many_files import run_jobs, split_jobs, work_on
from nlnet.files.plan import FileJob
from nlnet.files.settings import Settings
from nlnet.images import ImageFile, read_image, write_image


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_claim_is_one_at_a_time(tmp_path: Path) -> None:
    target = tmp_path / ("x" * 251 + ".png")
    with claim(target) as first, claim(target) as second, claim(tmp_path / "y.png") as other:
        assert (first, second, other) == (True, False, True)
    with claim(target) as again:
        assert again
    assert files(tmp_path) == []


def test_without_locks_everybody_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: object, **options: object) -> None:
        raise NotImplementedError("the file system knows no locks")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with claim(tmp_path / "a.png") as first, claim(tmp_path / "a.png") as second:
        assert first
        assert second


HOLDER = """
import sys, time
from pathlib import Path
from nlnet.files.claims import claim
with claim(Path(sys.argv[1])):
    print("claimed", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
def test_the_claim_of_a_killed_process_is_void(tmp_path: Path) -> None:
    target = tmp_path / "a.png"
    command = [sys.executable, "-c", HOLDER, str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "claimed\n"
        with claim(target) as ours:
            assert not ours
        remove_dead_claims(tmp_path, time.time() + 1)
        assert len(files(tmp_path)) == 1  # it is alive
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert len(files(tmp_path)) == 1
    remove_dead_claims(tmp_path, time.time() - 60)
    assert len(files(tmp_path)) == 1  # not old enough
    with claim(target) as ours:
        assert ours
    (tmp_path / ".nlnet-old.lock").touch()
    remove_dead_claims(tmp_path, time.time() + 1)
    assert files(tmp_path) == []


def test_a_file_in_work_elsewhere_is_left_to_it(tmp_path: Path, gray_model_file: Path) -> None:
    job = FileJob(tmp_path / "in.png", tmp_path / "out" / "in.png")
    write_image(job.source, ImageFile(noisy_pixels(np.uint8)))
    job.target.parent.mkdir()
    settings = Settings(sigma=25.0, model=gray_model_file)
    with claim(job.target):
        report = work_on(job, settings, lambda share: True)
    assert report.elsewhere
    assert report.findings is None
    assert files(job.target.parent) == []
    report = work_on(job, settings, lambda share: True)
    assert report.findings is not None
    assert not report.elsewhere


def test_two_runs_that_overwrite(tmp_path: Path, gray_model_file: Path) -> None:
    """What was there before both began is replaced by one of them, not by both."""
    jobs = []
    for number in range(12):
        image = ImageFile(noisy_pixels(np.uint8, seed=number))
        write_image(tmp_path / f"{number}.png", image)
        (tmp_path / f"out-{number}.png").write_bytes(b"old")
        jobs.append(FileJob(tmp_path / f"{number}.png", tmp_path / f"out-{number}.png"))
    runs = [split_jobs(jobs, overwrite=True) for _ in range(2)]
    assert [existing for _, existing in runs] == [[], []]
    settings = Settings(sigma=25.0, model=gray_model_file, threads=1)
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda run: list(run_jobs(run[0], settings)), runs))
    statuses = sorted(report.status for reports in done for report in reports)
    assert statuses == ["elsewhere"] * 12 + ["written"] * 12
    assert all(read_image(job.target).pixels.shape == (24, 32) for job in jobs)
    # A later run replaces everything again.
    todo, _ = split_jobs(jobs, overwrite=True)
    assert {report.status for report in run_jobs(todo, settings)} == {"written"}
    assert split_jobs(jobs, overwrite=False) == ([], jobs)


def test_two_runs_on_one_folder(tmp_path: Path, gray_model_file: Path) -> None:
    """Every file is written once, by one of them, and together they write all."""
    (tmp_path / "in").mkdir()
    for number in range(60):
        image = ImageFile(noisy_pixels(np.uint8, seed=number))
        write_image(tmp_path / "in" / f"{number:02}.png", image)
    words = ["denoise", "in", "-o", "out", "--sigma", "25", "--model", str(gray_model_file)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "nlnet", *words, "--workers", "2", "--threads", "1"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=200)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum(int(text.split()[0]) for text in said) == 60
    assert files(tmp_path / "out") == files(tmp_path / "in")
