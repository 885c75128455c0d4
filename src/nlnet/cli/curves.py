"""Draw training curves.

Draw the training curves of one or several runs of 'nlnet train', over time and over epochs. It
needs matplotlib: pip install 'nlnet[plot]'.

Examples
--------
  nlnet curves runs/toy -o toy.png
  nlnet curves runs/gray-5x5-s25 runs/gray-5x5-s25-lbfgs -o adam-lbfgs.pdf
"""

import argparse
from pathlib import Path

from nlnet.cli.arguments import argument
from nlnet.cli.output import DRAWING, drawing
from nlnet.errors import InputError

ARGUMENTS = (
    argument("runs RUN", "folder of a run, or a log.jsonl", Path, nargs="+"),
    *DRAWING,
)


def run(arguments: argparse.Namespace) -> None:
    """Draw the curves."""
    from nlnet.training.progress import read_log

    with drawing(arguments.output, overwrite=arguments.overwrite) as write:
        from nlnet.plotting.curves import draw_curves

        runs = {_name(path): read_log(path) for path in arguments.runs}
        if len(runs) < len(arguments.runs):
            raise InputError("Two of the runs have the same name, and could not be told apart.")
        write(draw_curves(runs))


def _name(run: Path) -> str:
    """Return the name of the run's folder, or of the log file if that has been renamed."""
    from nlnet.training.progress import FILE_NAME

    path = run.resolve()
    if path.is_dir():
        return path.name
    return path.parent.name if path.name == FILE_NAME else path.stem
