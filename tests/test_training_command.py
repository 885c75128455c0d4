from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from training_cases import (
    ADAM,
    LBFGS,
    assert_same_run,
    recipe,
    train,
    write_data,
    write_toml,
)

from nlnet.cli import main
from nlnet.model.loading import load_model
from nlnet.training.phase import Phase
from nlnet.training.progress import RunLog, Screen
from nlnet.training.run import LOCK_NAME
from nlnet.training.trainer import BEST_MODEL


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_toml(tmp_path / "tiny.toml", recipe())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "tiny"


def command(config: Path, data: Path, run: Path, *more: object) -> list[str]:
    return [*map(str, ["train", config, "--data", data, "--out", run, "--threads", 1, *more])]


# Errors


def test_what_is_wrong_is_one_sentence(
    config: Path, data: Path, run: Path, tmp_path: Path, fails: Callable[..., str]
) -> None:
    assert "No such file" in fails(*command(tmp_path / "none.toml", data, run))
    assert "train" in fails(*command(config, tmp_path / "nowhere", run))
    assert "'abacus'" in fails(*command(config, data, run, "--device", "abacus"))
    assert "Cannot make the folder" in fails(*command(config, data, config / "run"))
    assert "ids" in fails(*command(config, data, run, "--exclude", tmp_path / "ids.txt"))
    wrong = write_toml(tmp_path / "wrong.toml", recipe(data={"corps": 3}))
    assert "'data.corps'" in fails(*command(wrong, data, run))
    broken = data / "val" / "a.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n")
    assert "a.png" in fails(*command(config, data, run))
    assert [path.name for path in run.iterdir()] == [".lock"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there(
    config: Path, data: Path, run: Path, fails: Callable[..., str]
) -> None:
    assert "'cuda' cannot be used" in fails(*command(config, data, run, "--device", "cuda"))


def test_without_torch_the_extra_is_named(
    config: Path, data: Path, run: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("nlnet.training")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "nlnet[train]" in fails(*command(config, data, run))


def test_a_run_is_not_overwritten_nor_continued_by_another_recipe(
    config: Path,
    data: Path,
    run: Path,
    tmp_path: Path,
    fails: Callable[..., str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(command(config, data, run)) == 0
    capsys.readouterr()
    assert "--resume" in fails(*command(config, data, run))
    other = write_toml(tmp_path / "other.toml", recipe(joint={"rate": 0.5}))
    sentence = fails(*command(other, data, run, "--resume"))
    assert "'joint.rate' is 0.5 and was 0.01" in sentence
    (run / "checkpoint.pt").write_bytes(b"garbage")
    assert "damaged" in fails(*command(config, data, run, "--resume"))


def test_one_process_at_a_time_trains_in_a_folder(
    data: Path,
    run: Path,
    tmp_path: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endless = recipe(greedy={"epochs": 10**6}, validate_every=10**6, checkpoint_minutes=1e-6)
    config = write_toml(tmp_path / "endless.toml", endless)
    first = subprocess.Popen(
        [sys.executable, "-m", "nlnet", *command(config, data, run)], stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while not (run / "checkpoint.pt").exists():
            assert first.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert "Another process is training in" in fails(*command(config, data, run, "--resume"))
        assert "Another process is training in" in fails(*command(config, data, run))
    finally:
        first.kill()
        first.wait()
    # The lock of a process that was killed does not count any more.
    stop_at_once = contextlib.nullcontext(lambda: True)
    module = sys.modules["nlnet.training.run"]
    monkeypatch.setattr(module, "_stop_requests", lambda: stop_at_once)
    with pytest.raises(SystemExit) as stop:
        main(command(config, data, run, "--resume"))
    assert stop.value.code == 130


# Starting, stopping and resuming


def test_resume_begins_a_run_that_died_before_its_first_checkpoint(
    config: Path, data: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "ids.txt").write_text("b\n")
    run.mkdir(parents=True)
    (run / LOCK_NAME).touch()
    assert main(command(config, data, run, "--resume", "--exclude", data / "ids.txt")) == 0
    told = capsys.readouterr().err
    assert "starts over" in told
    assert "tiny: 2 images to train on, 1 to validate with, 3 left out." in told
    assert "joint 2/2" in told
    assert "Finished" in told


def test_resume_where_there_is_no_run_is_an_error(
    config: Path, data: Path, run: Path, fails: Callable[..., str]
) -> None:
    assert f"no run in {str(run)!r}" in fails(*command(config, data, run, "--resume"))
    assert not run.exists()
    run.mkdir(parents=True)
    assert f"no run in {str(run)!r}" in fails(*command(config, data, run, "--resume"))
    assert not list(run.iterdir())


def test_a_best_model_that_is_gone(
    config: Path,
    data: Path,
    run: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # Stopped in the joint phase, after the first model was saved.
    module = sys.modules["nlnet.training.run"]
    stop = contextlib.nullcontext(lambda: (run / BEST_MODEL).exists())
    with monkeypatch.context() as patch:
        patch.setattr(module, "_stop_requests", lambda: stop)
        with pytest.raises(SystemExit):
            main(command(config, data, run))
    (run / BEST_MODEL).unlink()
    capsys.readouterr()
    assert main(command(config, data, run, "--resume")) == 0
    told = capsys.readouterr().err
    assert "is gone: the best model from here on takes its place" in told
    assert "Finished" in told
    load_model(run / BEST_MODEL)
    (run / BEST_MODEL).unlink()
    sentence = fails(*command(config, data, run, "--resume"))
    assert "is finished, but its model 'best.safetensors' is gone" in sentence


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_save_and_leave_with_a_message(
    config: Path,
    data: Path,
    run: Path,
    tmp_path: Path,
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    honest = Phase._follow_average

    def interrupted(self: Phase, steps: int) -> None:
        if self.title == "greedy 2":
            os.kill(os.getpid(), number)
        honest(self, steps)

    before = signal.getsignal(number)
    monkeypatch.setattr(Phase, "_follow_average", interrupted)
    with pytest.raises(SystemExit) as stop:
        main(command(config, data, run))
    assert stop.value.code == 130
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("nlnet: interrupted; the run is saved in")
    assert "--resume" in last
    assert signal.getsignal(number) is before
    monkeypatch.setattr(Phase, "_follow_average", honest)
    assert main(command(config, data, run, "--resume")) == 0
    assert main(command(config, data, tmp_path / "whole")) == 0
    assert_same_run(run, tmp_path / "whole")


def test_the_second_signal_does_not_wait(
    config: Path, data: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Phase, steps: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)

    monkeypatch.setattr(Phase, "_follow_average", interrupted)
    assert main(command(config, data, run)) == 130
    assert not (run / "log.jsonl").exists()


@pytest.fixture
def killed_recipe() -> dict[str, Any]:
    """Every step is saved: 14 writes of checkpoints, 5 of log lines, 3 of the best model."""
    joint = {**LBFGS, "epochs": 3}
    return recipe(greedy=ADAM, joint=joint, network={"stages": 1}, checkpoint_minutes=0)


def train_and_die(number: int, when: str, *arguments: object) -> int:
    """Return the exit code of a run that dies at its n-th write, if it comes so far."""
    script = Path(__file__).with_name("killed_training.py")
    command = [sys.executable, script, number, when, *arguments, "--threads", 1]
    run = Path(str(arguments[arguments.index("--out") + 1]))
    command += ["--resume"] if run.exists() else []
    return subprocess.run(
        [str(word) for word in command], capture_output=True, check=False, timeout=120
    ).returncode


needs_kill = pytest.mark.skipif(os.name != "posix", reason="needs kill -9")


@needs_kill
def test_a_killed_run_goes_on_to_the_same_bits(
    killed_recipe: dict[str, Any], data: Path, run: Path, tmp_path: Path
) -> None:
    config = write_toml(tmp_path / "killed.toml", killed_recipe)
    arguments = (config, "--data", data, "--out", run)
    # Before there is any checkpoint, and in the middle of writing one, which leaves a file behind.
    assert train_and_die(1, "before", *arguments) == -signal.SIGKILL
    assert train_and_die(5, "before", *arguments) == -signal.SIGKILL
    assert list(run.glob(".*.tmp"))
    assert main([*map(str, ["train", *arguments, "--threads", 1, "--resume"])]) == 0
    train(killed_recipe, data, tmp_path / "whole")
    assert_same_run(run, tmp_path / "whole")


@needs_kill
@pytest.mark.slow
def test_a_run_killed_at_every_write_goes_on_to_the_same_bits(
    killed_recipe: dict[str, Any], data: Path, run: Path, tmp_path: Path
) -> None:
    config = write_toml(tmp_path / "killed.toml", killed_recipe)
    codes: list[int] = []
    while not codes or codes[-1] == -signal.SIGKILL:
        when = "after" if len(codes) % 2 else "before"
        number = 1 + len(codes) // 2  # a little further every time, for some write only once
        codes.append(train_and_die(number, when, config, "--data", data, "--out", run))
    assert codes[-1] == 0
    assert len(codes) > 8
    train(killed_recipe, data, tmp_path / "whole")
    assert_same_run(run, tmp_path / "whole")


class Killed(BaseException):
    """What no code catches."""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_that_breaks_off_at_any_write_goes_on_to_the_same_bits(
    killed_recipe: dict[str, Any],
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    when: str,
) -> None:
    """The same in this process, which is faster: each attempt comes a little further."""
    writes_left = 0

    def breaking(write: Callable[..., None]) -> Callable[..., None]:
        def replacement(*values: Any) -> None:
            nonlocal writes_left
            writes_left -= 1
            if not (writes_left == 0 and when == "before"):
                write(*values)
            if writes_left == 0:
                raise Killed

        return replacement

    whole, run = tmp_path / "whole", tmp_path / "run"
    train(killed_recipe, data, whole)
    monkeypatch.setattr("os.replace", breaking(os.replace))
    monkeypatch.setattr(RunLog, "write", breaking(RunLog.write))
    deaths = 0
    finished = False
    while not finished:
        writes_left = 1 + deaths
        try:
            finished = train(killed_recipe, data, run, resume=(run / "checkpoint.pt").exists())
        except Killed:
            deaths += 1
    assert deaths >= 5
    assert_same_run(run, whole)


def test_torchs_entry_is_the_same_command(config: Path, data: Path, run: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nlnet.training", config, "--data", data / "none", "--out", run],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("nlnet: error: Cannot read the folder")
    assert done.stderr.count("\n") == 1


# Progress


class Terminal:
    """A terminal that remembers."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


ENTRY = {
    "phase": "joint",
    "epoch": 1,
    "epochs": 2,
    "train_psnr": 29.25,
    "val_psnr": 28.125,
    "rate": 0.005,
    "seconds": 3700.0,
}


def test_a_terminal_shows_a_bar_with_all_one_wants_to_know() -> None:
    terminal = Terminal()
    screen = Screen(stream=terminal)  # type: ignore[arg-type]
    screen.begin("joint", epochs=2, steps=4, done=1)
    screen.step(0, 29.25, 0.005)
    screen.epoch(ENTRY)
    time.sleep(0.12)  # tqdm draws at most ten times a second
    screen.step(1, 29.5, 0.0025)
    screen.end()
    last = terminal.text.strip().split("\r")[-1]
    for word in (
        "joint",
        "75%",
        "epoch 2/2",
        "train 29.50",
        "val 28.125 dB",
        "rate 0.0025",
        "left",
    ):
        assert word in last, last


def test_a_file_gets_lines(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.begin("joint", epochs=2, steps=4, done=0)
    screen.step(0, 29.25, 0.005)
    screen.step(0, 29.25, 0.005)
    screen.epoch(ENTRY)
    (line,) = capsys.readouterr().err.splitlines()
    for word in ("joint 1/2", "train 29.250 dB", "val 28.125 dB", "rate 0.005", "1:01:40", "left"):
        assert word in line
    assert "\r" not in line


def test_the_rest_of_a_team_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(quiet=True)
    screen.begin("joint", epochs=2, steps=4, done=0)
    screen.step(0, 29.25, 0.005)
    screen.epoch(ENTRY)
    screen.say("hello")
    assert capsys.readouterr().err == ""


def test_training_may_run_in_another_thread_than_the_main_one(data: Path, run: Path) -> None:
    """Libraries do that; only the command installs signal handlers."""
    run.parent.mkdir()
    worker = threading.Thread(target=train, args=(recipe(), data, run))
    worker.start()
    worker.join()
    assert (run / "best.safetensors").exists()
