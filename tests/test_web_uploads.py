"""Uploads that are slow, dropped, too many, or cut off by a stop: over real connections."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from web_server import TIMEOUT, ServerProcess, model_options, service_of, serving

from nlnet.model.model import Model

HEAD = (
    b"POST /api/denoise HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"
    b"Content-Type: multipart/form-data; boundary=b\r\n%s\r\n"
)
PART = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.png"\r\n\r\n'


def begin(url: str, body: bytes = PART, size: int = 900, more: bytes = b"") -> socket.socket:
    """Send the beginning of an upload."""
    connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
    connection.settimeout(TIMEOUT)
    connection.sendall(HEAD % (size, more) + body)
    return connection


def answer(connection: socket.socket) -> tuple[int, str]:
    """The status and the sentence that the client gets."""
    received = b""
    while piece := connection.recv(4096):
        received += piece
        if received.endswith(b"}"):
            break
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["detail"]


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_slow_upload_is_given_up(gray_model: Model) -> None:
    service = service_of([gray_model], upload_seconds=0.3)
    # With Expect, the rest is not waited for.
    with serving(service) as url, closing(begin(url, more=b"Expect: 100\r\n")) as slow:
        status, sentence = answer(slow)
    assert status == 408
    assert "0.3 seconds" in sentence
    assert service.held_bytes == 0


def test_a_dropped_upload_leaves_nothing(gray_model: Model) -> None:
    service = service_of([gray_model])
    with serving(service) as url:
        connection = begin(url)
        until(lambda: service.held_bytes == len(PART))
        connection.close()
        until(lambda: service.held_bytes == 0)
        assert service.queue.unfinished == 0


def test_uploads_together_have_a_bound(gray_model: Model) -> None:
    service = service_of([gray_model], upload_bytes=1000)
    body = PART + b"x" * 500
    with serving(service) as url:
        slow = [begin(url, body) for _ in range(service.limits.held_bytes // len(body))]
        until(lambda: service.held_bytes == len(slow) * len(body))
        with closing(begin(url, body + bytes(900 - len(body)))) as late:
            status, sentence = answer(late)
        assert status == 503
        assert "as many images" in sentence
        for connection in slow:
            connection.close()
        until(lambda: service.held_bytes == 0)


def test_a_full_queue_refuses_before_an_upload_begins(gray_model: Model) -> None:
    service = service_of([gray_model], waiting=-1)  # no place at all
    with serving(service) as url:
        with closing(begin(url, b"", more=b"Expect: 100-continue\r\n")) as waiting:
            status, sentence = answer(waiting)
        assert status == 503
        assert "busy" in sentence
        assert service.held_bytes == 0


def test_a_stop_ends_slow_uploads(gray_model_file: Path) -> None:
    server = ServerProcess(*model_options(gray_model_file))
    with closing(begin(server.url)) as slow:
        time.sleep(0.2)
        server.process.terminate()
        status, sentence = answer(slow)
    assert status == 503
    assert "stopping" in sentence
    assert server.stop() == (0, "")
