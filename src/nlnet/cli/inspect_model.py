"""Draw what a model has learned.

Draw what a model has learned: the filters, psi functions, potentials and group weights of every
stage. It needs matplotlib: pip install 'nlnet[plot]'.

Examples
--------
  nlnet inspect gray-5x5-s25 -o model.png
  nlnet inspect gray --sigma 50 -o model.png
  nlnet inspect runs/toy/best.safetensors -o toy.pdf
"""

import argparse

from nlnet.cli.arguments import LEVEL, MODEL
from nlnet.cli.output import DRAWING, drawing

ARGUMENTS = (MODEL, LEVEL, *DRAWING)


def run(arguments: argparse.Namespace) -> None:
    """Draw the model."""
    from nlnet.model.family import Family
    from nlnet.model.loading import load_model

    with drawing(arguments.output, overwrite=arguments.overwrite) as write:
        from nlnet.plotting.inspection import draw_model

        loaded, sigma = load_model(arguments.model), arguments.sigma
        here = f", at sigma {sigma:g}" if isinstance(loaded, Family) else ""
        write(draw_model(loaded.at(sigma), f"{loaded}{here}"))
