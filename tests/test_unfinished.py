"""Zarr runs that end in the middle go on where they stopped, and only they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nlnet
from nlnet.cli import main
from nlnet.files.claims import claim

pytest.importorskip("distributed")
zarr = pytest.importorskip("zarr")

Arguments = Callable[..., list[str]]


@pytest.fixture
def arguments(tmp_path: Path, gray_model_file: Path) -> Arguments:
    """A command with eight pages of one block each, the noise of which is estimated."""
    rng = np.random.default_rng(0)
    pages = rng.normal(128, 20, (8, 40, 50)).astype(np.float32)
    zarr.create_array(str(tmp_path / "in.zarr"), data=pages, chunks=(1, 40, 50))

    def make(*options: object, target: str = "out.zarr") -> list[str]:
        words = ["denoise", tmp_path / "in.zarr", "-o", tmp_path / target, "--model"]
        return [*map(str, [*words, gray_model_file, "--data-range", 255, *options])]

    return make


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The blocks that are written, as they are."""
    from nlnet.dask.unfinished import Unfinished

    written: list[tuple[int, ...]] = []
    mark = Unfinished.mark

    def note(self: Unfinished, block: Any) -> None:
        mark(self, block)
        written.append(tuple(block))

    monkeypatch.setattr(Unfinished, "mark", note)
    return written


@pytest.fixture
def stop_after() -> Callable[[int], Any]:
    """Interrupt runs, until that is undone, when so many blocks are written."""
    from nlnet.dask import targets

    def patch(count: int) -> Any:
        context = pytest.MonkeyPatch()
        write = targets.ZarrTarget.write
        left = iter(range(count))

        def stop(self: targets.ZarrTarget, *rest: Any) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            write(self, *rest)

        context.setattr(targets.ZarrTarget, "write", stop)
        return context

    return patch


def partial(folder: Path) -> list[str]:
    return [path.name for path in folder.glob(".nlnet-*")]


def test_a_run_goes_on_where_it_stopped(
    tmp_path: Path,
    arguments: Arguments,
    blocks: list[tuple[int, ...]],
    stop_after: Callable[[int], Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(arguments(target="whole.zarr")) == 0
    assert len(blocks) == 8
    blocks.clear()
    interrupted = stop_after(3)
    assert main(arguments()) == 130
    interrupted.undo()
    assert partial(tmp_path) == [".nlnet-out.zarr.partial"]
    assert not (tmp_path / "out.zarr").exists()
    told = capsys.readouterr().err
    assert "the same command goes on where this one stopped" in told
    first = set(blocks)
    assert len(first) == 3
    blocks.clear()
    # What was estimated is not estimated again.
    from nlnet.dask import out_of_core

    monkeypatch.setattr(out_of_core, "plan_pages", None)
    assert main(arguments("--threads", 1)) == 0
    assert len(blocks) == 5
    assert not first & set(blocks)
    assert partial(tmp_path) == []
    whole, result = (zarr.open(str(tmp_path / name)) for name in ("whole.zarr", "out.zarr"))
    assert result[:].tobytes() == whole[:].tobytes()
    assert sorted(path.name for path in (tmp_path / "out.zarr").iterdir()) == ["c", "zarr.json"]


@pytest.mark.parametrize(
    "change",
    [["--strength", 0.5], ["--sigma", 30], ["--data-range", 250], "source", "version", "model"],
)
def test_another_run_begins_anew(
    tmp_path: Path,
    arguments: Arguments,
    blocks: list[tuple[int, ...]],
    stop_after: Callable[[int], Any],
    gray_model_file: Path,
    change: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tmp_path / "model.safetensors"
    model.write_bytes(gray_model_file.read_bytes())
    options: list[object] = ["--sigma", 25, "--model", model]
    interrupted = stop_after(3)
    assert main(arguments(*options)) == 130
    interrupted.undo()
    blocks.clear()
    if change == "source":
        os.utime(tmp_path / "in.zarr", ns=(1, 1))
    elif change == "version":
        monkeypatch.setattr(nlnet, "__version__", "0.0.dev")
    elif change == "model":
        nlnet.load_model("gray-5x5-s25").save(model)
    else:
        options += change
    assert main(arguments(*options)) == 0
    assert len(blocks) == 8


def test_two_processes_do_not_write_one_output(
    tmp_path: Path, arguments: Arguments, fails: Callable[..., str]
) -> None:
    with claim(tmp_path / "out.zarr") as ours:
        assert ours
        assert "Another process is writing" in fails(*arguments("--sigma", 25))
    assert main(arguments("--sigma", "25")) == 0
    assert partial(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_signals(tmp_path: Path, gray_model_file: Path, number: signal.Signals) -> None:
    """Some blocks are done, then the process is told to end, or killed."""
    rng = np.random.default_rng(0)
    pages = rng.integers(0, 256, (160, 64, 64)).astype(np.uint8)
    zarr.create_array(str(tmp_path / "in.zarr"), data=pages, chunks=(1, 64, 64))
    words = ["denoise", "in.zarr", "-o", "out.zarr", "--sigma", 25, "--model", gray_model_file]
    command = [sys.executable, "-m", "nlnet", *map(str, words)]
    marks = tmp_path / ".nlnet-out.zarr.partial" / ".nlnet" / "blocks"
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 100
        while not marks.exists() or len(list(marks.iterdir())) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    done = len(list(marks.iterdir()))
    assert 2 <= done < 160
    if number == signal.SIGTERM:
        assert process.returncode == 128 + signal.SIGTERM
        assert told.splitlines()[-2:] == [
            "nlnet: the same command goes on where this one stopped, "
            "from '.nlnet-out.zarr.partial'",
            "nlnet: interrupted",
        ]
    else:
        assert process.returncode == -signal.SIGKILL
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert partial(tmp_path) == []
    result = zarr.open(str(tmp_path / "out.zarr"))[:]
    wanted = nlnet.denoise_stack(pages, 25, model=gray_model_file)
    np.testing.assert_array_equal(result, wanted)
