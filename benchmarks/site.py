"""The page without a server, in chromium: ``make bench-site``.

How large a first visit is; how long photos take beside the native command with SSE2 and with the
CPU's best set, in turns; the longest task of the page's main thread (in CPU time), how soon work
stops, and what memory it takes; and how many values differ from Python's.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import nlnet
from benchmarks.browser_cases import KINDS, differing, noisy_image
from benchmarks.machine import describe_run
from benchmarks.main_thread import CATEGORIES, longest_task
from benchmarks.pictures import BUNDLED
from benchmarks.report import write_json
from nlnet.engine.library import SET_VARIABLE
from nlnet.images import ImageFile, read_image, write_image
from nlnet.noise import add_noise
from scripts.file_server import serve_files
from scripts.site import SITE, first_visit

RESULTS = Path(__file__).resolve().parent / "results" / "site.json"
SIZES = {"12 megapixels": (3000, 4000), "24 megapixels": (4000, 6000)}
SIGMA = 15.0
THREADS = 2
PATIENCE = 600_000  # milliseconds
LIMIT = 'Object.defineProperty(navigator, "hardwareConcurrency", { get: () => %d });'
"""What the page does first: limit the threads."""

CANCEL = """async () => {
  const began = performance.now();
  document.getElementById("cancel").click();
  while (!document.getElementById("busy").hidden) await new Promise((next) => setTimeout(next, 2));
  return performance.now() - began;
}"""


def main() -> None:
    """Measure everything, print it, and keep it in a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=3, help="how often times are taken: 3")
    turns = parser.parse_args().turns
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None or not SITE.exists():
        sys.exit("It needs chromium and build/site, which `make site` builds.")
    from playwright.sync_api import sync_playwright

    result: dict[str, Any] = {"run": describe_run(), "threads": THREADS, "turns": turns}
    result["first_visit_bytes"] = first_visit(SITE)
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_files(SITE) as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])

        def visit() -> Any:
            page = browser.new_context().new_page()
            page.set_default_timeout(PATIENCE)
            page.add_init_script(LIMIT % THREADS)
            page.goto(address)
            page.locator("#place", has_text=f"{THREADS} threads").wait_for()
            return page

        result["photos"] = [
            time_photo(visit, Path(folder), name, *size, turns) for name, size in SIZES.items()
        ]
        result["differing"] = compare(visit(), Path(folder))
        browser.close()
    print_result(result)
    write_json(result, RESULTS)


def time_photo(
    visit: Any, folder: Path, name: str, height: int, width: int, turns: int
) -> dict[str, Any]:
    """Return how long a JPEG takes from file to file, and what the page takes meanwhile."""
    path = folder / "photo.jpg"
    clean = read_image(BUNDLED).pixels
    times = (-(-height // clean.shape[0]), -(-width // clean.shape[1]), 1)
    noisy = add_noise(np.tile(clean, times)[:height, :width], SIGMA, seed=0)
    write_image(path, ImageFile(np.rint(np.clip(noisy, 0, 255)).astype(np.uint8)))
    seconds: dict[str, list[float]] = {"chromium": [], "sse2": [], "best": []}
    longest, peak, took = 0.0, 0.0, []
    for _ in range(turns):
        page = visit()
        with watched_memory() as memory:
            browser = page.context.browser
            browser.start_tracing(page=page, categories=CATEGORIES)
            began = time.perf_counter()
            page.locator("#file").set_input_files(path)
            page.locator("#result").wait_for()
            seconds["chromium"].append(time.perf_counter() - began)
            page.locator("#handle").wait_for()
            page.locator("#grain").fill("40")
            page.locator("#blend[data-drawn]").wait_for()
            page.wait_for_timeout(500)  # until the result is drawn
        peak = max(peak, memory())
        longest = max(longest, longest_task(browser.stop_tracing()))
        page.locator("#noise").select_option("white")
        page.locator("#busy-text", has_text=re.compile("Denoising [2-9]")).wait_for()
        took.append(page.evaluate(CANCEL))
        page.context.close()
        for instructions in ("sse2", "best"):
            seconds[instructions].append(run_command(path, instructions))
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    return {
        "name": name,
        "seconds": {key: round(value, 2) for key, value in medians.items()},
        "times_sse2": round(medians["chromium"] / medians["sse2"], 2),
        "times_best": round(medians["chromium"] / medians["best"], 2),
        "longest_task_ms": round(longest, 1),
        "cancel_ms": round(max(took)),
        "peak_mb": round(peak),
    }


def run_command(path: Path, instructions: str) -> float:
    """Return the seconds of the native command."""
    target = path.with_name("denoised.jpg")
    command = [
        sys.executable,
        "-m",
        "nlnet",
        "denoise",
        str(path),
        "-o",
        str(target),
        "--overwrite",
    ]
    more = {} if instructions == "best" else {SET_VARIABLE: instructions}
    began = time.perf_counter()
    options = ["--threads", str(THREADS)]
    environment = {**os.environ, **more}
    subprocess.run([*command, *options], check=True, env=environment, capture_output=True)
    return time.perf_counter() - began


@contextmanager
def watched_memory() -> Iterator[Any]:
    """Watch the memory of the browser's processes; what is given tells the most, in megabytes."""
    most, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            most[0] = max(most[0], browser_memory())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield lambda: most[0]
    finally:
        done.set()
        thread.join()


def browser_memory() -> float:
    """Return the megabytes of the processes below this one; shared pages count by their share."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue  # it has ended
        parents[int(stat.parent.name)] = int(text.rpartition(")")[2].split()[1])
    total = 0
    for process in parents:
        above = parents.get(process, 0)
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        if above != os.getpid():
            continue
        try:
            found = re.search(r"Pss: +(\d+)", Path(f"/proc/{process}/smaps_rollup").read_text())
        except OSError:
            continue
        total += int(found.group(1)) if found else 0
    return total / 1024


def compare(page: Any, folder: Path) -> dict[str, float]:
    """Return the share of values of PNG files that differ from Python's, by one at most."""
    shares = {}
    for quality in ("fast", "best"):
        for kind, channels in ((kind, channels) for kind in KINDS for channels in (1, 3)):
            noisy = noisy_image(kind, channels)
            write_image(folder / "noisy.png", ImageFile(noisy))
            page.reload()
            page.locator("#accepted", has_text="PNG").wait_for()
            page.locator("#quality").select_option(quality)
            page.locator("#file").set_input_files(folder / "noisy.png")
            page.locator("#handle").wait_for()
            with page.expect_download() as download:
                page.locator("#download").click()
            download.value.save_as(folder / "result.png")
            result = read_image(folder / "result.png").pixels
            result = result[..., 0] if result.ndim > noisy.ndim else result
            share, most = differing(result, nlnet.denoise(noisy, quality=quality))
            if most > 1:
                sys.exit(f"{kind} noise, {channels} channels: values differ by {most}.")
            shares[f"{quality}, {kind}, {'gray' if channels == 1 else 'color'}"] = share
    return shares


def print_result(result: dict[str, Any]) -> None:
    """Print it for people."""
    print(f"first visit: {result['first_visit_bytes']:,} bytes, compressed")
    for photo in result["photos"]:
        seconds = ", ".join(f"{name} {value:.1f} s" for name, value in photo["seconds"].items())
        print(f"{photo['name']}: {seconds}")
        print(f"  {photo['times_sse2']} times SSE2, {photo['times_best']} times the best set")
        print(f"  longest task {photo['longest_task_ms']:.0f} ms, cancel {photo['cancel_ms']} ms")
        print(f"  memory of all processes: at most {photo['peak_mb']:,} MB")
    for name, share in result["differing"].items():
        print(f"{name}: {share:.1e} of the values differ, by one level")


if __name__ == "__main__":
    main()
