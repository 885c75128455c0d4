"""Convert a published MATLAB model.

Convert a model that the paper's author published (a MATLAB file) into a model file of nlnet.
It needs SciPy: pip install 'nlnet[import]'. Those models are licensed for non-commercial use.

Examples
--------
  nlnet import nlnet_5x5_std25_joint.mat -o author-s25.safetensors
  nlnet denoise noisy.png -o clean.png --sigma 25 --model author-s25.safetensors
"""

import argparse
from pathlib import Path

from nlnet.cli.arguments import OVERWRITE, argument
from nlnet.cli.output import check_output

ARGUMENTS = (
    argument("input AUTHOR.mat", "published model", Path),
    argument("-o --output OUT.safetensors", "model file to write", Path, required=True),
    OVERWRITE,
)


def run(arguments: argparse.Namespace) -> None:
    """Convert one model."""
    from nlnet.model.matlab import import_author_model

    output = arguments.output
    check_output(
        output, overwrite=arguments.overwrite, source=arguments.input, suffixes=[".safetensors"]
    )
    model = import_author_model(arguments.input)
    model.save(output)
    print(model)
