"""``nlnet inspect``: what a model has learned, as a figure."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nlnet.cli.arguments import Subparsers
from nlnet.cli.drawing import add_drawing, write_drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DESCRIPTION = """\
Draw what a model has learned: the filters, psi functions, potentials and group weights of every
stage. It needs matplotlib: pip install 'nlnet[plot]'.
"""
_EPILOG = """\
examples:
  nlnet inspect gray-5x5-s25 -o model.png
  nlnet inspect runs/toy/best.safetensors -o toy.pdf
"""


def add_parser(commands: Subparsers) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "inspect",
        help="draw what a model has learned",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="name of a model, or a model file")
    add_drawing(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Draw the model."""
    write_drawing(arguments, lambda: _draw(arguments.model))


def _draw(model: str) -> Figure:
    from nlnet.model.loading import load_model
    from nlnet.plotting.inspection import draw_model

    return draw_model(load_model(model))
