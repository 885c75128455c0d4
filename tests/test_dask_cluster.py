"""Zarr folders and folders of images on a Dask cluster of two processes on this machine."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from pictures import noisy_pixels

import nlnet
from nlnet.cli import main
from nlnet.images import ImageFile, read_image, write_image
from nlnet.model.model import Model

distributed = pytest.importorskip("distributed")
zarr = pytest.importorskip("zarr")

LOCAL = ["--host", "127.0.0.1", "--no-dashboard"]


class Cluster:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        folder.mkdir(exist_ok=True)
        self.file = folder / "scheduler.json"
        self._folder = folder
        self._processes = [self._start("scheduler", "--port", "0", *LOCAL)]
        self.workers = [self.start_worker() for _ in range(workers)]

    def start_worker(self) -> subprocess.Popen[bytes]:
        scratch = ["--local-directory", str(self._folder)]
        options = ["--nthreads", "1", "--no-nanny", *scratch, *LOCAL]
        self._processes.append(self._start("worker", *options))
        return self._processes[-1]

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *command, "--scheduler-file", str(self.file)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )

    @property
    def address(self) -> str:
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return str(json.loads(self.file.read_text())["address"])

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield started
    finally:
        started.stop()


def unfinished_chunks(folder: Path) -> int:
    """Chunks that a run has written so far, under its temporary name."""
    return len(list(folder.glob(".nlnet-*.partial/c/*/*")))


@pytest.mark.skipif(os.name != "posix", reason="needs kill -9")
@pytest.mark.parametrize("along", [None, 0])
def test_one_of_two_workers_is_killed(
    cluster: Cluster, tmp_path: Path, gray_model_file: Path, along: int | None
) -> None:
    shape, chunks = ((1200, 1300), (120, 120)) if along is None else ((80, 96, 104), (1, 96, 104))
    noisy = 128 + 25 * np.random.default_rng(0).standard_normal(shape, np.float32)
    source, target = tmp_path / "in.zarr", tmp_path / "out.zarr"
    zarr.create_array(str(source), data=noisy, chunks=chunks)
    killed: list[bool] = []

    def kill_one() -> None:
        deadline = time.monotonic() + 60
        while unfinished_chunks(tmp_path) < 4 and time.monotonic() < deadline:
            time.sleep(0.002)
        cluster.workers[0].send_signal(signal.SIGKILL)
        cluster.workers[0].wait()
        killed.append(not target.exists())

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    options = ["--sigma", "25", "--data-range", "255", "--model", str(gray_model_file)]
    options += [] if along is None else ["--along", str(along)]
    command = ["denoise", str(source), "-o", str(target), "--scheduler", cluster.address]
    assert main([*command, *options]) == 0
    killer.join()
    cluster.workers[0] = cluster.start_worker()
    assert killed == [True]
    result = zarr.open(str(target))[:]
    how = {"model": str(gray_model_file), "data_range": 255.0, "along": along}
    whole = nlnet.denoise_stack(noisy, 25.0, **how)
    np.testing.assert_allclose(result, whole, rtol=0, atol=1e-3 if along is None else 0)
    assert not list(tmp_path.glob(".nlnet-*"))


def test_a_folder_of_images(
    cluster: Cluster,
    tmp_path: Path,
    gray_model: Model,
    gray_model_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # relative names mean the same to workers elsewhere
    Path("in").mkdir()
    for seed in range(3):
        write_image(f"in/{seed}.png", ImageFile(noisy_pixels(np.uint8, seed=seed)))
    Path("in/broken.png").write_bytes(b"no image")
    options = ["--sigma", "25", "--model", str(gray_model_file)]
    command = ["denoise", "in", "-o", "out", "--scheduler", str(cluster.file), *options]
    assert main(command) == 1
    captured = capsys.readouterr()
    assert captured.out == "3 written, 1 failed\n"
    assert captured.err.startswith("nlnet: error: Cannot read ")
    assert captured.err.count("broken.png") == 2
    for seed in range(3):
        wanted = nlnet.denoise(read_image(f"in/{seed}.png").pixels, 25, model=gray_model)
        np.testing.assert_array_equal(read_image(f"out/{seed}.png").pixels, wanted)


def test_a_worker_cannot_read_a_chunk(
    cluster: Cluster, tmp_path: Path, gray_model_file: Path, fails: Callable[..., str]
) -> None:
    source, target = tmp_path / "in.zarr", tmp_path / "out.zarr"
    zarr.create_array(str(source), data=noisy_pixels(np.uint8), chunks=(8, 8))
    (source / "c/1/1").write_bytes(b"damaged")
    options = ["--scheduler", cluster.address, "--sigma", "25", "--model", gray_model_file]
    message = fails("denoise", source, "-o", target, *options)
    assert f"Cannot read {str(source)!r}: it is a damaged" in message
    assert [path.name for path in tmp_path.iterdir()] == ["in.zarr"]


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "tcp://127.0.0.1:{port}"])
def test_a_scheduler_that_is_not_there(
    tmp_path: Path,
    address: str,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("nlnet.dask.schedulers.TIMEOUT", 0.3)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        address = address.format(port=taken.getsockname()[1])
        source, target = tmp_path / "in.zarr", tmp_path / "out.zarr"
        zarr.create_array(str(source), data=noisy_pixels(np.uint8), chunks=(8, 8))
        start = time.monotonic()
        message = fails("denoise", source, "-o", target, "--sigma", 25, "--scheduler", address)
    assert f"scheduler {address!r} cannot be reached" in message
    assert time.monotonic() - start < 10
    assert [path.name for path in tmp_path.iterdir()] == ["in.zarr"]


def test_addresses_that_are_none(tmp_path: Path) -> None:
    """One sentence for each at once; in a process of their own, for a traceback came at its end."""
    source, target = tmp_path / "in.zarr", tmp_path / "out.zarr"
    zarr.create_array(str(source), data=noisy_pixels(np.uint8), chunks=(8, 8))
    addresses = ["no address", "nofile.json", "tcp://host", "ftp://host:1"]
    script = (
        "import sys; from nlnet.cli import main; "
        "print([main([*sys.argv[1:4], sys.argv[4], '--scheduler', a]) for a in sys.argv[5:]])"
    )
    command = [sys.executable, "-c", script, "denoise", str(source), "-o", str(target)]
    ended = subprocess.run(
        [*command, *addresses], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (0, "[2, 2, 2, 2]\n")
    assert ended.stderr == "".join(
        f"nlnet: error: The scheduler {address!r} is neither an address, such as "
        "tcp://10.0.0.1:8786, nor a scheduler file that exists.\n"
        for address in addresses
    )


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}', '{"address": 1}'])
def test_a_file_that_is_no_schedulers(
    tmp_path: Path, fails: Callable[..., str], content: str
) -> None:
    source, told = tmp_path / "in.zarr", tmp_path / "scheduler.json"
    zarr.create_array(str(source), data=noisy_pixels(np.uint8), chunks=(8, 8))
    told.write_text(content)
    message = fails("denoise", source, "-o", tmp_path / "out.zarr", "--scheduler", told)
    assert f"{str(told)!r} is not the file of a Dask scheduler" in message


def test_the_scheduler_is_killed(
    tmp_path: Path,
    gray_model_file: Path,
) -> None:
    """One sentence, and nothing left; a cluster of its own, for it does not survive."""
    cluster = Cluster(tmp_path / "cluster", workers=0)
    source, target = tmp_path / "in.zarr", tmp_path / "out.zarr"
    zarr.create_array(str(source), data=noisy_pixels(np.uint8), chunks=(8, 8))

    def kill_it() -> None:
        deadline = time.monotonic() + 60
        with distributed.Client(cluster.address, set_as_default=False) as client:
            while time.monotonic() < deadline and not client.run_on_scheduler(
                lambda dask_scheduler: len(dask_scheduler.tasks)
            ):
                time.sleep(0.01)
        cluster.stop()

    try:
        address = cluster.address
        threading.Thread(target=kill_it, daemon=True).start()
        options = ["--scheduler", address, "--sigma", "25", "--model", str(gray_model_file)]
        command = [sys.executable, "-m", "nlnet", "denoise", str(source), "-o", str(target)]
        ended = subprocess.run(
            [*command, *options], capture_output=True, text=True, check=False, timeout=60
        )
    finally:
        cluster.stop()
    assert ended.stderr.count("\n") == 2, ended.stderr
    waiting, error = ended.stderr.splitlines()
    assert ended.returncode == 2
    assert waiting == "nlnet: the scheduler has no workers yet; waiting for them"
    assert error.startswith("nlnet: error: The connection to the scheduler was lost")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cluster", "in.zarr"]
