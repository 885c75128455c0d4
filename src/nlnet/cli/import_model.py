"""``nlnet import``: the published MATLAB models of the paper's author as model files."""

from __future__ import annotations

import argparse
from pathlib import Path

from nlnet.cli.arguments import Parser, add_overwrite
from nlnet.cli.output import check_output
from nlnet.errors import InputError

NAME = "import"
SUMMARY = "convert a published MATLAB model"
DESCRIPTION = """\
Convert a model that the paper's author published (a MATLAB file) into a model file of nlnet.
It needs SciPy: pip install 'nlnet[import]'. Those models are licensed for non-commercial use.
"""
EPILOG = """\
examples:
  nlnet import nlnet_5x5_std25_joint.mat -o author-s25.safetensors
  nlnet denoise noisy.png -o clean.png --sigma 25 --model author-s25.safetensors
"""
_SUFFIX = ".safetensors"


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("input", type=Path, metavar="AUTHOR.mat", help="published model")
    # Without -o, as it was before all commands had it, the second name still works.
    parser.add_argument("place", type=Path, nargs="?", help=argparse.SUPPRESS)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="OUT.safetensors", help="model file to write"
    )
    add_overwrite(parser)


def run(arguments: argparse.Namespace) -> None:
    """Convert one model."""
    from nlnet.model.matlab import import_author_model

    output = _output(arguments)
    if output.suffix != _SUFFIX:
        raise InputError(f"The output {str(output)!r} must have the suffix {_SUFFIX!r}.")
    check_output(output, overwrite=arguments.overwrite, source=arguments.input)
    model = import_author_model(arguments.input)
    model.save(output)
    print(model)


def _output(arguments: argparse.Namespace) -> Path:
    given = [path for path in (arguments.output, arguments.place) if path is not None]
    if len(given) != 1:
        raise InputError("Name one model file to write, with -o OUT.safetensors.")
    output: Path = given[0]
    return output
