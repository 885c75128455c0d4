"""Runs that end in the middle: nothing half-written, and nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nlnet.images import ImageFile, read_image, write_image


@pytest.mark.skipif(sys.platform != "linux", reason="needs a small file system")
def test_a_disk_that_is_really_full(
    tmp_path: Path, gray_model_file: Path, fails: Callable[..., str]
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no permission to mount a small file system")
    try:
        noise = np.random.default_rng(0).integers(0, 256, (300, 300)).astype(np.uint8)
        write_image(tmp_path / "large.png", ImageFile(noise))
        write_image(disk / "out.png", ImageFile(noise[:20, :20]))
        before = (disk / "out.png").read_bytes()
        options = ["-o", disk / "out.png", "--sigma", 1, "--overwrite", "--model", gray_model_file]
        assert "No space left" in fails("denoise", tmp_path / "large.png", *options)
        assert (disk / "out.png").read_bytes() == before
        assert [path.name for path in disk.iterdir()] == ["out.png"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


STARTER = """
import os, sys
import numpy, nlnet.files.many_files, nlnet.files.plan
from nlnet.cli import main
# Imports and loads here, so that each run starts at once.
nlnet.denoise(numpy.zeros((64, 64), "u1"), 25, model=sys.argv[-1], threads=1)
for _ in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os._exit(main(sys.argv[1:]))
    print(pid, flush=True)
    os.waitpid(pid, 0)
    print("ended", flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")
def test_kill_9_ten_times_at_random(tmp_path: Path, gray_model_file: Path) -> None:
    """No half-written file under a final name; the next run does the rest and only the rest."""
    names = {f"{number:02}.png" for number in range(40)}
    (tmp_path / "in").mkdir()
    for name in names:
        pixels = np.random.default_rng(int(name[:2])).integers(0, 256, (150, 150))
        write_image(tmp_path / "in" / name, ImageFile(pixels.astype(np.uint8)))
    out = tmp_path / "out"
    out.mkdir()
    options = ["--sigma", "25", "--workers", "2", "--model", gray_model_file]
    command = [sys.executable, "-c", STARTER, "denoise", tmp_path / "in", "-o", out, *options]
    rng = np.random.default_rng(0)
    seen: dict[str, tuple[int, bytes]] = {}

    def check() -> None:
        found = {path.name: path for path in out.glob("*.png")}
        assert set(seen) <= set(found)
        for name, path in found.items():
            state = (path.stat().st_mtime_ns, path.read_bytes())
            assert seen.setdefault(name, state) == state  # written once, and never again
            assert read_image(path).pixels.shape == (150, 150)

    with subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        for _ in range(10):
            starter.stdin.write("go\n")
            run_id = int(starter.stdout.readline())
            wanted, deadline = len(seen) + int(rng.integers(1, 4)), time.monotonic() + 60
            while len(list(out.glob("*.png"))) < wanted:
                assert time.monotonic() < deadline
                time.sleep(0.001)
            time.sleep(float(rng.uniform(0, 0.02)))
            os.kill(run_id, signal.SIGKILL)
            while starter.stdout.readline() != "ended\n":
                pass
            check()
        before = len(seen)
        starter.stdin.write("go\n")
        said = [starter.stdout.readline() for _ in range(3)]
        starter.stdin.close()
    check()
    assert before < len(names)
    assert set(seen) == names
    rest = f"{len(names) - before} written, {before} skipped"
    assert any(line.startswith(rest) for line in said)
