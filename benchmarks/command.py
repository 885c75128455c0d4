"""The command line as its users meet it: time from process start to file written, memory, size.

``python -m benchmarks.command`` installs nlnet with all it needs into an environment of its own and
measures there: the size of what was installed; ``nlnet denoise`` on a gray image of 481x321 pixels,
the very first run and later ones, in turns with a script that does the same by OpenCV's non-local
means; ``import nlnet`` with a first ``nlnet.denoise`` of 256x256 pixels; and ``nlnet denoise`` on
100 megapixels. Memory is the peak of the whole process.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from benchmarks.machine import describe_run
from benchmarks.report import format_table, write_json

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results" / "command.json"
SIGMA = 25
SMALL = (321, 481)
HUGE = (10_000, 10_000)

_MAKE = """
import sys
from pathlib import Path
from benchmarks.pictures import noisy_bytes
from nlnet.images import ImageFile, write_image
height, width, sigma = map(int, sys.argv[2:])
write_image(Path(sys.argv[1]), ImageFile(noisy_bytes(height, width, sigma)))
"""

_OPENCV = """
import sys
import cv2
noisy = cv2.imread(sys.argv[1], cv2.IMREAD_UNCHANGED)
assert noisy is not None and noisy.ndim == 2
clean = cv2.fastNlMeansDenoising(noisy, None, 25, 5, 31)
assert cv2.imwrite(sys.argv[2], clean)
"""

# The image is there before the clock starts, and so is what makes it.
_FIRST_CALL = """
import array, random, time
random.seed(0)
values = array.array("f", (random.gauss(128, 25) for _ in range(256 * 256)))
start = time.perf_counter()
import nlnet
import numpy
nlnet.denoise(numpy.asarray(values).reshape(256, 256), sigma=25, data_range=255)
print(time.perf_counter() - start)
"""


def main() -> None:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.command", description="Measure whole runs of nlnet denoise."
    )
    parser.add_argument("--repeats", type=int, default=9, help="later runs, the median counts (9)")
    parser.add_argument("--no-huge", action="store_true", help="leave the 100 megapixels out")
    parser.add_argument("--json", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    run = describe_run()
    with tempfile.TemporaryDirectory() as name:
        python, size = install(Path(name) / "environment")
        figures = measure(Path(name), python, arguments.repeats, huge=not arguments.no_huge)
        calls = [first_call(python) for _ in range(arguments.repeats)]
    rows = [
        (what, f"{result['seconds']:.2f}", f"{result['peak_bytes'] / 1e6:.0f}")
        for what, result in figures.items()
    ]
    print(format_table(["whole process", "seconds", "MB at most"], rows))
    median, least = statistics.median(calls), min(calls)
    print(f"import nlnet and a first call, 256x256: {median:.3f} s, at least {least:.3f} s")
    print(f"installed with all it needs: {size / 1e6:.0f} MB")
    content = {
        **run,
        "sigma": SIGMA,
        "repeats": arguments.repeats,
        "installed_bytes": size,
        "first_call_seconds": {"median": median, "least": least},
        **figures,
    }
    write_json(content, arguments.json)


def install(environment: Path) -> tuple[Path, int]:
    """Install nlnet into a new environment; return its Python, and the bytes it takes there."""
    venv.create(environment, with_pip=True)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    packages = _packages_of(python)
    before = _bytes_of(packages)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, str(ROOT)], check=True)
    return python, _bytes_of(packages) - before


def _packages_of(python: Path) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('platlib'))"
    told = subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
    return Path(told.stdout.strip())


def _bytes_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def measure(folder: Path, python: Path, repeats: int, *, huge: bool) -> dict[str, dict[str, float]]:
    """Return seconds and peak memory of the first run, of later ones, and of a huge image."""
    small, large = folder / "small.png", folder / "huge.tif"
    _make(small, SMALL)
    denoise = [str(python), "-m", "nlnet", "denoise", "--sigma", str(SIGMA), "--overwrite"]
    runs = {
        "nlnet denoise, 481x321": [*denoise, str(small), "-o", str(folder / "nlnet.png")],
        "OpenCV's non-local means, 481x321": [
            *(sys.executable, "-c", _OPENCV, str(small), str(folder / "opencv.png"))
        ],
    }
    figures = {"nlnet denoise, 481x321, first run": timed(runs["nlnet denoise, 481x321"])}
    timed(runs["OpenCV's non-local means, 481x321"])
    found = [{name: timed(command) for name, command in runs.items()} for _ in range(repeats)]
    for name in runs:
        figures[name] = {
            key: statistics.median(turn[name][key] for turn in found)
            for key in ("seconds", "peak_bytes")
        }
    if huge:
        _make(large, HUGE)
        command = [*denoise, str(large), "-o", str(folder / "denoised.tif")]
        figures["nlnet denoise, 100 megapixels"] = timed(command)
    return figures


def _make(path: Path, size: tuple[int, int]) -> None:
    make = [sys.executable, "-c", _MAKE, str(path), *map(str, size), str(SIGMA)]
    subprocess.run(make, check=True, cwd=ROOT)


def timed(command: list[str]) -> dict[str, float]:
    """Run a command once, as from a shell in some other folder."""
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    start = time.perf_counter()
    process = subprocess.Popen(command, env=outside, stderr=subprocess.DEVNULL, cwd="/")
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise SystemExit(f"The command failed: {' '.join(command)}")
    unit = 1 if sys.platform == "darwin" else 1024
    return {"seconds": seconds, "peak_bytes": float(usage.ru_maxrss * unit)}


def first_call(python: Path) -> float:
    """Return the seconds of ``import nlnet`` and a first call in a new process."""
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [str(python), "-c", _FIRST_CALL]
    told = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=outside, cwd="/"
    )
    return float(told.stdout)


if __name__ == "__main__":
    main()
