"""The speed that README and docs tell of: ``python -m scripts.speed``, after ``make bench``.

Writes what ``benchmarks/results/speed.json`` says into the README and ``docs/performance.md``.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any

from scripts.markdown import format_table, insert_block
from scripts.results import PROJECT

NAME = "speed"
WIDTH = 100
_METHODS = {
    "**nlnet 5x5**": ("nlnet gray-5x5", "nlnet color-5x5"),
    "nlnet 7x7": ("nlnet gray-7x7", None),
    "OpenCV non-local means": ("OpenCV NLM", "OpenCV NLM"),
    "DnCNN-17, DnCNN-20 in torch": ("DnCNN-17 torch", "DnCNN-20 torch"),
    "scikit-image non-local means, fast": ("scikit-image NLM", "scikit-image NLM"),
    "scikit-image total variation": ("scikit-image TV", "scikit-image TV"),
    "scikit-image wavelets": ("scikit-image wavelet", "scikit-image wavelet"),
    "BM3D": ("bm3d", "bm3d"),
}
_OURS = {"gray": "nlnet gray-5x5", "color": "nlnet color-5x5"}


class Report:
    """The figures of one run of the benchmark."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.commit = content["commit"][:7]
        self.sgemm = {int(threads): rate for threads, rate in content["sgemm_gflops"].items()}
        self._results = {
            (result["kind"], result["size"], result["threads"], result["method"]): result
            for result in content["results"]
        }

    def of(self, kind: str, method: str, size: str = "small", threads: int = 2) -> dict[str, Any]:
        """Return the figures of one method."""
        result: dict[str, Any] = self._results[kind, size, threads, method]
        return result

    def ours(self, kind: str, size: str = "small", threads: int = 2) -> dict[str, Any]:
        """Return the figures of our 5x5 network."""
        return self.of(kind, _OURS[kind], size, threads)

    def speedup(self, kind: str, size: str) -> float:
        """Return how many times as fast two threads are as one."""
        one, two = (self.ours(kind, size, threads)["seconds"] for threads in (1, 2))
        return float(one / two)


def main() -> None:
    """Write both pages."""
    path = PROJECT / "benchmarks" / "results" / "speed.json"
    report = Report(json.loads(path.read_text()))
    pages = {"README.md": format_summary(report), "docs/performance.md": format_page(report)}
    for name, block in pages.items():
        page = PROJECT / name
        page.write_text(insert_block(page.read_text(), NAME, block))


def format_summary(report: Report) -> str:
    """Return the README's words."""
    gray, color = report.ours("gray"), report.ours("color")
    opencv, bm3d = report.of("gray", "OpenCV NLM"), report.of("gray", "bm3d")
    dncnn, color_opencv = report.of("gray", "DnCNN-17 torch"), report.of("color", "OpenCV NLM")
    large = [f"{report.ours(kind, '24mp')['seconds']:.0f} s" for kind in _OURS]
    sentences = [
        f"A gray image of 481x321 pixels takes {gray['seconds']:.2f} s on two cores, where",
        f"OpenCV's non-local means takes {opencv['seconds']:.2f} s for",
        f"{gray['psnr'] - opencv['psnr']:.1f} dB less, DnCNN {dncnn['seconds']:.2f} s, and BM3D",
        f"{bm3d['seconds']:.1f} s for {gray['psnr'] - bm3d['psnr']:.2f} dB less; a color image",
        f"takes {color['seconds']:.2f} s, OpenCV {color_opencv['seconds']:.2f} s and",
        f"BM3D {report.of('color', 'bm3d')['seconds']:.0f} s. Images of any size go through in",
        f"bounded memory, at the same time a pixel: 24 megapixels in {large[0]}, {large[1]} in",
        "color. `make bench` measures it on your machine; [the",
        f"figures](benchmarks/results/speed.json) behind this are of commit {report.commit}.",
    ]
    return textwrap.fill(" ".join(sentences), WIDTH)


def format_page(report: Report) -> str:
    """Return the table of the performance page, and what else the run says."""
    header = ["481x321", "gray, s", "beside nlnet", "PSNR", "color, s", "beside nlnet", "PSNR"]
    rows = [
        [shown, *_cells(report, "gray", gray), *_cells(report, "color", color)]
        for shown, (gray, color) in _METHODS.items()
    ]
    small, large = report.ours("gray"), report.ours("gray", "24mp")
    growth = large["seconds"] / large["pixels"] * small["pixels"] / small["seconds"]
    memory = [report.ours(kind, "24mp")["peak_bytes_per_pixel"] for kind in _OURS]
    gray, color = ([report.speedup(kind, size) for size in ("small", "2mp")] for kind in _OURS)
    sentences = [
        f"Two threads are {gray[0]:.2f} times as fast as one ({gray[1]:.2f} times at 2",
        "megapixels),",
        f"in color {color[0]:.2f} times ({color[1]:.2f}); a matrix product of the same run is",
        f"{report.sgemm[2] / report.sgemm[1]:.2f} times as fast. A pixel of 24 megapixels takes",
        f"{growth:.2f} times as long as one of 0.15. Peak memory above the input, output included,",
        f"is {memory[0]:.0f} bytes a pixel at 24 megapixels, {memory[1]:.0f} in color. nlnet does",
        f"{100 * small['share_of_sgemm']:.0f} % of the arithmetic that a matrix product does in",
        "the same time.",
    ]
    source = f"From `make bench` on commit {report.commit} (`benchmarks/results/speed.json`):"
    more = textwrap.fill(" ".join(sentences), WIDTH)
    return "\n\n".join([source, format_table(header, rows), more])


def _cells(report: Report, kind: str, method: str | None) -> list[str]:
    if method is None:
        return ["", "", ""]
    result = report.of(kind, method)
    ratio = result["seconds"] / report.ours(kind)["seconds"]
    psnr = result.get("psnr")
    return [
        f"{result['seconds']:.3f}",
        f"{ratio:.1f}" if ratio >= 0.1 else f"{ratio:.2f}",
        "" if psnr is None else f"{psnr:.2f}",
    ]


if __name__ == "__main__":
    main()
