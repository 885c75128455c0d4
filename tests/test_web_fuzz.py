"""Requests that nobody would think of: the server answers each with a result or a sentence.

``make fuzz-web`` sends 10,000 damaged uploads; the normal tests fewer.
"""

from __future__ import annotations

import collections
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import mutations
import numpy as np
import pytest
from web_server import ServerProcess, model_options, server_process, service_of, serving

from nlnet.model.model import Model

EXAMPLES = int(os.environ.get("NLNET_FUZZ_EXAMPLES", "8"))
UPLOADS = int(os.environ.get("NLNET_FUZZ_UPLOADS", "150"))
SECONDS = 15.0
GROWTH_BYTES = 50 * 2**20
SETTLED = min(500, UPLOADS // 2)
"""Uploads after which the server has met every decoder, and needs no more memory."""

ANSWERS = {200, 400, 413, 415, 422}


def resident_bytes(pid: int) -> int | None:
    """Return the memory that a process holds, None where the system does not say."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def answer(server: ServerProcess, path: str, sent: mutations.Sent) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
    try:
        headers = {"Content-Type": sent.content_type.decode()}
        connection.request("POST", path, sent.body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def server(gray_model_file: Path, color_model_file: Path) -> Iterator[ServerProcess]:
    options = model_options(gray_model_file, color_model_file)
    with server_process(*options, "--max-upload", 1, "--max-pixels", 1) as server:
        yield server


def test_no_upload_breaks_the_server(server: ServerProcess) -> None:
    files = mutations.sound_files()
    statuses: collections.Counter[int] = collections.Counter()
    slowest = 0.0
    answer(server, "/api/denoise", mutations.Sent(b"", b""))
    settled: int | None = None
    for seed in range(UPLOADS):
        if seed == SETTLED:
            settled = resident_bytes(server.process.pid)
        random = np.random.default_rng(seed)
        damaged = mutations.damage(files[random.integers(len(files))], files, random)
        sent = mutations.request(damaged, files, random)
        path = "/api/preview" if random.random() < 0.2 else "/api/denoise"
        start = time.monotonic()
        status, body = answer(server, path, sent)
        slowest = max(slowest, time.monotonic() - start)
        statuses[status] += 1
        assert status in ANSWERS, f"seed {seed}: {status} {body!r}"
        if status != 200:
            sentence = json.loads(body)["detail"]
            assert "\n" not in sentence, f"seed {seed}: {sentence}"
    growth = "memory unknown"
    if settled is not None:
        bytes_more = resident_bytes(server.process.pid) - settled
        assert bytes_more < GROWTH_BYTES
        growth = f"{bytes_more / 2**20:+.0f} MB"
    # Some must have come through, or the damage was too great to reach the decoders' depths.
    assert statuses[200] > UPLOADS / 50
    assert statuses[422] > UPLOADS / 5
    counts = ", ".join(f"{count} times {status}" for status, count in sorted(statuses.items()))
    sys.stdout.write(f"{counts}; slowest {slowest:.2f} s; {growth}\n")


def test_the_api_is_as_it_describes_itself(
    gray_model: Model, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Models for gray images only, as the images are: the description cannot say what fits what.
    monkeypatch.setattr("nlnet.model.loading.shipped_models", tuple)
    # Nor that a quality goes with no model but auto.
    monkeypatch.setattr("nlnet.files.settings.check_quality", lambda quality, model: None)
    command = [sys.executable, "-m", "schemathesis.cli", "run"]
    options = ["--checks", "all", "--max-examples", str(EXAMPLES), "--seed", "1", "--no-color"]
    tests = str(Path(__file__).parent)
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": tests}
    with serving(service_of([gray_model])) as url:
        done = subprocess.run(
            [*command, f"{url}/openapi.json", *options],
            cwd=tmp_path,  # where it leaves its notes
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Tested: 5" in done.stdout
