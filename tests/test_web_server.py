"""``nlnet serve`` as a process: how it starts, what it survives, and how it ends."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2 as httpx
import numpy as np
import pytest
from pictures import random_image
from test_family import make_family
from web_server import TIMEOUT, ServerProcess, model_options, server_process

import nlnet
from nlnet.cli import main
from nlnet.errors import InputError
from nlnet.images import ImageFile, decode, encode, read_image
from nlnet.model.family import Family
from nlnet.model.model import Model
from nlnet.web.schema import Catalog
from nlnet.web.server import is_loopback, listen, url_of


@pytest.fixture(scope="module")
def server(gray_model_file: Path, color_model_file: Path) -> Iterator[ServerProcess]:
    options = model_options(gray_model_file, color_model_file)
    with server_process(*options, "--queue", 2) as server:
        yield server


def upload(server: ServerProcess, data: bytes, **fields: str) -> httpx.Response:
    files = {"file": ("noisy.png", data)}
    return httpx.post(f"{server.url}/api/denoise", files=files, data=fields, timeout=TIMEOUT)


SMALL = encode(ImageFile(random_image()), ".png")


def long_work(height: int = 1200) -> bytes:
    """An image that keeps even a small network busy for a while."""
    return encode(ImageFile(random_image((height, 1500))), ".png")


def test_it_gives_the_pixels_of_the_command_line(
    server: ServerProcess, noisy_file: Path, gray_model_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.png"
    arguments = ["denoise", noisy_file, "-o", out, "--sigma", 20, "--model", gray_model_file]
    assert main([str(argument) for argument in arguments]) == 0
    response = upload(server, noisy_file.read_bytes(), sigma="20")
    pixels = decode(response.content, "result").pixels
    np.testing.assert_array_equal(pixels, read_image(out).pixels)


def test_slow_and_dropped_uploads_do_no_harm(server: ServerProcess) -> None:
    head = b"POST /api/denoise HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n"
    head += b"Content-Type: multipart/form-data; boundary=b\r\n\r\n"
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(30)]
    try:
        for number, connection in enumerate(idle):
            connection.sendall((head + part)[: 5 + 13 * number])
        assert upload(server, SMALL, sigma="20").status_code == 200
        for connection in idle[::2]:
            connection.close()
        assert upload(server, SMALL, sigma="20").status_code == 200
    finally:
        for connection in idle:
            connection.close()
    wait_until_idle(server)


def wait_until_idle(server: ServerProcess) -> None:
    deadline = time.monotonic() + TIMEOUT
    while httpx.get(f"{server.url}/healthz").json()["jobs"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_client_that_leaves_frees_its_place(server: ServerProcess) -> None:
    boundary = {"Content-Type": "multipart/form-data; boundary=b"}
    part = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'
    body = part + long_work() + b"\r\n--b--\r\n"
    leaving = [http.client.HTTPConnection("127.0.0.1", server.port) for _ in range(3)]
    for connection in leaving:
        connection.request("POST", "/api/denoise", body, boundary)
    for connection in leaving:
        connection.close()
    wait_until_idle(server)
    assert upload(server, SMALL, sigma="20").status_code == 200


def test_more_than_it_can_take_is_told(server: ServerProcess) -> None:
    work = long_work(600)
    answers: list[httpx.Response] = []
    clients = [
        threading.Thread(target=lambda: answers.append(upload(server, work, sigma="20")))
        for _ in range(6)
    ]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    statuses = sorted(answer.status_code for answer in answers)
    assert set(statuses) == {200, 503}
    assert statuses.count(200) >= 3
    for answer in answers:
        if answer.status_code == 503:
            assert 1 <= int(answer.headers["retry-after"]) <= 60
            assert "busy" in answer.json()["detail"]
    assert len({answer.content for answer in answers if answer.status_code == 200}) == 1


def test_a_stop_finishes_the_running_job(gray_model_file: Path) -> None:
    server = ServerProcess("--host", "0.0.0.0", *model_options(gray_model_file))
    health = httpx.get(f"{server.url}/healthz", headers={"Host": "scanner.example"})
    assert health.json()["version"] == nlnet.__version__
    wait_until_idle(server)
    work = long_work(2400)
    answers: list[httpx.Response] = []
    clients = []
    for _ in range(2):
        clients.append(
            threading.Thread(target=lambda: answers.append(upload(server, work, sigma="20")))
        )
        clients[-1].start()
        deadline = time.monotonic() + TIMEOUT
        while httpx.get(f"{server.url}/healthz").json()["jobs"] < len(clients):
            assert time.monotonic() < deadline
    stalled = socket.create_connection(("127.0.0.1", server.port))
    stalled.sendall(b"POST /api/denoise HTTP/1.1\r\nHost: localhost\r\n")
    server.process.send_signal(signal.SIGINT)
    for client in clients:
        client.join()
    code, complaints = server.stop()
    stalled.close()
    assert sorted(answer.status_code for answer in answers) == [200, 503]
    assert code == 0
    assert complaints.startswith("nlnet: warning: everyone")  # it was not on loopback
    assert complaints.count("\n") == 1
    with pytest.raises(httpx.ConnectError):
        httpx.get(server.url)


def test_stops_that_are_asked_for_until_the_process_is_gone_are_no_error(
    gray_model_file: Path,
) -> None:
    server = ServerProcess(*model_options(gray_model_file))
    while server.process.poll() is None:
        server.process.terminate()
        time.sleep(1e-3)
    assert server.stop() == (0, "")


# the start


def test_a_port_in_use(fails: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        message = fails("serve", "--port", taken.getsockname()[1])
    assert "the port is in use; choose another with --port" in message


@pytest.mark.parametrize("host", ["no.such.host.invalid", "300.1.1.1", "192.0.2.1"])
def test_an_address_that_is_not_here(fails: Callable[..., str], host: str) -> None:
    assert "--host" in fails("serve", "--port", 0, "--host", host)


@pytest.mark.parametrize("port", ["65536", "-1", "http"])
def test_bad_ports(fails: Callable[..., str], port: str) -> None:
    assert repr(port) in fails("serve", f"--port={port}")


@pytest.mark.parametrize("name", ["fastapi", "fastapi_offline"])
def test_a_missing_extra(name: str) -> None:
    code = f"import sys; sys.modules[{name!r}] = None; from nlnet.cli import main; "
    code += "sys.exit(main(['serve']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"This needs {name}" in done.stderr
    assert "pip install 'nlnet[web]'" in done.stderr


def test_a_model_that_is_not_there(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "missing.safetensors" in fails("serve", "--model", tmp_path / "missing.safetensors")


def test_models_with_names_that_do_not_work(
    fails: Callable[..., str], gray_model: Model, gray_model_file: Path, tmp_path: Path
) -> None:
    assert "Two models" in fails("serve", *model_options(gray_model_file, gray_model_file))
    odd = Model(gray_model.config, gray_model.stages, 25.0, "größer")
    odd.save(tmp_path / "odd.safetensors")
    assert "ASCII" in fails("serve", *model_options(tmp_path / "odd.safetensors"))


def test_addresses() -> None:
    for host, url in [("127.0.0.1", "http://127.0.0.1"), ("0.0.0.0", "http://127.0.0.1")]:
        with listen(host, 0) as listener:
            assert url_of(listener) == f"{url}:{listener.getsockname()[1]}"
            assert is_loopback(listener) is (host == "127.0.0.1")
    try:
        with listen("::1", 0) as listener:
            assert url_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"
            assert is_loopback(listener)
    except InputError:
        pass  # a machine without IPv6


# models


def test_own_models_come_first_where_they_fit(gray_model: Model, color_model: Model) -> None:
    weak = Model(gray_model.config, gray_model.stages, 5.0, "weak")
    catalog = Catalog([gray_model, weak, color_model])
    assert catalog.names[0] == "auto"
    assert catalog.choose("auto", 1, 6.0) is weak
    assert catalog.choose("auto", 1, 40.0) is gray_model
    assert catalog.choose("auto", 1, 5e-324) is weak
    assert catalog.choose("auto", 3, 6.0) is color_model
    assert catalog.choose("weak", 1, 40.0) is weak


def test_shipped_models_are_offered(gray_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = {"gray": 0.0} | {f"gray-5x5-s{sigma}": float(sigma) for sigma in (15, 25, 50)}

    def load(name: str) -> Model | Family:
        if name == "gray":
            return make_family(name=name)
        return Model(gray_model.config, gray_model.stages, shipped[name], name)

    monkeypatch.setattr("nlnet.model.loading.shipped_models", lambda: tuple(shipped))
    monkeypatch.setattr("nlnet.model.loading._load_shipped", load)
    catalog = Catalog()
    assert catalog.names == ("auto", "gray-5x5", *shipped)
    assert catalog.choose("auto", 1, 40.0).name == "gray"
    assert catalog.choose("gray", 1, 40.0).stages[0].step_size == pytest.approx(
        make_family().at(40.0).stages[0].step_size
    )
    assert catalog.choose("gray-5x5", 1, 10.0).name == "gray-5x5-s15"
    assert catalog.choose("gray-5x5", 1, 5e-324).name == "gray-5x5-s15"
    assert catalog.choose("gray-5x5-s25", 1, 10.0).name == "gray-5x5-s25"
