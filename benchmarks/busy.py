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
CALLS = 7

Entry = Callable[[], Any]


def make_entries(folder: Path) -> dict[str, Entry]:
    """Return what is measured, by name; all of it on a photo of 451x300 pixels."""
    clean = read_image(BUNDLED).pixels
    color = add_noise(clean, SIGMA).astype(np.float32)
    gray = add_noise(luma(clean), SIGMA).astype(np.float32)
    stored = np.rint(np.clip(color, 0, 255)).astype(np.uint8)
    write_image(folder / "noisy.png", ImageFile(stored))
    command = [sys.executable, "-m", "nlnet", "denoise", "noisy.png", "-o", "o.png", "--overwrite"]
    files = (ImageFile(clean), [("noisy", ImageFile(stored))])
    entries: dict[str, Entry] = {
        "estimate_sigma, gray": lambda: nlnet.estimate_sigma(gray),
        "estimate_sigma, color": lambda: nlnet.estimate_sigma(color),
        "denoise, gray": lambda: nlnet.denoise(gray, SIGMA, data_range=255),
        "denoise, color": lambda: nlnet.denoise(color, SIGMA, data_range=255),
        "denoise, sigma estimated": lambda: nlnet.denoise(stored),
        "denoise_stack": lambda: nlnet.denoise_stack(np.stack([gray] * 3), SIGMA, data_range=255),
        "denoise_file": lambda: denoise_file(folder / "noisy.png", folder / "o.png", Settings()),
        "compare": lambda: compare(*files),
        "psnr and ssim": lambda: (psnr(clean, color), ssim(clean, color)),
        "the command": lambda: subprocess.run(command, cwd=folder, check=True, capture_output=True),
    }
    return entries | _dask_entries(gray) | _torch_entries(gray)


def _dask_entries(gray: np.ndarray) -> dict[str, Entry]:
    import dask.array as da

    import nlnet.dask

    lazy = nlnet.dask.denoise(da.from_array(gray, chunks=(150, 150)), SIGMA, data_range=255)
    return {"dask.denoise": lazy.compute}


def _torch_entries(gray: np.ndarray) -> dict[str, Entry]:
    import torch

    from nlnet.torch import Denoiser, NLNet

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


def time_entry(entry: Entry) -> tuple[float, float]:
    """Return the median of wall and CPU seconds; the latter are this process's own."""
    walls, cpus = [], []
    for _ in range(CALLS):
        wall, cpu = time.perf_counter(), time.process_time()
        entry()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(cpus)


def measure(entries: dict[str, Entry]) -> list[dict[str, Any]]:
    """Time all entries, alone and beside busy loops."""
    for entry in entries.values():
        entry()  # loads what it takes
    alone = {name: time_entry(entry) for name, entry in entries.items()}
    with busy_loops(available_cpus()):
        beside = {name: time_entry(entry) for name, entry in entries.items()}
    return [
        {
            "entry": name,
            "idle_seconds": alone[name][0],
            "busy_seconds": beside[name][0],
            "times": beside[name][0] / alone[name][0],
            # Spinning shows here even where the machine was not idle to begin with.
            "cpu_times": beside[name][1] / max(alone[name][1], 1e-9),
        }
        for name in entries
    ]


def main() -> int:
    """Measure, print the table, write it; return 1 if an entry collapses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-write", action="store_true", help="only print")
    arguments = parser.parse_args()
    report = describe_run()
    with tempfile.TemporaryDirectory() as folder:
        report["entries"] = measure(make_entries(Path(folder)))
    header = ("entry", "idle s", "busy s", "times", "CPU times")
    rows = [
        [row["entry"], *(f"{row[key]:.3f}" for key in ("idle_seconds", "busy_seconds"))]
        + [f"{row[key]:.2f}" for key in ("times", "cpu_times")]
        for row in report["entries"]
    ]
    print(format_table(header, rows))
    if not arguments.no_write:
        write_json(report, RESULTS)
    slow = [row["entry"] for row in report["entries"] if row["times"] > MOST_TIMES]
    if slow:
        print(f"More than {MOST_TIMES:g} times as long beside busy loops: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    raise SystemExit(main())
