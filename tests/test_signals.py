"""Signals that end a process: as Ctrl-C does, with the exit code that shells know."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from pictures import random_image

import nlnet.atomic
from nlnet.cli import main
from nlnet.cli.streams import Terminated, orderly_end
from nlnet.images import ImageFile, write_image

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_command_that_is_told_to_end_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    write_image(tmp_path / "in.png", ImageFile(random_image()))

    def told_meanwhile(descriptor: int) -> None:
        assert list(tmp_path.glob(".nlnet-*.tmp"))
        os.kill(os.getpid(), number)

    monkeypatch.setattr(nlnet.atomic.os, "fsync", told_meanwhile)
    files = [str(tmp_path / "in.png"), "-o", str(tmp_path / "out.png")]
    assert main(["add-noise", *files, "--sigma", "25"]) == 128 + number
    assert capsys.readouterr().err == "nlnet: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in.png"]
    assert signal.getsignal(number) == signal.SIG_DFL


def test_the_second_signal_is_the_systems() -> None:
    handlers: list[object] = []

    def end() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            handlers.extend(map(signal.getsignal, (signal.SIGTERM, signal.SIGHUP)))

    with pytest.raises(Terminated), orderly_end():
        end()
    assert handlers == [signal.SIG_DFL, signal.SIG_DFL]


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with orderly_end():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_leave_signals_alone() -> None:
    seen: list[object] = []

    def work() -> None:
        with orderly_end():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.SIG_DFL]
