"""Stops; HEAD; the names that curl saves; the memory of large images."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from pictures import random_image
from starlette.testclient import TestClient
from web_server import TIMEOUT, ServerProcess, client_of, model_options, told

from nlnet.images import ImageFile, decode, encode
from nlnet.model.model import Model


@pytest.fixture
def client(gray_model: Model) -> Iterator[TestClient]:
    with client_of([gray_model]) as client:
        yield client


# stops


def running_server(
    model_file: Path,
) -> tuple[ServerProcess, threading.Thread, list[httpx.Response]]:
    """A server with an image at hand, and the answer to it once it is there."""
    server = ServerProcess(*model_options(model_file))
    data = encode(ImageFile(random_image((2000, 2500))), ".png")
    answers: list[httpx.Response] = []
    files, fields = {"file": ("a.png", data)}, {"sigma": "20", "job": "the-only-job"}

    def ask() -> None:
        url = f"{server.url}/api/denoise"
        answers.append(httpx.post(url, files=files, data=fields, timeout=TIMEOUT))

    client = threading.Thread(target=ask)
    client.start()
    deadline = time.monotonic() + TIMEOUT
    while httpx.get(f"{server.url}/api/jobs/the-only-job").json()["share"] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return server, client, answers


def test_one_interrupt_says_what_it_waits_for(gray_model_file: Path) -> None:
    server, client, answers = running_server(gray_model_file)
    server.process.send_signal(signal.SIGINT)
    assert server.process.stdout is not None
    said = server.process.stdout.readline()
    assert "finishes the image at hand, which is " in said
    assert said.endswith("% done; Ctrl-C again stops at once\n")
    client.join()
    assert answers[0].status_code == 200
    assert server.process.stdout.readline() == "nlnet has stopped\n"
    assert server.stop() == (0, "")


def test_a_second_interrupt_ends_at_once_and_tells_the_client(gray_model_file: Path) -> None:
    server, client, answers = running_server(gray_model_file)
    server.process.send_signal(signal.SIGINT)
    assert server.process.stdout is not None
    server.process.stdout.readline()
    server.process.send_signal(signal.SIGINT)
    client.join()
    assert "stopping" in told(answers[0], 503)
    assert server.process.wait(TIMEOUT) == 130
    assert server.stop() == (130, "nlnet: interrupted\n")


# HEAD


@pytest.mark.parametrize("path", ["/", "/docs", "/healthz", "/api/models", "/static/app.js"])
def test_head_is_get_without_the_body(client: TestClient, path: str) -> None:
    head, whole = client.head(path), client.get(path)
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == str(len(whole.content))
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert client.head("/api/denoise").status_code == 405


def test_what_curl_saves(gray_model_file: Path, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl")
    server = ServerProcess(*model_options(gray_model_file))
    (tmp_path / "noisy.png").write_bytes(encode(ImageFile(random_image()), ".png"))
    form = ["-F", "file=@noisy.png", "-F", "sigma=25"]
    command = [curl, "--silent", "--show-error", "-OJ", *form, f"{server.url}/api/denoise"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    head = subprocess.run([curl, "-sI", server.url], capture_output=True, text=True, check=False)
    server.stop()
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["noisy-denoised.png", "noisy.png"]
    assert decode((tmp_path / "noisy-denoised.png").read_bytes(), "x").pixels.shape == (20, 24)
    assert head.stdout.startswith("HTTP/1.1 200")


# memory


@pytest.mark.skipif(sys.platform != "linux", reason="memory is given back by glibc's means")
def test_memory_is_given_back_after_a_large_image(gray_model_file: Path) -> None:
    server = ServerProcess(*model_options(gray_model_file))
    data = encode(ImageFile(random_image((3000, 3000))), ".png")

    def resident() -> int:
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) // 1024

    try:
        url = f"{server.url}/api/denoise"
        small = encode(ImageFile(random_image()), ".png")
        httpx.post(url, files={"file": ("a.png", small)}, data={"sigma": "20"}, timeout=TIMEOUT)
        before = resident()
        for _ in range(3):
            files, fields = {"file": ("a.png", data)}, {"sigma": "20"}
            assert httpx.post(url, files=files, data=fields, timeout=TIMEOUT).status_code == 200
        # 200 and more, and growing with every image, if it is kept.
        deadline = time.monotonic() + 10
        while resident() - before > 130 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert resident() - before < 130
    finally:
        server.stop()
