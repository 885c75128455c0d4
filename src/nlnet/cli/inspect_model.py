"""``nlnet inspect``: what a model has learned, as a figure."""

from __future__ import annotations

import argparse
from pathlib import Path

from nlnet.cli.arguments import Subparsers, add_overwrite
from nlnet.cli.extras import needs_extra
from nlnet.cli.output import check_output

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
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FIG", help="PNG, PDF or SVG to write"
    )
    add_overwrite(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Draw the model."""
    from nlnet.model import load_model

    with needs_extra("plot", "matplotlib"):
        from nlnet.plotting.files import check_suffix, save_figure
        from nlnet.plotting.inspection import draw_model

    check_suffix(arguments.output)
    check_output(arguments.output, overwrite=arguments.overwrite)
    save_figure(draw_model(load_model(arguments.model)), arguments.output)
