"""The figures of real noise in README and docs: ``python -m scripts.real_noise``.

Writes what ``docs/results/real_noise.json``, which ``make bench-real`` makes, says into the README
and ``docs/real_noise.md``.
"""

from __future__ import annotations

import json
import statistics
import textwrap
from collections.abc import Sequence
from typing import Any

from benchmarks.everyday import OUTPUT as EVERYDAY
from benchmarks.everyday import format_sets
from benchmarks.real_noise import UNTOUCHED, best_rows, losses, mean
from scripts.markdown import format_table, insert_block
from scripts.results import PROJECT

RESULTS = PROJECT / "docs" / "results" / "real_noise.json"
WIDTH = 100
_WAYS = {
    "noisy": "noisy",
    "white": "nlnet, one sigma, estimated",
    "opencv": "OpenCV non-local means, best h for the set: {strength:g}",
    "bm3d": "BM3D, best sigma for the set: {strength:g}",
    "vst+bm3d": "VST + BM3D, with nlnet's gain and read noise",
    "nlnet": "**nlnet, defaults**",
    "best": 'nlnet, `quality="best"`',
    "told": "nlnet, camera noise, best sigma for the set: {strength:g}",
}
NOT_MEASURED = "Not measured yet with this estimate; `make bench-real` does it."
_NOTICED = 0.05
"""dB below which a loss is none."""

Rows = Sequence[dict[str, Any]]


def main() -> None:
    """Write all pages."""
    for name in ("README.md", "docs/real_noise.md"):
        page = PROJECT / name
        page.write_text(fill_in(name, page.read_text()))


def fill_in(name: str, page: str) -> str:
    """Return a page, README.md or docs/real_noise.md, with the committed figures."""
    rows = json.loads(RESULTS.read_text())["rows"]
    blocks = {
        "README.md": {"real-noise": format_summary(rows)},
        "docs/real_noise.md": {
            "photos": format_peers(rows, "photos", "photos", "CBM3D"),
            "microscopy": format_peers(rows, "microscopy", "images", "BM3D"),
            "kinds": format_kinds(rows),
            "everyday": format_sets(json.loads(EVERYDAY.read_text())["sets"]),
            "clean": format_clean(rows),
            "white": format_white(rows),
        },
    }
    for mark, block in blocks[name].items():
        page = insert_block(page, mark, block)
    return page


def format_summary(rows: Rows) -> str:
    """Return the README's words."""
    photos, cells = (best_rows(rows, part, "all") for part in ("photos", "microscopy"))
    sentences = [
        "nlnet finds out what kind of noise an image has and removes it, with nothing to set. On",
        f"photos as cameras save them, PSNR goes from {mean(photos['noisy']):.1f} to",
        f"**{mean(photos['nlnet']):.1f} dB**; on fluorescence microscopy, from",
        f"{mean(cells['noisy']):.1f} to **{mean(cells['nlnet']):.1f} dB**, both measured against",
        "the mean of many exposures. [Real noise](docs/real_noise.md) compares it with other",
        "denoisers, and says what it cannot do.",
    ]
    return textwrap.fill(" ".join(sentences), WIDTH)


def format_peers(rows: Rows, part: str, noun: str, bm3d: str) -> str:
    """Return the table of a part: all images, and the crops that slow peers see."""
    columns = [best_rows(rows, part, name) for name in ("all", "few")]
    counts = [len(each["noisy"]["psnr"]) for each in columns]
    lines = []
    for way, words in _WAYS.items():
        found = [each.get(way) for each in columns]
        if any(found):
            strength = next(each for each in reversed(found) if each)["strength"]
            shown = words.format(strength=strength).replace("BM3D", bm3d)
            lines.append([shown, *("" if each is None else f"{mean(each):.2f}" for each in found)])
    header = ["PSNR in dB", f"{counts[0]} {noun}", f"middle of {counts[1]} of them"]
    return format_table(header, lines)


def format_kinds(rows: Rows) -> str:
    """Return the table of the kinds of microscopes."""
    found = best_rows(rows, "microscopy", "all")
    ways = [way for way in _WAYS if way in found]
    kinds = dict.fromkeys(image.rsplit("_", 1)[0] for image in found["noisy"]["psnr"])
    lines = []
    for kind in kinds:
        figures = [_of_kind(found[way], kind) for way in ways]
        best = max(figures)
        cells = [f"**{value:.2f}**" if value == best else f"{value:.2f}" for value in figures]
        lines.append([kind.replace("_", " "), *cells])
    short = {"white": "one sigma", "vst+bm3d": "VST + BM3D", "best": "nlnet, best"}
    return format_table(["PSNR in dB", *(short.get(way, way) for way in ways)], lines)


def _of_kind(row: dict[str, Any], kind: str) -> float:
    return statistics.fmean(
        value for image, value in row["psnr"].items() if image.rsplit("_", 1)[0] == kind
    )


def format_clean(rows: Rows) -> str:
    """Return what becomes of images without noise."""
    lines = []
    for kind in ("gray", "color"):
        found = best_rows(rows, "clean", kind)
        if "nlnet" in found:
            scores = list(found["nlnet"]["psnr"].values())
            same = sum(score == UNTOUCHED for score in scores)
            below = [sum(score < limit for score in scores) for limit in (40, 30)]
            figures = [len(scores), same, *below]
            lines.append([kind, *map(str, figures), f"{min(scores):.1f}"])
    if not lines:
        return NOT_MEASURED
    header = ["images without noise", "number", "come back as they were", "changed, below 40 dB"]
    return format_table([*header, "below 30 dB", "worst, dB"], lines)


def format_white(rows: Rows) -> str:
    """Return what is lost where nobody says that noise is white, and how strong it is."""
    lines = []
    for name in dict.fromkeys(row["set"] for row in rows if row["part"] == "white"):
        found = best_rows(rows, "white", name)
        if {"known", "nlnet"} <= set(found):
            lost = losses(rows, name)
            kind, sigma = name.split()
            figures = [str(len(lost))]
            figures += [f"{mean(found[way]):.2f}" for way in ("known", "nlnet")]
            more = [f"{statistics.fmean(lost):.3f}", f"{max(lost):.2f}"]
            lines.append([f"{kind}, sigma {sigma}", *figures, *more])
    if not lines:
        return NOT_MEASURED
    header = ["PSNR in dB", "images", "sigma known", "nothing known", "mean loss", "largest loss"]
    return format_table(header, lines)


if __name__ == "__main__":
    main()
