"""``nlnet import``: the published MATLAB models of the paper's author as model files."""

from __future__ import annotations

import argparse
from pathlib import Path

from nlnet.cli.arguments import Subparsers, add_overwrite
from nlnet.cli.output import check_output
from nlnet.errors import InputError

_DESCRIPTION = """\
Convert a model that the paper's author published (a MATLAB file) into a model file of nlnet.
It needs SciPy: pip install 'nlnet[import]'. Those models are licensed for non-commercial use.
"""
_EPILOG = """\
examples:
  nlnet import nlnet_5x5_std25_joint.mat author-s25.safetensors
  nlnet denoise noisy.png -o clean.png --sigma 25 --model author-s25.safetensors
"""
_SUFFIX = ".safetensors"


def add_parser(commands: Subparsers) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "import",
        help="convert a published MATLAB model",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", type=Path, metavar="AUTHOR.mat", help="published model")
    parser.add_argument("output", type=Path, metavar="OUT.safetensors", help="model file to write")
    add_overwrite(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Convert one model."""
    from nlnet.importer import import_author_model

    if arguments.output.suffix != _SUFFIX:
        raise InputError(f"The output {str(arguments.output)!r} must have the suffix {_SUFFIX!r}.")
    check_output(arguments.output, overwrite=arguments.overwrite, source=arguments.input)
    model = import_author_model(arguments.input)
    model.save(arguments.output)
    print(model)
