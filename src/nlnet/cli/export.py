"""``nlnet export``: a model as a parameter block, for programs in other languages."""

from __future__ import annotations

import argparse
from pathlib import Path

from nlnet.cli.arguments import LEVEL, MODEL, OVERWRITE, argument
from nlnet.cli.output import check_output

NAME = "export"
SUMMARY = "write a model for programs in other languages"
DESCRIPTION = """\
Write a model as one flat block of parameters, which the engine takes from C and other languages;
docs/engine.md describes it. Images must be scaled so that their noise is the one in the block.
"""
EPILOG = """\
examples:
  nlnet export gray-5x5-s25 -o model.bin
  nlnet export gray --sigma 10 -o model.bin
  nlnet export runs/toy/best.safetensors -o toy.bin
"""

FORMATS_OF_OTHERS = (".onnx", ".pt", ".pth", ".pt2", ".safetensors", ".tflite", ".h5", ".mlmodel")
ARGUMENTS = (
    MODEL,
    argument("-o --output OUT.bin", "file to write", Path, required=True),
    LEVEL,
    OVERWRITE,
)


def run(arguments: argparse.Namespace) -> None:
    """Write the block."""
    from nlnet.atomic import write_atomically
    from nlnet.errors import InputError
    from nlnet.model.loading import load_model
    from nlnet.network.block import pack

    check_output(arguments.output, overwrite=arguments.overwrite, source=Path(arguments.model))
    if arguments.output.suffix.lower() in FORMATS_OF_OTHERS:
        raise InputError(
            f"{str(arguments.output)!r} names a format that nlnet does not write; it writes the "
            "engine's parameter block, whose name may end in .bin, and docs/engine.md describes it."
        )
    loaded = load_model(arguments.model)
    model = loaded.at(arguments.sigma)
    block = pack(model.config, model.stages, model.sigma, model.refinement)
    write_atomically(arguments.output, block)
    print(f"{loaded}: {len(block):,} bytes")
