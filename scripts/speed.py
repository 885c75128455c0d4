"""The speed that README and docs tell of: ``python -m scripts.speed``, after ``make bench``.

Draws ``docs/images/speed.png``, and writes what the files of ``benchmarks/results`` say into the
README, ``docs/performance.md``, ``docs/training.md`` and what ``nlnet models`` shows:
``speed.json``, ``quality.json``, ``command.json``, ``training.json`` and ``wasm.json``.
"""

from __future__ import annotations

import textwrap
from typing import Any

from scripts import frontier
from scripts.frontier import KINDS, Report, read_benchmark
from scripts.markdown import format_table, insert_block
from scripts.results import PROJECT

WIDTH = 100
_STAR = textwrap.fill(
    "\\* as published. DnCNN and FFDNet run here with random weights, for their time; the PSNR of "
    "the others is the mean over BSD68 at sigma 25, in dB. Empty cells were not measured.",
    WIDTH,
)


def main() -> None:
    """Draw the plot, and write all pages."""
    from scripts.frontier_plot import plot_frontier

    report = Report(read_benchmark("speed"))
    plot_frontier(frontier.points(report), report.cpu, frontier.PLOT)
    frontier.write_times()
    for name in ("README.md", "docs/performance.md", "docs/training.md"):
        page = PROJECT / name
        page.write_text(fill_in(name, page.read_text()))


def fill_in(name: str, page: str) -> str:
    """Return a page, README.md or one of docs/, with the figures of the committed results."""
    report = Report(read_benchmark("speed"))
    blocks = {
        "README.md": {"speed": format_summary(report)},
        "docs/performance.md": {
            "speed": format_page(report),
            "commands": format_commands(read_benchmark("command")),
            "wasm": format_wasm(read_benchmark("wasm")),
        },
        "docs/training.md": {"training-speed": format_training(read_benchmark("training"))},
    }
    for mark, block in blocks[name].items():
        page = insert_block(page, mark, block)
    return page


def format_summary(report: Report) -> str:
    """Return the README's words."""
    gray, color = report.ours("gray"), report.ours("color")
    opencv, bm3d = report.of("gray", "OpenCV NLM"), report.of("gray", "bm3d")
    dncnn, color_opencv = report.of("gray", "DnCNN-17 torch"), report.of("color", "OpenCV NLM")
    large = [report.ours(kind, "24mp")["seconds"] for kind in KINDS]
    sentences = [
        f"On two cores, a gray image of 481x321 pixels takes {gray['seconds']:.2f} s. OpenCV's",
        f"non-local means takes {opencv['seconds']:.2f} s and is",
        f"{_worse('OpenCV NLM'):.1f} dB worse, DnCNN takes {dncnn['seconds']:.2f} s, and",
        f"BM3D takes {bm3d['seconds']:.1f} s and is {_worse('bm3d'):.2f} dB worse.",
        f"A color image takes {color['seconds']:.2f} s; OpenCV {color_opencv['seconds']:.2f} s and",
        f"BM3D {report.of('color', 'bm3d')['seconds']:.0f} s. Memory is bounded and the time per",
        f"pixel stays the same for images of any size: 24 megapixels take {large[0]:.0f} s in",
        f"gray and {large[1]:.0f} s in color. `make bench` measures it on your machine; these",
        f"numbers are from commit {report.commit} ([all of them](benchmarks/results/speed.json)).",
    ]
    words = textwrap.fill(" ".join(sentences), WIDTH)
    return "\n\n".join([words, frontier.format_frontier(report), _STAR])


def _worse(method: str) -> float:
    """Return how much worse on BSD68 another gray method is than ours."""
    ours, _ = frontier.psnr_of("gray", "nlnet gray")
    theirs, _ = frontier.psnr_of("gray", method)
    return (ours or 0.0) - (theirs or 0.0)


def format_page(report: Report) -> str:
    """Return the table of the performance page, and what else the run says."""
    small = report.ours("gray")
    sentences = [
        f"Two threads are {report.speedup('gray', 'small'):.2f} times as fast as one, in color",
        f"{report.speedup('color', 'small'):.2f} times; a matrix product of the same run is",
        f"{report.sgemm[2] / report.sgemm[1]:.2f} times as fast. nlnet does",
        f"{100 * small['share_of_sgemm']:.0f} % of the arithmetic that a matrix product does in",
        "the same time.",
    ]
    large = report.ours("gray", "24mp")
    growth = large["seconds"] / large["pixels"] * small["pixels"] / small["seconds"]
    memory = [report.ours(kind, "24mp")["peak_bytes_per_pixel"] for kind in KINDS]
    sentences += [
        f"The time per pixel at 24 megapixels is {growth:.2f} times that at 0.15. Peak memory",
        f"besides the input, with the output, is {memory[0]:.0f} bytes per pixel at 24",
        f"megapixels, and {memory[1]:.0f} in color.",
    ]
    source = f"From `make bench` on commit {report.commit} (`benchmarks/results/speed.json`):"
    more = textwrap.fill(" ".join(sentences), WIDTH)
    return "\n\n".join([source, frontier.format_frontier(report), _STAR, more])


def format_commands(content: dict[str, Any]) -> str:
    """Return the table of whole commands."""
    rows = [
        [name, f"{result['seconds']:.3g}", f"{result['peak_bytes'] / 1e6:.0f}"]
        for name, result in content.items()
        if isinstance(result, dict) and "peak_bytes" in result
    ]
    source = (
        f"From `make bench-command` on commit {content['commit'][:7]} "
        "(`benchmarks/results/command.json`): the time from the start of the process to the file "
        "written, and the most memory the whole process ever held. `import nlnet` and a first "
        f"call on 256x256 pixels take {content['first_call_seconds']['median']:.2f} s; installed "
        f"with all it needs, nlnet takes {content['installed_bytes'] / 1e6:.0f} MB."
    )
    table = format_table(["gray, two cores", "seconds", "MB"], rows)
    return "\n\n".join([textwrap.fill(source, WIDTH), table])


def format_wasm(content: dict[str, Any]) -> str:
    """Return the time of the kernels in WebAssembly beside native code."""
    ratios = content["times_native_sse2"]
    kernels = {"matching": "match, patch 5", "a stage": "spread, fold         5x5 float"}
    compared = " and ".join(f"{ratios[key]:.2f} times ({name})" for name, key in kernels.items())
    words = (
        "In WebAssembly, one thread takes "
        f"{compared} as long as native SSE2 code for the gray 5x5 network, in the same run "
        f"(`python -m engine.wasm --time` on commit {content['commit'][:7]}, "
        "`benchmarks/results/wasm.json`)."
    )
    return textwrap.fill(words, WIDTH)


def format_training(content: dict[str, Any]) -> str:
    """Return what a step of training takes, and how that grows."""
    engine, plain = content["seconds"]["engine"], content["seconds"]["plain"]
    difference = content["relative_gradient_difference"]
    sentences = [
        "On two cores, the forward and backward pass of the five-stage gray 5x5 network on 4 crops",
        f"of 128x128 takes {engine:.3f} s in nlnet's compiled code and {plain:.3f} s in plain",
        f"torch operations with autograd, {content['plain_over_engine']:.1f} times as long. The",
        f"gradients agree to {difference:.0e}. The time is proportional to the number of pixels,",
        "plus some overhead for small crops, which have few tiles to share and more border",
        f"(`make bench-training` on commit {content['commit'][:7]},",
        "`benchmarks/results/training.json`):",
    ]
    sizes = content["ns_per_pixel"]
    shown = {
        "forward_backward": "forward and backward, ns per pixel",
        "matching": "matching, ns per pixel",
    }
    rows = [
        [name, *(f"{figures[key]:.0f}" for figures in sizes.values())]
        for key, name in shown.items()
    ]
    table = format_table(["4 crops of", *(f"{size}x{size}" for size in sizes)], rows)
    return "\n\n".join([textwrap.fill(" ".join(sentences), WIDTH), table])


if __name__ == "__main__":
    main()
