"""Write a model for programs in other languages.

Write a model as one flat block of parameters, which the engine takes from C and other languages;
docs/engine.md describes it. Images must be scaled so that their noise is the one in the block.

Examples
--------
  nlnet export gray-5x5-s25 -o model.bin
  nlnet export gray --sigma 10 -o model.bin
  nlnet export gray --every-sigma -o family.bin
  nlnet export runs/toy/best.safetensors -o toy.bin
"""

import argparse
from pathlib import Path

from nlnet.cli.arguments import LEVEL, MODEL, OVERWRITE, argument
from nlnet.cli.output import check_output

FORMATS_OF_OTHERS = (".onnx", ".pt", ".pth", ".pt2", ".safetensors", ".tflite", ".h5", ".mlmodel")
ARGUMENTS = (
    MODEL,
    argument("-o --output OUT.bin", "file to write", Path, required=True),
    LEVEL,
    argument(
        "--every-sigma", "of a model for every sigma, the values at all of its sigmas: a family"
    ),
    OVERWRITE,
)


def run(arguments: argparse.Namespace) -> None:
    """Write the block."""
    from nlnet.atomic import write_atomically
    from nlnet.errors import InputError
    from nlnet.model.family import Family
    from nlnet.model.loading import load_model
    from nlnet.network.block import pack

    check_output(arguments.output, overwrite=arguments.overwrite, source=Path(arguments.model))
    if arguments.output.suffix.lower() in FORMATS_OF_OTHERS:
        raise InputError(
            f"{str(arguments.output)!r} names a format that nlnet does not write; it writes the "
            "engine's parameter block, whose name may end in .bin, and docs/engine.md describes it."
        )
    loaded = load_model(arguments.model)
    if not arguments.every_sigma:
        model = loaded.at(arguments.sigma)
        block = pack(model.config, model.stages, model.sigma, model.refinement)
    elif isinstance(loaded, Family):
        block = loaded.block()
    else:
        raise InputError(f"The model {loaded.name!r} is for one sigma; leave out --every-sigma.")
    write_atomically(arguments.output, block)
    print(f"{loaded}: {len(block):,} bytes")
