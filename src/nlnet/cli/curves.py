"""``nlnet curves``: training curves of one or several runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from nlnet.cli.arguments import Subparsers, add_overwrite
from nlnet.cli.extras import needs_extra
from nlnet.cli.output import check_output
from nlnet.errors import InputError

_DESCRIPTION = """\
Draw the training curves of one or several runs of 'nlnet train', over time and over epochs. It
needs matplotlib: pip install 'nlnet[plot]'.
"""
_EPILOG = """\
examples:
  nlnet curves runs/toy -o toy.png
  nlnet curves runs/gray-5x5-s25 runs/gray-5x5-s25-lbfgs -o adam-lbfgs.pdf
"""


def add_parser(commands: Subparsers) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "curves",
        help="draw training curves",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="folder of a run, or its log.jsonl"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FIG", help="PNG, PDF or SVG to write"
    )
    add_overwrite(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Draw the curves."""
    from nlnet.training.log import read_log

    with needs_extra("plot", "matplotlib"):
        from nlnet.plotting.curves import draw_curves
        from nlnet.plotting.files import check_suffix, save_figure

    check_suffix(arguments.output)
    check_output(arguments.output, overwrite=arguments.overwrite)
    runs = {_name(path): read_log(path) for path in arguments.runs}
    if len(runs) < len(arguments.runs):
        raise InputError("Two of the runs have the same name, and could not be told apart.")
    save_figure(draw_curves(runs), arguments.output)


def _name(run: Path) -> str:
    """Return the name of the run's folder."""
    path = run.resolve()
    return path.name if path.is_dir() else path.parent.name
