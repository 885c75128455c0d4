"""``make engine-wasm``: the engine for browsers, and its test program under node.

The library is built with and without shared memory; it has no imports but its memory. ``--time``
compares the kernels with native SSE2 code, in turns, and keeps that in
``benchmarks/results/wasm.json``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

from engine.build import ENGINE, ROOT, build_for
from engine.targets import BuildError

RUNNER = ("node", "--no-warnings", str(ENGINE / "tests" / "run_wasi.mjs"))
RESULTS = ROOT / "benchmarks" / "results" / "wasm.json"
TURNS = 3
# A line of `check --time`: what was timed, and how long it took.
TIMED = re.compile(r"^\S+ +(.+?):? +([\d.]+) (ms|ns)\b")


def main() -> None:
    """Build the library and the test program, and run the latter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--time", action="store_true", help="compare with native code, too")
    parser.add_argument("--rounds", default="10", help="of every check")
    options = parser.parse_args()
    try:
        for name in ("wasm", "wasm-shared"):
            library = build_for(name).library()
            print(
                f"{library.relative_to(Path.cwd())}: {library.stat().st_size:,} bytes", flush=True
            )
            subprocess.run(["node", str(ENGINE / "tests" / "load_wasm.mjs"), library], check=True)
        program = build_for("wasi").program(ENGINE / "tests" / "check.cpp")
        subprocess.run([*RUNNER, program, "--rounds", options.rounds], check=True)
        if options.time:
            compare(program, build_for().program(ENGINE / "tests" / "check.cpp"))
    except (BuildError, FileNotFoundError) as error:
        sys.exit(str(error))
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)


def compare(program: Path, native: Path) -> None:
    """Print how many times as long as native SSE2 code each kernel takes: the least of turns."""
    commands = ([*RUNNER, str(program)], [str(native), "--set", "SSE2"])
    least: list[dict[str, float]] = [{}, {}]
    for _ in range(TURNS):
        for times, command in zip(least, commands, strict=True):
            told = subprocess.run([*command, "--time"], check=True, capture_output=True, text=True)
            for name, time in timings(told.stdout).items():
                times[name] = min(time, times.get(name, time))
    ratios = {name: round(time / least[1][name], 3) for name, time in least[0].items()}
    for name, ratio in ratios.items():
        print(f"{name:40} {ratio:5.2f} times native SSE2")
    asked = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    content = {"commit": commit, "turns": TURNS, "times_native_sse2": ratios}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def timings(told: str) -> dict[str, float]:
    """Return the times that the test program printed."""
    found = filter(None, map(TIMED.match, told.splitlines()))
    return {match[1]: float(match[2]) for match in found}


if __name__ == "__main__":
    main()
