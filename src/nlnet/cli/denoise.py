"""``nlnet denoise``: one image file in, one out."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from nlnet.cli.arguments import Subparsers, add_overwrite, add_sigma, add_threads
from nlnet.cli.output import check_output

_DESCRIPTION = """\
Remove white Gaussian noise from an image. Bit depth, transparency and metadata are kept.
PNG and TIFF files may have 8 or 16 bits, JPEG files have 8.
"""
_EPILOG = """\
examples:
  nlnet denoise noisy.png -o clean.png --sigma 25
  nlnet denoise scan.tif -o scan-clean.tif --sigma 10 --model gray-7x7
  nlnet denoise photo.jpg -o photo-clean.png --sigma 15 --overwrite

sigma is on the 8-bit scale whatever the depth of the file: 25 is about a tenth of white.
'nlnet models' lists the models; of a family, the one trained for the nearest sigma is taken.
"""


def add_parser(commands: Subparsers) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "denoise",
        help="remove noise from an image file",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("input", type=Path, metavar="IN", help="noisy image: PNG, JPEG or TIFF")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="OUT",
        help="denoised image; its suffix names the format",
    )
    add_sigma(parser)
    parser.add_argument(
        "--model",
        default="auto",
        metavar="M",
        help="family, model name or model file (default: gray-5x5 or color-5x5, as the image is)",
    )
    add_threads(parser)
    add_overwrite(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Denoise one file."""
    from nlnet import images
    from nlnet.cli.progress import share_bar
    from nlnet.denoising import DATA_RANGES, denoise

    check_output(arguments.output, overwrite=arguments.overwrite, source=arguments.input)
    noisy = images.read_image(arguments.input)
    images.check_format(arguments.output, noisy)
    with share_bar(arguments.input.name) as progress:
        pixels = denoise(
            noisy.pixels,
            arguments.sigma * DATA_RANGES[noisy.pixels.dtype] / 255,
            model=arguments.model,
            threads=arguments.threads,
            progress=progress,
        )
    images.write_image(arguments.output, dataclasses.replace(noisy, pixels=pixels))
