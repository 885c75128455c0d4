"""Peak memory of one call above its input, in a process of its own.

The figure is the rise of ``ru_maxrss`` over the call: it contains the output and everything the
call holds meanwhile, not the input, the libraries or the weights. That mark only ever rises, and
a process even starts with its parent's, so memory is first filled up to it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

WARM_SIDE = 64


def measure_memory(key: str, size: str, sigma: float, threads: int) -> int | None:
    """Return the peak in bytes, None where the system has no such figure."""
    command = [sys.executable, "-m", "benchmarks.memory", key, size, str(sigma), str(threads)]
    folder = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    peak: int | None = json.loads(done.stdout)
    return peak


def main() -> None:
    """Measure one method on the bundled photo, brought to one size, and print the bytes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("key")
    parser.add_argument("size")
    parser.add_argument("sigma", type=float)
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    print(json.dumps(_measure(**vars(arguments))))


def _measure(key: str, size: str, sigma: float, threads: int) -> int | None:
    from benchmarks.pictures import make_pictures
    from benchmarks.registry import BUILDERS
    from benchmarks.threads import limit_threads

    try:
        import resource
    except ImportError:  # Windows
        return None
    method = BUILDERS[key](sigma)
    picture = make_pictures(method.kind, size, 1, sigma)[0]
    warm = method.prepare(picture.noisy[:WARM_SIDE, :WARM_SIDE].copy())
    prepared = method.prepare(picture.noisy)
    unit = 1 if sys.platform == "darwin" else 1024

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    with limit_threads(threads, pinned=method.pinned):
        method.run(warm, threads)
        ballast = np.ones(max(0, peak() - _resident()), np.uint8)
        before = peak()
        method.run(prepared, threads)
        after = peak()
    assert ballast.size >= 0  # still alive
    return after - before


def _resident() -> int:
    """Bytes in memory now; where that is not known, no less than the peak can be assumed."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return sys.maxsize
    import resource

    return pages * resource.getpagesize()


if __name__ == "__main__":
    main()
