"""Rows of a table that are measured one by one and kept: what is known is not measured again."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any


def add_options(parser: argparse.ArgumentParser) -> None:
    """Let the user say which rows to measure."""
    parser.add_argument("--rows", nargs="*", help="only rows whose names contain one of these")
    parser.add_argument("--again", action="store_true", help="also rows that are measured already")


def measure_rows(
    path: Path,
    names: Iterable[str],
    options: argparse.Namespace,
    measure: Callable[[str], Mapping[str, Any]],
) -> None:
    """Measure the rows that are asked for, and write the file after each, in the order of names."""
    names = list(names)
    for name in names:
        wanted = options.rows is None or any(part in name for part in options.rows)
        if not wanted or (name in read_rows(path) and not options.again):
            continue
        row = {"name": name, **measure(name)}
        known = {**read_rows(path), name: row}  # others may have written meanwhile
        print(f"{name}: {known[name]['validation_psnr']} dB", flush=True)
        rows = [known[row] for row in names if row in known]
        path.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")


def read_rows(path: Path) -> dict[str, dict[str, Any]]:
    """Return the rows that are measured, by their names."""
    return {row["name"]: row for row in json.loads(path.read_text())} if path.exists() else {}
