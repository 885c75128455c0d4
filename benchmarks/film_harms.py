"""What may go wrong along a series: ``python -m benchmarks.film_harms``.

Films of photos in which something happens that neighbours do not share, denoised along the film and
page by page, given the noise and with the noise unknown. For each the least and the mean gain of a
page in dB, over several photos; for a point that one page has, how bright it stays, relative to
page by page; for pages that show the same, the gain over the mean of the nine that are looked at.
The method was chosen on these events with other photos. Writes
``docs/results/film_harms.json`` and the table of ``docs/series.md``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nlnet
from benchmarks.film_scenes import FRAMES, SIDE, bleaching, moving, read_gray, surface
from benchmarks.machine import describe_run
from benchmarks.pictures import PROJECT, require_data
from nlnet.arrays import FloatArray
from nlnet.atomic import write_atomically
from nlnet.denoising.series import REACH
from scripts.markdown import format_table, insert_block

OUTPUT = PROJECT / "docs" / "results" / "film_harms.json"
PAGE = PROJECT / "docs" / "series.md"
NAME = "harms"
PHOTOS = 4
EVENT = 5  # the page in which something happens
SPARK = 3, SIDE // 3, SIDE // 2  # of the page, row, column


def cut(photo: FloatArray, other: FloatArray) -> FloatArray:
    """Show another scene from the fifth page on."""
    return np.concatenate([moving(1.0, 0.1)(photo)[:EVENT], moving(1.0, 0.1)(other)[EVENT:]])


def passing(photo: FloatArray, other: FloatArray) -> FloatArray:
    """Let a thing pass before the scene, by 15 pixels per page, and hide it."""
    frames, thing = moving(0.4, 0.1)(photo), moving(0.0)(other)[0]
    for t in range(FRAMES):
        left = 15 * t
        width = min(48, SIDE - left)
        frames[t, 40:150, left : left + width] = thing[40:150, 60 : 60 + width]
    return frames


def flash(photo: FloatArray, other: FloatArray) -> FloatArray:
    """Make one page brighter by half."""
    frames = moving(0.6, 0.1)(photo) * 0.6
    frames[EVENT] *= 1.5
    return frames


def flicker(photo: FloatArray, other: FloatArray) -> FloatArray:
    """Change the brightness up and down by a tenth, and bleach it."""
    factors = 1 + 0.1 * np.cos(2.1 * np.arange(FRAMES, dtype=np.float32))
    return bleaching(moving(0.6, 0.1), 0.95)(photo) * 0.9 * factors[:, None, None]


def slides(photo: FloatArray, other: FloatArray) -> FloatArray:
    """Show other places in every page."""
    every = [moving(60.0)(np.rot90(each, turn)) for turn in range(3) for each in (photo, other)]
    return np.stack([every[t % len(every)][t] for t in range(FRAMES)])


def spark(photo: FloatArray, other: FloatArray, height: float = 100.0) -> FloatArray:
    """Show a point in one page only, as bright as five times the noise."""
    frames = moving(0.0)(photo) * 0.6
    page, row, column = SPARK
    y, x = np.mgrid[:SIDE, :SIDE]
    frames[page] += height * np.exp(-((y - row) ** 2 + (x - column) ** 2) / (2 * 1.3**2))
    return frames


def still(photo: FloatArray, other: FloatArray) -> FloatArray:
    """Show the same page in every exposure."""
    return moving(0.0)(photo)


EVENTS = {
    "a cut": cut,
    "a thing that passes": passing,
    "a flash": flash,
    "flicker and bleaching": flicker,
    "unrelated pages": slides,
    "growing and fading, as in a stack": lambda photo, other: surface(photo),
    "a missing page": lambda photo, other: moving(0.6, 0.1)(photo),
    "a spark": spark,
    "a faint spark": lambda photo, other: spark(photo, other, 50.0),
    "the same page again and again": still,
}
SIGMA = 20.0


def measure(event: str, photo: FloatArray, other: FloatArray, seed: int) -> dict[str, Any]:
    """Return the gains of all pages in dB, given the noise and with the noise unknown."""
    clean = np.asarray(EVENTS[event](photo, other), np.float32)
    noise = np.random.default_rng(seed).standard_normal(clean.shape, np.float32)
    noisy = clean + np.float32(SIGMA) * noise
    there = [t for t in range(FRAMES) if event != "a missing page" or t != EVENT]
    if len(there) < FRAMES:
        noisy[EVENT] = np.nan
    how: dict[str, Any] = {"data_range": 255.0, "clip": False}
    alone = nlnet.denoise_stack(noisy[there], SIGMA, **how)
    row: dict[str, Any] = {}
    for way, given in (("given", {"sigma": SIGMA}), ("unknown", {"noise": None})):
        along = nlnet.denoise_stack(noisy, **given, along=0, **how)[there]
        row[way] = np.round(_psnr(along, clean[there]) - _psnr(alone, clean[there]), 3).tolist()
        if event.endswith("spark"):
            page, y, x = SPARK
            near = page, slice(y - 2, y + 3), slice(x - 2, x + 3)
            base = moving(0.0)(photo)[page] * 0.6
            row[f"{way}, kept"] = round(
                float(
                    (along[near] - base[near[1:]]).mean() / (alone[near] - base[near[1:]]).mean()
                ),
                3,
            )
        if event == "the same page again and again":
            mean = noisy[EVENT - 1 - REACH : EVENT + REACH].mean(axis=0, keepdims=True)
            row[f"{way}, over the mean"] = round(
                float((_psnr(along[[EVENT - 1]], clean[:1]) - _psnr(mean, clean[:1])).item()), 3
            )
    return row


def _psnr(frames: FloatArray, clean: FloatArray) -> FloatArray:
    errors = np.mean(np.square(frames - clean, dtype=np.float64), axis=(1, 2))
    return np.asarray(10 * np.log10(255**2 / errors))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the results and the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.film_harms", description=__doc__)
    parser.add_argument("--events", nargs="+", choices=list(EVENTS), default=list(EVENTS))
    parser.add_argument("--first", type=int, default=18, help="number of the first photo")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    options = parser.parse_args(arguments)
    paths = sorted((require_data() / "open" / "val").glob("*.jpg"))
    record: dict[str, Any] = {"events": {}}
    if options.output.exists():
        record = json.loads(options.output.read_text())
    for event in options.events:
        rows = []
        for number in range(PHOTOS):
            chosen = [paths[(options.first + number + step) % len(paths)] for step in (0, PHOTOS)]
            photo, other = map(read_gray, chosen)
            rows.append(measure(event, photo, other, number))
        record["events"][event] = rows
        record["run"] = describe_run()
        print(event, *rows, sep="\n  ", flush=True)
        write_atomically(options.output, (json.dumps(record, indent=1) + "\n").encode())
    if options.output == OUTPUT:
        PAGE.write_text(fill_in(PAGE.read_text()))
    return 0


def fill_in(page: str) -> str:
    """Return the page with the table."""
    events = json.loads(OUTPUT.read_text())["events"]
    lines = []
    for event, rows in events.items():
        line = [event]
        for way in ("given", "unknown"):
            gains = [gain for row in rows for gain in row[way]]
            line += [f"{min(gains):+.2f}", f"{statistics.mean(gains):+.2f}"]
        for extra in ("given, kept", "given, over the mean"):
            found = [row[extra] for row in rows if extra in row]
            line.append(f"{min(found):.2f} to {max(found):.2f}" if found else "")
        lines.append(line)
    heads = ["dB", "worst page", "mean", "noise unknown, worst page", "mean"]
    heads += ["brightness kept, times page by page", "above the mean of nine pages"]
    return insert_block(page, NAME, format_table(heads, lines))


if __name__ == "__main__":
    sys.exit(main())
