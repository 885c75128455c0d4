"""The command line as its users meet it: time from process start to file written, and memory.

``python -m benchmarks.command``: ``nlnet denoise`` on a gray image of 256x256 pixels, with nothing
compiled yet and then again, and on one of 100 megapixels. Memory is the peak of the whole process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import describe_run
from benchmarks.report import format_table, write_json

RESULTS = Path(__file__).resolve().parent / "results" / "command.json"
SIGMA = 25
SMALL = (256, 256)
HUGE = (10_000, 10_000)

_MAKE = """
import sys
from pathlib import Path
from benchmarks.pictures import noisy_bytes
from nlnet.images import ImageFile, write_image
height, width, sigma = map(int, sys.argv[2:])
write_image(Path(sys.argv[1]), ImageFile(noisy_bytes(height, width, sigma)))
"""


def main() -> None:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.command", description="Measure whole runs of nlnet denoise."
    )
    parser.add_argument("--repeats", type=int, default=5, help="warm runs, the median counts (5)")
    parser.add_argument("--json", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    run = describe_run()
    with tempfile.TemporaryDirectory() as name:
        figures = measure(Path(name), arguments.repeats)
    rows = [
        (what, f"{result['seconds']:.2f}", f"{result['peak_bytes'] / 1e6:.0f}")
        for what, result in figures.items()
    ]
    print(format_table(["nlnet denoise", "seconds", "MB at most"], rows))
    write_json({**run, "sigma": SIGMA, "repeats": arguments.repeats, **figures}, arguments.json)


def measure(folder: Path, repeats: int) -> dict[str, dict[str, float]]:
    """Return seconds and peak memory of the first run, of the next ones, and of a huge image."""
    small, huge = folder / "small.png", folder / "huge.tif"
    for path, (height, width) in ((small, SMALL), (huge, HUGE)):
        make = [sys.executable, "-c", _MAKE, str(path), str(height), str(width), str(SIGMA)]
        subprocess.run(make, check=True, cwd=Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    first = denoise(small, environment)
    warm = [denoise(small, environment) for _ in range(repeats)]
    return {
        "256x256, first run": first,
        "256x256": {key: statistics.median(run[key] for run in warm) for key in first},
        "100 megapixels": denoise(huge, environment),
    }


def denoise(image: Path, environment: dict[str, str]) -> dict[str, float]:
    """Run the command once; the image is gray, and the output beside it."""
    command = [sys.executable, "-m", "nlnet", "denoise", str(image), "--sigma", str(SIGMA)]
    command += ["--overwrite", "-o", str(image.with_stem("denoised"))]
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"The command failed: {' '.join(command)}")
    unit = 1 if sys.platform == "darwin" else 1024
    return {"seconds": seconds, "peak_bytes": float(usage.ru_maxrss * unit)}


if __name__ == "__main__":
    main()
