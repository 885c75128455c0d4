"""Options and output of the commands that draw a figure."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.arguments import OVERWRITE, argument
from nlnet.cli.extras import needs_extra
from nlnet.cli.output import check_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DRAWING = (
    argument("-o --output FIG", "PNG, PDF or SVG to write", Path, required=True),
    OVERWRITE,
)


def write_drawing(arguments: argparse.Namespace, draw: Callable[[], Figure]) -> None:
    """Draw, and write the figure; whether the file can be written is checked first."""
    with needs_extra("plot", "matplotlib"):
        from nlnet.plotting.files import check_suffix, save_figure

        check_suffix(arguments.output)
        check_output(arguments.output, overwrite=arguments.overwrite)
        save_figure(draw(), arguments.output)
