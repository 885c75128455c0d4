"""A server for tests: within the process, or as one of its own."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2 as httpx
import uvicorn
from messages import says
from starlette.testclient import TestClient

from nlnet.model.model import Model
from nlnet.web.app import LOOPBACK_HOSTS, create_app
from nlnet.web.schema import Catalog
from nlnet.web.server import listen, url_of
from nlnet.web.service import Limits, Service

TIMEOUT = 60.0


def service_of(models: Sequence[Model], **limits: Any) -> Service:
    return Service(Catalog(models), Limits(**limits))


@contextmanager
def client_of(models: Sequence[Model], **limits: Any) -> Iterator[TestClient]:
    """A client of an application in this process; errors of the server are answers to it."""
    app = create_app(service_of(models, **limits), LOOPBACK_HOSTS)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


def post(
    client: TestClient, data: bytes, name: str = "noisy.png", path: str = "denoise", **fields: str
) -> httpx.Response:
    return client.post(f"/api/{path}", files={"file": (name, data)}, data=fields)


def told(response: httpx.Response, status: int) -> str:
    """The sentence of an answer that is no result."""
    assert response.status_code == status
    assert set(response.json()) == {"detail"}
    return says(response.json()["detail"])


class ServerProcess:
    """``nlnet serve`` in a process of its own."""

    def __init__(self, *options: object, program: Sequence[str] = ("-m", "nlnet")) -> None:
        command = [sys.executable, *program, "serve", "--port", "0", *map(str, options)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        words = self.process.stdout.readline().split()
        assert words[:2] == ["nlnet", "serves"], (words, self.stop())
        self.url = words[2]
        self.port = int(self.url.rpartition(":")[2])

    def stop(self) -> tuple[int, str]:
        """End it as a service manager does; return its exit code and what it complained about."""
        self.process.terminate()
        try:
            _, complaints = self.process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            _, complaints = self.process.communicate()
        return self.process.returncode, complaints


@contextmanager
def server_process(*options: object) -> Iterator[ServerProcess]:
    """A server process that must end well and without complaints."""
    server = ServerProcess(*options)
    try:
        yield server
    finally:
        code, complaints = server.stop()
    assert (code, complaints) == (0, ""), complaints


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """A server in a thread of this process; gives its address."""
    app = create_app(service)
    with listen("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield url_of(listener)
        finally:
            server.should_exit = True
            thread.join()


def model_options(*files: Path) -> list[object]:
    return [option for file in files for option in ("--model", file)]
