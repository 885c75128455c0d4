"""``nlnet models``: the models that come with nlnet."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from nlnet.cli.arguments import Parser

NAME = "models"
SUMMARY = "list the models that come with nlnet"
DESCRIPTION = """\
List the models that come with nlnet: the noise they are trained for, their size, their mean PSNR
on the 68 test images of BSD68 at that noise, and how they were trained.
"""
EPILOG = """\
examples:
  nlnet models
  nlnet denoise noisy.png -o clean.png --sigma 25 --model gray-7x7
"""


def add_arguments(parser: Parser) -> None:
    """Add nothing: the command has no arguments."""


def run(arguments: argparse.Namespace) -> None:
    """Print the table of models."""
    from nlnet.model.loading import load_model, shipped_models

    rows = [("name", "sigma", "parameters", "BSD68 PSNR", "trained")]
    for name in shipped_models():
        model = load_model(name)
        psnr = model.figures.get("bsd68_psnr")
        rows.append(
            (
                name,
                model.noise,
                f"{model.parameter_count:,}",
                "-" if psnr is None else f"{psnr:.3f}",
                str(model.provenance.get("recipe", "-")),
            )
        )
    print(_format_columns(rows))


def _format_columns(rows: Sequence[tuple[str, ...]]) -> str:
    """Align the columns: numbers right, the name and the last column left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for name, *numbers, note in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(numbers, widths[1:-1], strict=True)]
        lines.append("  ".join([f"{name:<{widths[0]}}", *cells, note]))
    return "\n".join(lines)
