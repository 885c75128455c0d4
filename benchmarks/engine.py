"""Warm speed of the engine beside an older revision of nlnet: ``python -m benchmarks.engine``.

The old revision, by default the last one that numba compiled, is unpacked below ``build/``, and
numba installed there if this environment lacks it. Two processes, one for each, take turns with one
call each, so that a slow spell of the machine falls on both. A ratio below 1 means that the engine
is faster.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.machine import describe_run
from benchmarks.report import format_table, write_json
from nlnet.engine.library import SET_VARIABLE, available_sets

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
FOLDER = ROOT / "build" / "old-engine"
OLD = "1355302"
SMALL, LARGE, CROP = (321, 481), (2448, 3264), (128, 128)
MODELS = ("gray-5x5-s25", "gray-7x7-s25", "color-5x5-s25")

# What numba compiles for a CPU that has no more than the engine's set.
_NUMBA = {
    "sse2": {"NUMBA_CPU_NAME": "nehalem", "NUMBA_CPU_FEATURES": "+sse4.2,+popcnt"},
    "avx2": {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma,+sse4.2,+popcnt,+bmi,+bmi2",
    },
}


def main() -> None:
    """Measure, print, and write the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine", description="Compare the engine with an old revision."
    )
    parser.add_argument("--old", default=OLD, help=f"revision to compare with ({OLD})")
    parser.add_argument("--repeats", type=int, default=11, help="turns for small images (11)")
    parser.add_argument("--quick", action="store_true", help="leave out the large images")
    sets = available_sets()
    parser.add_argument(
        "--set", choices=sets, default=sets[-1], help=f"instruction set of both sides ({sets[-1]})"
    )
    parser.add_argument(
        "--only", default="", help="measure the cases with this in their name; others are kept"
    )
    parser.add_argument("--json", type=Path, help="file of the figures (results/engine-SET.json)")
    arguments = parser.parse_args()
    run = describe_run()
    chosen = [case for case in cases(quick=arguments.quick) if arguments.only in name_of(case)]
    rows = measure(arguments.old, arguments.repeats, chosen, arguments.set)
    for row in rows:
        row.update(_origin(run))
    print(
        format_table(
            ["case", "threads", "old, s", "engine, s", "ratio", "of medians"], rows_of(rows)
        )
    )
    target = arguments.json or RESULTS / f"engine-{arguments.set}.json"
    if arguments.only and target.exists():
        before = json.loads(target.read_text())
        kept = {name_of(row): {**_origin(before), **row} for row in before["results"]}
        kept.update({name_of(row): row for row in rows})
        rows = [kept[name] for name in map(name_of, cases(quick=False)) if name in kept]
    settings = {"old": arguments.old, "repeats": arguments.repeats, "set": arguments.set}
    write_json({**run, **settings, "results": rows}, target)


def _origin(run: dict[str, Any]) -> dict[str, Any]:
    """Return what a case keeps of its run, for others may be measured later."""
    return {"commit": run["commit"], "load_before": run["machine"]["load_before"]}


def measure(
    old: str, repeats: int, chosen: list[dict[str, Any]], instructions: str
) -> list[dict[str, Any]]:
    """Return the seconds of both sides for every case."""
    found = []
    sides = _old_environment(old, instructions), _environment(instructions)
    with Side(sides[0]) as before, Side(sides[1]) as engine:
        for case in tqdm(chosen, desc="cases", disable=None):
            turns = repeats if case["size"] != LARGE else max(2, repeats // 5)
            times = [(before.seconds(case), engine.seconds(case)) for _ in range(turns)]
            olds, news = zip(*times, strict=True)
            found.append(
                {
                    **case,
                    "turns": turns,
                    "old_seconds": min(olds),
                    "engine_seconds": min(news),
                    "ratio": min(news) / min(olds),
                    "ratio_of_medians": statistics.median(news) / statistics.median(olds),
                }
            )
    return found


def cases(*, quick: bool) -> list[dict[str, Any]]:
    """List what is measured: images and batches of crops, with one thread and with two."""
    sizes = (SMALL,) if quick else (SMALL, LARGE)
    what = [("denoise", model, size) for size in sizes for model in MODELS]
    what += [("train", model, CROP) for model in ("gray-5x5-s25", "color-5x5-s25")]
    return [
        {"kind": kind, "model": model, "size": size, "threads": threads}
        for kind, model, size in what
        for threads in (1, 2)
    ]


class Side:
    """A process that measures one of the two revisions."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("engine_worker.py"))],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        wanted = environment["PYTHONPATH"].split(os.pathsep)[0]
        path = self._answer()["path"]
        if not Path(path).is_relative_to(wanted):
            raise SystemExit(f"The process measures {path}, but should measure {wanted}.")

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def seconds(self, case: dict[str, Any]) -> float:
        """Return the seconds of one warm call."""
        assert self._process.stdin is not None
        print(json.dumps(case), file=self._process.stdin)
        return float(self._answer())

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("A measuring process has ended; its error is above.")
        return json.loads(line)


def _environment(chosen: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), SET_VARIABLE: chosen}


def _old_environment(revision: str, chosen: str) -> dict[str, str]:
    """Unpack the old revision, install numba if need be, and return what its process needs."""
    source = FOLDER / revision
    if not source.exists():
        archive = subprocess.run(
            ["git", "archive", revision, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
        ).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as unpacked:
            unpacked.extractall(source, filter="data")
    packages = FOLDER / "packages"
    if importlib.util.find_spec("numba") is None and not packages.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--target", str(packages), "numba", "llvmlite"], check=True)
    path = os.pathsep.join([str(source / "src"), str(packages)])
    limits = _NUMBA.get(chosen, {})
    cache = str(FOLDER / f"cache-{chosen}")
    return {**os.environ, "PYTHONPATH": path, "NUMBA_CACHE_DIR": cache, **limits}


def name_of(row: dict[str, Any]) -> str:
    """Return what a case is called: what, how large, on how many threads."""
    height, width = row["size"]
    return f"{row['kind']} {row['model']}, {width}x{height} on {row['threads']}"


def rows_of(results: list[dict[str, Any]]) -> list[list[str]]:
    """Return the rows of the printed table."""
    return [
        [
            *name_of(row).rsplit(" on ", 1),
            f"{row['old_seconds']:.4f}",
            f"{row['engine_seconds']:.4f}",
            f"{row['ratio']:.2f}",
            f"{row['ratio_of_medians']:.2f}",
        ]
        for row in results
    ]


if __name__ == "__main__":
    main()
