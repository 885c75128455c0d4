"""The memory of ``nlnet serve`` with large photos: ``python -m benchmarks.web_memory``.

Sends photos near the limits, one after the other, and reads how much memory the server took at most
and what it keeps when it is idle again. Both have a bound, and the exit code is 1 if one is broken.
"""

from __future__ import annotations

import argparse
import dataclasses
import http.client
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.load import BOUNDARY, Server
from benchmarks.machine import describe_run
from benchmarks.pictures import BUNDLED
from benchmarks.report import format_table, write_json
from nlnet.images import ImageFile, encode, read_image
from nlnet.noise import add_noise, store

RESULTS = Path(__file__).resolve().parent / "results" / "web_memory.json"
SIGMA = 10.0
TIMEOUT = 1800.0

MOST_KEPT = 130.0
"""Megabytes above the level of a fresh server, warm, that it may keep when it is idle."""

MOST_USED = 2000.0
"""Megabytes that it may have at any time; the network alone may use 1,342 of them."""


@dataclasses.dataclass(frozen=True)
class Request:
    """An upload: what is asked for, and the size and format of the photo."""

    path: str
    height: int
    width: int
    suffix: str

    @property
    def name(self) -> str:
        """What the table calls it."""
        megapixels = self.height * self.width / 1e6
        return f"{self.path}, {megapixels:.0f} megapixels, {self.suffix[1:]}"


REQUESTS = (
    Request("denoise", 4000, 6000, ".jpg"),
    Request("denoise", 4000, 6000, ".jpg"),
    Request("preview", 7000, 7000, ".jpg"),
    Request("denoise", 7000, 7000, ".jpg"),
)


def measure(server: Server, requests: tuple[Request, ...]) -> list[dict[str, Any]]:
    """Send the requests, and return the megabytes at most and afterwards."""
    _send(server.port, Request("denoise", 200, 300, ".png"))  # and so wait until it is warm
    level = server.memory("VmRSS")
    rows = []
    for request in requests:
        server.forget_peak()
        seconds = _send(server.port, request)
        time.sleep(1.0)
        kept = server.memory("VmRSS") - level
        rows.append(
            {
                "request": request.name,
                "seconds": round(seconds, 2),
                "peak_mb": server.memory("VmHWM"),
                "kept_mb": round(kept, 1),
            }
        )
    return rows


def _send(port: int, request: Request) -> float:
    """Send a noisy photo; return the seconds until the whole answer is there."""
    photo = read_image(BUNDLED).pixels
    times = -(-request.height // photo.shape[0]), -(-request.width // photo.shape[1])
    clean = np.tile(photo, (*times, 1))[: request.height, : request.width]
    noisy = store(add_noise(clean, SIGMA), clean.dtype, 255)
    name = f"photo{request.suffix}"
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    tail = f"\r\n--{BOUNDARY}--\r\n"
    body = head.encode() + encode(ImageFile(noisy), request.suffix) + tail.encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    try:
        start = time.perf_counter()
        content_type = f"multipart/form-data; boundary={BOUNDARY}"
        connection.request("POST", f"/api/{request.path}", body, {"Content-Type": content_type})
        response = connection.getresponse()
        answer = response.read()
        seconds = time.perf_counter() - start
    finally:
        connection.close()
    if response.status != 200:
        sys.exit(f"{request.name}: {response.status} {answer[:200].decode(errors='replace')}")
    return seconds


def main() -> int:
    """Measure, print the table, write it; return 1 if the server takes or keeps too much."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-write", action="store_true", help="only print")
    arguments = parser.parse_args()
    server = Server([], "--timeout", f"{TIMEOUT:g}")
    try:
        rows = measure(server, REQUESTS)
    finally:
        server.stop()
    header = ("request", "seconds", "at most, MB", "kept, MB")
    print(format_table(header, [[str(value) for value in row.values()] for row in rows]))
    if not arguments.no_write:
        write_json({"run": describe_run(), "requests": rows}, RESULTS)
    broken = [
        row["request"] for row in rows if row["peak_mb"] > MOST_USED or row["kept_mb"] > MOST_KEPT
    ]
    if broken:
        print(f"More than {MOST_USED:g} MB, or {MOST_KEPT:g} MB kept: {', '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
