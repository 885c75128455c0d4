"""Many clients on ``nlnet serve`` at once: ``python -m benchmarks.load``.

Clients send images one after the other and wait as long as a busy server tells them to. Every
result is compared with what the command line makes of the same file. Meanwhile others send their
uploads slowly, break them off, or leave before the answer.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import http.client
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_run
from benchmarks.report import write_json
from nlnet.cli import main as nlnet
from nlnet.images import ImageFile, write_image
from nlnet.model.loading import family_of, shipped_models
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters

RESULTS = Path(__file__).resolve().parent / "results" / "load.json"
SIGMA = 25
SEED = 1
TIMEOUT = 120.0
BOUNDARY = "nlnet-load"
SIZES = {"gray.png": (128, 128), "color.png": (120, 160, 3), "deep.tif": (96, 128)}


@dataclasses.dataclass(frozen=True)
class Task:
    """A request, and the only right answer to it."""

    body: bytes
    expected: bytes


@dataclasses.dataclass
class Tally:
    """What happened, over all clients."""

    answers: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    seconds: list[float] = dataclasses.field(default_factory=list)
    seconds_with_retries: list[float] = dataclasses.field(default_factory=list)
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)

    def add(self, answer: str) -> None:
        """Count an answer."""
        with self.lock:
            self.answers[answer] += 1


class Server:
    """The server under test, and the memory it uses."""

    def __init__(self, models: list[Path], *more: str) -> None:
        options = [word for model in models for word in ("--model", str(model))] + [*more]
        command = [sys.executable, "-m", "nlnet", "serve", "--port", "0", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().split()[2].rpartition(":")[2])

    def memory(self, field: str) -> float:
        """Return VmRSS or VmHWM, its peak, in megabytes."""
        status = Path(f"/proc/{self._process.pid}/status")
        found = re.search(rf"{field}:\s+(\d+)", status.read_text()) if status.exists() else None
        return round(int(found.group(1)) / 1024, 1) if found else float("nan")

    def forget_peak(self) -> None:
        """Let the peak begin anew, at what is used now."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    def stop(self) -> int:
        """Stop it as a service manager does, and return its exit code."""
        self._process.terminate()
        return self._process.wait(TIMEOUT)


def main() -> None:
    """Parse the arguments, run the load, and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--model", type=Path, action="append", default=[])
    parser.add_argument("--json", type=Path, help="write the results here, not to the default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        models = arguments.model or _stand_ins(Path(folder))
        result = run(arguments.clients, arguments.seconds, models, Path(folder))
    _print(result)
    write_json({"run": describe_run(), **result}, arguments.json or RESULTS)
    if result["wrong"] or result["exit_code"] or set(result["answers"]) - {"200", "503"}:
        sys.exit("the server gave a wrong answer, or none")


def run(clients: int, seconds: float, models: list[Path], folder: Path) -> dict[str, Any]:
    """Start the server, let the clients loose on it, and say how it went."""
    tasks = [_task(folder, name, shape, models) for name, shape in SIZES.items()]
    server = Server(models)
    tally, stop = Tally(), threading.Event()
    _send(server.port, tasks[0].body)  # and so wait until it is warm
    before = server.memory("VmRSS")
    threads = [
        threading.Thread(target=_client, args=(server.port, tasks, number, tally, stop))
        for number in range(clients)
    ]
    threads += [
        threading.Thread(target=nuisance, args=(server.port, tasks[0].body, stop))
        for nuisance in (_slow, _dropped, _impatient)
        for _ in range(4)
    ]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - start
    memory = {"before": before, "peak": server.memory("VmHWM"), "after": server.memory("VmRSS")}
    return _summary(clients, took, tally, memory) | {"exit_code": server.stop()}


def _stand_ins(folder: Path) -> list[Path]:
    """Return untrained models where none are shipped: they take as long."""
    if {"gray-5x5", "color-5x5"} <= set(map(family_of, shipped_models())):
        return []
    files = []
    for channels, name in ((1, "untrained-gray"), (3, "untrained-color")):
        config = NetworkConfig(channels=channels)
        files.append(folder / f"{name}.safetensors")
        Model(config, initial_parameters(config), sigma=25.0, name=name).save(files[-1])
    return files


def _task(folder: Path, name: str, shape: tuple[int, ...], models: list[Path]) -> Task:
    """Make a noisy file, and let the command line denoise it."""
    generator = np.random.default_rng(SEED)
    clean = 60 + 130 * np.linspace(0, 1, shape[1]).reshape((1, -1) + (1,) * (len(shape) - 2))
    noisy = np.clip(clean + generator.normal(0, SIGMA, shape), 0, 255).astype(np.uint8)
    pixels = noisy.astype(np.uint16) * 257 if name.startswith("deep") else noisy
    source, target = folder / name, folder / f"clean-{name}"
    write_image(source, ImageFile(pixels))
    words = ["denoise", source, "-o", target, "--sigma", SIGMA]
    if models:
        words += ["--model", models[len(shape) - 2]]
    if nlnet([str(word) for word in words]):
        sys.exit("the command line cannot denoise the images of this test")
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="sigma"\r\n\r\n{SIGMA}\r\n'.encode(),
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; '.encode(),
        f'filename="{name}"\r\n\r\n'.encode(),
        source.read_bytes(),
        f"\r\n--{BOUNDARY}--\r\n".encode(),
    ]
    return Task(b"".join(parts), target.read_bytes())


def _send(port: int, body: bytes) -> tuple[int, bytes, float]:
    """Send one request; return its status, its body, and the seconds to wait before another."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        content_type = f"multipart/form-data; boundary={BOUNDARY}"
        connection.request("POST", "/api/denoise", body, {"Content-Type": content_type})
        response = connection.getresponse()
        return response.status, response.read(), float(response.headers.get("Retry-After", 0))
    finally:
        connection.close()


def _client(port: int, tasks: list[Task], number: int, tally: Tally, stop: threading.Event) -> None:
    choice = random.Random(number)
    while not stop.is_set():
        task = choice.choice(tasks)
        asked = time.perf_counter()
        status = 0
        while status != 200 and not stop.is_set():
            start = time.perf_counter()
            try:
                status, content, wait = _send(port, task.body)
            except (OSError, http.client.HTTPException) as error:
                tally.add(type(error).__name__)
                continue
            end = time.perf_counter()
            tally.add(str(status))
            if status == 200:
                tally.seconds.append(end - start)
                tally.seconds_with_retries.append(end - asked)
                if content != task.expected:
                    tally.add("wrong")
            else:
                # A little apart, or all who were refused together come back together.
                stop.wait(wait * choice.uniform(1.0, 1.5))


def _start_upload(port: int, body: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
    head = (
        "POST /api/denoise HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    connection.sendall(head.encode())
    return connection


def _slow(port: int, body: bytes, stop: threading.Event) -> None:
    """Send an upload byte by byte, and never finish."""
    with _start_upload(port, body) as connection:
        for place in range(len(body)):
            if stop.wait(0.05):
                return
            try:
                connection.sendall(body[place : place + 1])
            except OSError:
                return


def _dropped(port: int, body: bytes, stop: threading.Event) -> None:
    """Break uploads off in the middle."""
    while not stop.wait(0.5):
        with _start_upload(port, body) as connection:
            connection.sendall(body[: len(body) // 2])


def _impatient(port: int, body: bytes, stop: threading.Event) -> None:
    """Leave before the answer."""
    while not stop.wait(0.5):
        with _start_upload(port, body) as connection:
            connection.sendall(body)
            stop.wait(0.05)


def _summary(clients: int, took: float, tally: Tally, memory: dict[str, float]) -> dict[str, Any]:
    answers = dict(tally.answers)
    wrong = answers.pop("wrong", 0)
    return {
        "clients": clients,
        "seconds": round(took, 1),
        "answers": answers,
        "wrong": wrong,
        "images_per_second": round(len(tally.seconds) / took, 2),
        "latency": _percentiles(tally.seconds),
        "latency_with_retries": _percentiles(tally.seconds_with_retries),
        "memory_mb": memory,
    }


def _percentiles(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {}
    hundredths = statistics.quantiles(seconds, n=100, method="inclusive")
    return {"p50": round(hundredths[49], 3), "p99": round(hundredths[98], 3)}


def _print(result: dict[str, Any]) -> None:
    print(f"{result['clients']} clients for {result['seconds']} s")
    for status, count in sorted(result["answers"].items()):
        print(f"  {count:6d} x {status}")
    print(f"  {result['wrong']:6d} wrong images, exit code {result['exit_code']}")
    print(f"  {result['images_per_second']:6.2f} images a second")
    for name in ("latency", "latency_with_retries"):
        values = ", ".join(f"{key} {value:.2f} s" for key, value in result[name].items())
        print(f"  {name.replace('_', ' ')}: {values}")
    memory = ", ".join(f"{when} {size:.0f} MB" for when, size in result["memory_mb"].items())
    print(f"  memory: {memory}")


if __name__ == "__main__":
    main()
