"""``nlnet compare``: images side by side, with zoomed details and figures."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from nlnet.cli.arguments import Subparsers, add_data_range, add_max_pixels, add_overwrite
from nlnet.cli.output import check_figure

_DESCRIPTION = """\
Show images side by side with an enlarged detail each, and their PSNR and SSIM against the first,
which is the clean one. The same figures are printed.
"""
_EPILOG = """\
examples:
  nlnet compare clean.png noisy.png denoised.png -o figure.png
  nlnet compare clean.tif noisy.tif ours.tif theirs.tif -o figure.png --crop 310,120
"""


def add_parser(commands: Subparsers) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare",
        help="show images side by side, with PSNR and SSIM",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("clean", type=Path, metavar="CLEAN", help="the clean image")
    parser.add_argument(
        "others", type=Path, nargs="+", metavar="IMAGE", help="the noisy image and results"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FIG.png", help="figure to write"
    )
    parser.add_argument(
        "--crop",
        type=_point,
        metavar="X,Y",
        help="middle of the enlarged detail (default: where there is most to see)",
    )
    add_data_range(parser)
    add_max_pixels(parser)
    add_overwrite(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    """Write the figure and print the table."""
    from nlnet.comparison import compare
    from nlnet.images import read_image, write_image

    for source in (arguments.clean, *arguments.others):
        check_figure(arguments.output, overwrite=arguments.overwrite, source=source)
    limit = 1_000_000 * arguments.max_pixels
    comparisons, figure = compare(
        read_image(arguments.clean, max_pixels=limit),
        [(path.name, read_image(path, max_pixels=limit)) for path in arguments.others],
        name=arguments.clean.name,
        data_range=arguments.data_range,
        centre=arguments.crop,
    )
    write_image(arguments.output, figure)
    width = max(len("image"), *(len(comparison.name) for comparison in comparisons))
    print(f"{'image':<{width}}  {'PSNR':>8}  {'SSIM':>7}")
    for comparison in comparisons:
        print(f"{comparison.name:<{width}}  {comparison.psnr:8.3f}  {comparison.ssim:7.4f}")


def _point(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,9}),(\d{1,9})", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} must be two whole numbers, such as 310,120")
    return int(match[1]), int(match[2])
