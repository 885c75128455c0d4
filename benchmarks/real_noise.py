"""Real noise, beside peers: ``python -m benchmarks.real_noise``, ``make bench-real``.

Photos and microscope images with their truth (the mean of many exposures), where they are in the
data folder; white noise of unknown strength; and images without noise, to see
what is damaged. nlnet is called with defaults; BM3D and OpenCV's non-local means get the one
strength that is best for the whole set, which they have to be told. Writes
``docs/results/real_noise.json`` after every image, goes on where it was stopped, and prints tables;
``python -m scripts.real_noise`` writes them into the docs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_run
from benchmarks.pictures import PROJECT, require_data
from benchmarks.real_cases import Set, find_sets
from nlnet.arrays import Array
from nlnet.atomic import write_atomically
from nlnet.evaluation.metrics import psnr
from scripts.markdown import format_table

PARTS = ("photos", "microscopy", "white", "clean")
UNTOUCHED = 100.0
"""PSNR that stands for no difference at all, which JSON has no number for."""
OURS = ("known", "white", "nlnet", "best", "vst+bm3d")
"""Ways whose figures change with nlnet; the last one uses its gain and read noise."""
OUTPUT = PROJECT / "docs" / "results" / "real_noise.json"
Row = dict[str, Any]
_LEAST_SHARE = 0.25
"""Share of a set's images on which a way must have been measured to be in a table."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, write and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real_noise", description=__doc__)
    parser.add_argument("--only", choices=PARTS, nargs="+", default=PARTS, metavar="PART")
    parser.add_argument("--sets", nargs="+", metavar="SET", help="such as few, or 'gray 25'")
    parser.add_argument("--ways", nargs="+", metavar="WAY", help="such as nlnet and bm3d")
    parser.add_argument(
        "--again", action="store_true", help="measure nlnet anew; what peers reached is kept"
    )
    parser.add_argument("--count", type=int, help="images of each set (default: all)")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    options = parser.parse_args(arguments)
    data = require_data()
    record = Record(options.output)
    if options.again:
        record.forget(options.only, options.sets, options.ways or OURS)
    for each in find_sets(data, options.count):
        if each.part in options.only and (options.sets is None or each.name in options.sets):
            measure(each, record, options.ways)
    print(format_rows(record.rows))
    return 0


class Record:
    """The figures so far, in a file: a row for each set and way, with the PSNR of each image."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._run = describe_run()
        self.rows: list[Row] = json.loads(path.read_text())["rows"] if path.exists() else []

    def forget(
        self, parts: Iterable[str], names: Iterable[str] | None, ways: Iterable[str]
    ) -> None:
        """Drop nlnet's rows of these sets, or of all, to measure them anew."""

        def is_asked_for(row: Row) -> bool:
            named = names is None or row["set"] in names
            return named and row["part"] in parts and row["way"] in ways and row["way"] in OURS

        self.rows = [row for row in self.rows if not is_asked_for(row)]

    def row(self, part: str, name: str, way: str, strength: float | None) -> Row:
        """Return a row, a new one if there is none yet."""
        key = {"part": part, "set": name, "way": way, "strength": strength}
        for row in self.rows:
            if key.items() <= row.items():
                return row
        self.rows.append({**key, "commit": self._run["commit"], "psnr": {}})
        return self.rows[-1]

    def save(self) -> None:
        """Write all rows."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        rows = ",\n".join(json.dumps(row) for row in self.rows if row["psnr"])
        head = json.dumps(self._run, indent=2).removesuffix("\n}")
        write_atomically(self._path, f'{head},\n  "rows": [\n{rows}\n]\n}}\n'.encode())


def measure(images: Set, record: Record, ways: Sequence[str] | None) -> None:
    """Denoise what has not been yet."""
    for case in images.cases:
        loaded: tuple[Array, Array] | None = None
        for (way, strength), denoise in images.ways.items():
            row = record.row(images.part, images.name, way, strength)
            if case.name in row["psnr"] or (ways is not None and way not in ways):
                continue
            loaded = loaded or case.load()
            noisy, clean = loaded
            score = min(psnr(clean, np.clip(denoise(noisy), 0, 255)), UNTOUCHED)
            row["psnr"][case.name] = round(score, 4)
            record.save()
            shown = "" if strength is None else f" {strength:g}"
            place = f"{images.part} {images.name} {case.name}"
            print(f"{place}: {way}{shown} {score:.2f} dB", file=sys.stderr, flush=True)


def best_rows(rows: Iterable[Row], part: str, name: str) -> dict[str, Row]:
    """Return the rows of a set by their ways; of several strengths, the best on average.

    All are of the same images. Ways that were measured on few of them only are left out.
    """
    chosen = [row for row in rows if (row["part"], row["set"]) == (part, name)]
    most = max((len(row["psnr"]) for row in chosen), default=0)
    chosen = [row for row in chosen if len(row["psnr"]) > _LEAST_SHARE * most]
    shared = (
        [image for image in chosen[0]["psnr"] if all(image in row["psnr"] for row in chosen)]
        if chosen
        else []
    )
    best: dict[str, Row] = {}
    for row in chosen:
        same = {**row, "psnr": {image: row["psnr"][image] for image in shared}}
        known = best.get(row["way"])
        if known is None or mean(same) > mean(known):
            best[row["way"]] = same
    return best


def mean(row: Row) -> float:
    """Return the mean PSNR of a row."""
    return statistics.fmean(row["psnr"].values())


def losses(rows: Sequence[Row], name: str) -> list[float]:
    """Return what not knowing sigma costs, for each image."""
    found = best_rows(rows, "white", name)
    known, unknown = (found[way]["psnr"] for way in ("known", "nlnet"))
    return [known[image] - unknown[image] for image in known if image in unknown]


def format_rows(rows: Sequence[Row]) -> str:
    """Return all figures as one table."""
    lines = []
    for part, name in dict.fromkeys((row["part"], row["set"]) for row in rows):
        for way, row in best_rows(rows, part, name).items():
            strength = "" if row["strength"] is None else f"{row['strength']:g}"
            cells = [f"{part} {name}", way, strength, str(len(row["psnr"])), f"{mean(row):.3f}"]
            if part == "white" and way == "nlnet":
                lost = losses(rows, name)
                cells[-1] += f" (lost {statistics.fmean(lost):.3f}, at most {max(lost):.3f})"
            lines.append(cells)
    return format_table(["images", "way", "best strength", "number", "PSNR"], lines)


if __name__ == "__main__":
    sys.exit(main())
