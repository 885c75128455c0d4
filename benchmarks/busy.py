"""A machine with other work to do: every public entry, idle and beside busy loops.

``python -m benchmarks.busy`` times each entry alone, then beside as many endless loops as there are
CPUs. Half of the machine is left then, so twice the time is fair; more than three times means that
threads wait for each other instead of working, and is a failure: the exit code is 1. Stop
everything else first.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import nlnet
from benchmarks.machine import describe_run
from benchmarks.pictures import BUNDLED
from benchmarks.report import format_table, write_json
from nlnet.evaluation.comparison import compare
from nlnet.evaluation.datasets import luma
from nlnet.evaluation.metrics import psnr, ssim
from nlnet.files.one_file import denoise_file
from nlnet.files.settings import Settings
from nlnet.images import ImageFile, read_image, write_image
from nlnet.noise import add_noise
from nlnet.parallel import available_cpus

RESULTS = Path(__file__).resolve().parent / "results" / "busy.json"
SIGMA = 25.0
MOST_TIMES = 3.0
ROUNDS, CALLS = 3, 3
"""Alone and beside busy loops take turns, so that a slow spell of the machine meets both."""

Entry = Callable[[], Any]


def make_entries(folder: Path, stack: contextlib.ExitStack) -> dict[str, Entry]:
    """Return what is measured, by name; all of it on a photo of 451x300 pixels."""
    clean = read_image(BUNDLED).pixels
    color = add_noise(clean, SIGMA).astype(np.float32)
    gray = add_noise(luma(clean), SIGMA).astype(np.float32)
    stored = np.rint(np.clip(color, 0, 255)).astype(np.uint8)
    write_image(folder / "noisy.png", ImageFile(stored))
    command = [sys.executable, "-m", "nlnet", "denoise", "noisy.png", "-o", "o.png", "--overwrite"]
    files = ([ImageFile(clean)], [("noisy", [ImageFile(stored)])])
    entries: dict[str, Entry] = {
        "estimate_sigma, gray": lambda: nlnet.estimate_sigma(gray),
        "estimate_sigma, color": lambda: nlnet.estimate_sigma(color),
        "denoise, gray": lambda: nlnet.denoise(gray, SIGMA, data_range=255),
        "denoise, color": lambda: nlnet.denoise(color, SIGMA, data_range=255),
        "estimate_noise, color": lambda: nlnet.estimate_noise(stored),
        "denoise, noise found": lambda: nlnet.denoise(stored),
        "denoise, camera noise": lambda: nlnet.denoise(stored, SIGMA, noise="camera"),
        "denoise, photon noise": lambda: nlnet.denoise(stored, noise=nlnet.Noise.poisson(4.0)),
        "denoise, luma and chroma": lambda: nlnet.denoise(stored, SIGMA, strength=(0.5, 1.0)),
        "denoise, masked": lambda: nlnet.denoise(stored, SIGMA, mask=stored[..., 0] == 0),
        "denoise in a thread": lambda: _in_thread(lambda: nlnet.denoise(stored)),
        "denoise_stack": lambda: nlnet.denoise_stack(np.stack([gray] * 3), SIGMA, data_range=255),
        "denoise_file": lambda: denoise_file(folder / "noisy.png", folder / "o.png", Settings()),
        "compare": lambda: compare(*files),
        "psnr and ssim": lambda: (psnr(clean, color), ssim(clean, color)),
        "read_image": lambda: nlnet.read_image(folder / "noisy.png"),
        "write_image": lambda: nlnet.write_image(folder / "w.png", ImageFile(stored)),
        "load_model": lambda: nlnet.load_model("gray-5x5-s25"),
        "the command": lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True),
    }
    return entries | _dask_entries(gray) | _torch_entries(gray) | _web_entries(folder, stack)


def _in_thread(entry: Entry) -> None:
    """Call it as servers and dask do: in another thread than the first that used BLAS."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(entry).result()


def _web_entries(folder: Path, stack: contextlib.ExitStack) -> dict[str, Entry]:
    from starlette.testclient import TestClient

    from nlnet.web.app import create_app
    from nlnet.web.schema import Catalog
    from nlnet.web.service import Limits, Service

    app = create_app(Service(Catalog([]), Limits()))
    client = stack.enter_context(TestClient(app, base_url="http://localhost"))
    data = (folder / "noisy.png").read_bytes()

    def post(path: str, **fields: str) -> None:
        answer = client.post(f"/api/{path}", files={"file": ("noisy.png", data)}, data=fields)
        if answer.status_code != 200:
            sys.exit(f"/api/{path}: {answer.status_code} {answer.text}")

    return {
        "the web server": lambda: post("denoise"),
        "the web server, sigma given": lambda: post("denoise", sigma="25"),
        "the web server, preview": lambda: post("preview"),
    }


def _dask_entries(gray: np.ndarray) -> dict[str, Entry]:
    import dask.array as da

    import nlnet.dask

    array = da.from_array(gray, chunks=(150, 150))
    lazy = nlnet.dask.denoise(array, SIGMA, data_range=255)
    return {
        "dask.denoise": lazy.compute,
        "dask.denoise, noise found": nlnet.dask.denoise(array, data_range=255).compute,
        "dask.estimate_sigma": nlnet.dask.estimate_sigma(array).compute,
        "dask.estimate_noise": nlnet.dask.estimate_noise(array, data_range=255).compute,
    }


def _torch_entries(gray: np.ndarray) -> dict[str, Entry]:
    import torch

    from nlnet.torch import Denoiser, NLNet

    torch.set_num_threads(1)  # as nlnet.training does: see nlnet.training.team
    batch = torch.from_numpy(gray[np.newaxis, np.newaxis, :64, :64])
    denoiser = Denoiser()
    networks = {
        backend: NLNet.from_model(nlnet.load_model("gray-5x5-s25"), backend=backend)
        for backend in ("engine", "plain")
    }

    def train(backend: str) -> None:
        networks[backend](batch).square().mean().backward()

    return {
        "torch.Denoiser": lambda: denoiser(batch / 255, SIGMA / 255),
        "a training step": lambda: train("engine"),
        "a training step, plain torch": lambda: train("plain"),
    }


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Keep so many CPUs busy."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(loop.wait)
            stack.callback(loop.kill)
        time.sleep(1.0)
        yield


def time_entry(entry: Entry) -> list[tuple[float, float]]:
    """Return wall and CPU seconds of some calls; the latter are this process's own."""
    times = []
    for _ in range(CALLS):
        wall, cpu = time.perf_counter(), time.process_time()
        entry()
        times.append((time.perf_counter() - wall, time.process_time() - cpu))
    return times


def measure(entries: dict[str, Entry]) -> list[dict[str, Any]]:
    """Time all entries, alone and beside busy loops."""
    for entry in entries.values():
        entry()  # loads what it takes
    alone: dict[str, list[tuple[float, float]]] = {name: [] for name in entries}
    beside: dict[str, list[tuple[float, float]]] = {name: [] for name in entries}
    for _ in range(ROUNDS):
        for name, entry in entries.items():
            alone[name] += time_entry(entry)
        with busy_loops(available_cpus()):
            for name, entry in entries.items():
                beside[name] += time_entry(entry)
    rows = []
    for name in entries:
        idle, idle_cpu = map(statistics.median, zip(*alone[name], strict=True))
        busy, busy_cpu = map(statistics.median, zip(*beside[name], strict=True))
        rows.append(
            {
                "entry": name,
                "idle_seconds": idle,
                "busy_seconds": busy,
                "times": busy / idle,
                # Spinning shows here even where the machine was not idle to begin with.
                "cpu_times": busy_cpu / max(idle_cpu, 1e-9),
            }
        )
    return rows


def main() -> int:
    """Measure, print the table, write it; return 1 if an entry collapses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-write", action="store_true", help="only print")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="entries with TEXT in their name"
    )
    arguments = parser.parse_args()
    report = describe_run()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        entries = make_entries(Path(folder), stack)
        report["entries"] = measure(
            {name: entry for name, entry in entries.items() if arguments.only in name}
        )
    header = ("entry", "idle s", "busy s", "times", "CPU times")
    rows = [
        [row["entry"], *(f"{row[key]:.3f}" for key in ("idle_seconds", "busy_seconds"))]
        + [f"{row[key]:.2f}" for key in ("times", "cpu_times")]
        for row in report["entries"]
    ]
    print(format_table(header, rows))
    if not arguments.no_write and not arguments.only:
        write_json(report, RESULTS)
    slow = [row["entry"] for row in report["entries"] if row["times"] > MOST_TIMES]
    if slow:
        print(f"More than {MOST_TIMES:g} times as long beside busy loops: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
