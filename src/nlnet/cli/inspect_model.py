"""Draw what a model has learned.

Draw what a model has learned: the filters, psi functions, potentials and group weights of every
stage. It needs matplotlib: pip install 'nlnet[plot]'.

Examples
--------
  nlnet inspect gray-5x5-s25 -o model.png
  nlnet inspect gray --sigma 50 -o model.png
  nlnet inspect runs/toy/best.safetensors -o toy.pdf
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nlnet.cli.arguments import LEVEL, MODEL
from nlnet.cli.output import DRAWING, write_drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ARGUMENTS = (MODEL, LEVEL, *DRAWING)


def run(arguments: argparse.Namespace) -> None:
    """Draw the model."""
    write_drawing(arguments, lambda: _draw(arguments.model, arguments.sigma))


def _draw(model: str, sigma: float) -> Figure:
    from nlnet.model.family import Family
    from nlnet.model.loading import load_model
    from nlnet.plotting.inspection import draw_model

    loaded = load_model(model)
    here = f", at sigma {sigma:g}" if isinstance(loaded, Family) else ""
    return draw_model(loaded.at(sigma), f"{loaded}{here}")
