"""PSNR against time, nlnet and others, gray and color: the table and the plot of README and docs.

Times are those of ``make bench``; PSNR is the mean over BSD68 at sigma 25: ours from ``make
tables``, that of others from ``python -m benchmarks.quality`` or, where only the architecture runs
here, as published.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from nlnet.defaults import BEST, FAMILIES, FAST
from nlnet.model.figures import TIMES
from nlnet.model.loading import family_of, load_model, shipped_models
from scripts.markdown import format_table
from scripts.published import COLOR, GRAY, SIGMAS
from scripts.results import PROJECT, read_at

BENCHMARKS = PROJECT / "benchmarks" / "results"
PLOT = PROJECT / "docs" / "images" / "speed.png"
KINDS = {"gray": 1, "color": 3}
SIGMA = 25

_FORMER = {"nlnet gray": "nlnet gray-5x5", "nlnet color": "nlnet color-5x5"}
"""What runs call the same networks that were made before one model served every sigma."""

_OTHERS = {
    "OpenCV non-local means": ("OpenCV NLM", "OpenCV NLM"),
    "FFDNet in torch": ("FFDNet torch", "FFDNet torch"),
    "DnCNN-17, DnCNN-20 in torch": ("DnCNN-17 torch", "DnCNN-20 torch"),
    "scikit-image non-local means, fast": ("scikit-image NLM", "scikit-image NLM"),
    "scikit-image total variation": ("scikit-image TV", "scikit-image TV"),
    "scikit-image wavelets": ("scikit-image wavelet", "scikit-image wavelet"),
    "BM3D": ("bm3d", "bm3d"),
}
_PUBLISHED = {
    "gray": {"DnCNN-17 torch": "DnCNN", "FFDNet torch": "FFDNet", "bm3d": "BM3D"},
    "color": {"DnCNN-20 torch": "CDnCNN", "FFDNet torch": "FFDNet", "bm3d": "CBM3D"},
}


def read_benchmark(name: str) -> dict[str, Any]:
    """Read one of the committed results."""
    content: dict[str, Any] = json.loads((BENCHMARKS / f"{name}.json").read_text())
    return content


class Report:
    """The figures of one run of the benchmark."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.commit = content["commit"][:7]
        self.cpu = content["machine"]["cpu"]
        self.sgemm = {int(threads): rate for threads, rate in content["sgemm_gflops"].items()}
        self._results = {
            (result["kind"], result["size"], result["threads"], result["method"]): result
            for result in content["results"]
        }

    def find(
        self, kind: str, method: str, size: str = "small", threads: int = 2
    ) -> dict[str, Any] | None:
        """Return the figures of one method, None if the run does not have it."""
        for name in (method, _FORMER.get(method, "")):
            result = self._results.get((kind, size, threads, name))
            if result is not None:
                return result
        return None

    def of(self, kind: str, method: str, size: str = "small", threads: int = 2) -> dict[str, Any]:
        """Return the figures of one method."""
        result = self.find(kind, method, size, threads)
        assert result is not None, (kind, method, size, threads)
        return result

    def ours(self, kind: str, size: str = "small", threads: int = 2) -> dict[str, Any]:
        """Return the figures of our fast network."""
        return self.of(kind, f"nlnet {FAMILIES[FAST][KINDS[kind]]}", size, threads)

    def speedup(self, kind: str, size: str) -> float:
        """Return how many times as fast two threads are as one."""
        one, two = (self.ours(kind, size, threads)["seconds"] for threads in (1, 2))
        return float(one / two)


@dataclasses.dataclass(frozen=True)
class Point:
    """A method: seconds for 481x321 pixels, beside our fast one, and PSNR, if it is known."""

    label: str
    kind: str
    seconds: float
    times: float
    psnr: float | None
    published: bool
    ours: bool

    def cells(self) -> list[str]:
        """Return time, ratio and PSNR for a table."""
        psnr = "" if self.psnr is None else f"{self.psnr:.2f}" + "*" * self.published
        ratio = f"{self.times:.1f}" if self.times >= 0.1 else f"{self.times:.2f}"
        return [f"{self.seconds:.3f}", ratio, psnr]


def points(report: Report) -> list[Point]:
    """Return all methods that the run measured, ours first."""
    found = []
    for label, methods in (_ours() | _OTHERS).items():
        for kind, method in zip(KINDS, methods, strict=True):
            result = None if method is None else report.find(kind, method)
            if method is None or result is None:
                continue
            psnr, published = psnr_of(kind, method)
            times = result["seconds"] / report.ours(kind)["seconds"]
            ours = method.startswith("nlnet ")
            found.append(Point(label, kind, result["seconds"], times, psnr, published, ours))
    return found


def _ours() -> dict[str, tuple[str | None, str | None]]:
    """Return our methods for gray and for color; none where the best is the fast one."""
    fast, best = FAMILIES[FAST], FAMILIES[BEST]
    rows: dict[str, tuple[str | None, str | None]] = {
        "**nlnet**": (f"nlnet {fast[1]}", f"nlnet {fast[3]}"),
    }
    better = [None if best[n] == fast[n] else f"nlnet {best[n]}" for n in KINDS.values()]
    rows["**nlnet, quality best**"] = (better[0], better[1])
    if best[1] != "gray-7x7":
        rows["nlnet, 7x7 as in the paper"] = ("nlnet gray-7x7", None)
    return rows


def psnr_of(kind: str, method: str) -> tuple[float | None, bool]:
    """Return the mean PSNR on BSD68, and whether it is one that was published."""
    if method.startswith("nlnet "):
        result = read_at(method.removeprefix("nlnet "), "bsd68", SIGMA)
        return (None if result is None else result.psnr), False
    measured = read_benchmark("quality")["results"][kind].get(method)
    if measured is not None:
        return measured["psnr"], False
    name = _PUBLISHED[kind].get(method)
    for row in GRAY if kind == "gray" else COLOR:
        if name is not None and row.method.startswith(f"{name} "):
            return row.psnr[SIGMAS.index(SIGMA)], True
    return None, False


def format_frontier(report: Report) -> str:
    """Return the table: a row for each method, gray and color."""
    found = points(report)
    header = ["481x321", "gray, s", "times nlnet", "PSNR", "color, s", "times nlnet", "PSNR"]
    rows = []
    for label in dict.fromkeys(point.label for point in found):
        cells = {point.kind: point.cells() for point in found if point.label == label}
        rows.append([label, *(cell for kind in KINDS for cell in cells.get(kind, [""] * 3))])
    return format_table(header, rows)


def write_times(path: Path = TIMES) -> None:
    """Write how long our models take beside the fast ones, for ``nlnet models``."""
    path.write_text(json.dumps(relative_times(), indent=1) + "\n")


def relative_times() -> dict[str, float]:
    """Return that of every shipped family that was measured, or whose network was."""
    report = Report(read_benchmark("speed"))
    seconds = {}
    for name in dict.fromkeys(map(family_of, shipped_models())):
        config = _config(name)
        kind = "gray" if config.channels == 1 else "color"
        fast = FAMILIES[FAST][config.channels]
        method = f"nlnet {fast if config == _config(fast) else name}"
        result = report.find(kind, method)
        if result is not None:
            seconds[name] = result["seconds"]
    fastest = {n: seconds[FAMILIES[FAST][n]] for n in KINDS.values()}
    return {name: round(s / fastest[_config(name).channels], 2) for name, s in seconds.items()}


def _config(name: str) -> Any:
    member = name if name in shipped_models() else f"{name}-s{SIGMA}"
    return load_model(member).config
