"""Show images side by side, with PSNR and SSIM.

Show images side by side, each with an enlarged detail, and their PSNR and SSIM compared with the
first one, which is the clean image. PSNR and SSIM are also printed; for stacks, the means over all
pages.

Examples
--------
  nlnet compare clean.png noisy.png denoised.png -o figure.png
  nlnet compare clean.tif noisy.tif ours.tif theirs.tif -o figure.png --crop 310,120
  nlnet compare clean-stack.tif stack.tif -o figure.png --page 4 --data-range 4095
"""

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path

from nlnet.cli.arguments import DATA_RANGE, LARGEST, OVERWRITE, argument, positive
from nlnet.cli.messages import table
from nlnet.cli.output import check_output
from nlnet.errors import InputError

ARGUMENTS = (
    argument("clean CLEAN", "the clean image", Path),
    argument("others IMAGE", "the noisy image and results", Path, nargs="+"),
    argument("-o --output FIG.png", "figure to write", Path, required=True),
    argument(
        "--crop X,Y",
        "center of the enlarged detail (default: where there is most structure)",
        lambda text: _point(text),
    ),
    argument("--page N", "page of a stack to show (default: 1, the first)", positive, 1),
    DATA_RANGE,
    LARGEST,
    OVERWRITE,
)


def run(arguments: argparse.Namespace) -> None:
    """Write the figure and print the table."""
    from nlnet.evaluation.comparison import compare
    from nlnet.images import read_pages, write_image

    paths = (arguments.clean, *arguments.others)
    for source in paths:
        check_output(
            arguments.output, overwrite=arguments.overwrite, source=source, suffixes=[".png"]
        )
    name, *names = distinct_names(paths)
    clean, *stacks = [read_pages(path, max_pixels=arguments.max_pixels) for path in paths]
    if arguments.page > len(clean):
        held = "1 page" if len(clean) == 1 else f"{len(clean)} pages"
        raise InputError(f"--page is {arguments.page}, but {name!r} has {held}.")
    comparisons, figure = compare(
        clean,
        list(zip(names, stacks, strict=True)),
        name=name,
        data_range=arguments.data_range,
        centre=arguments.crop,
        page=arguments.page - 1,
    )
    write_image(arguments.output, figure)
    rows = [(each.name, f"{each.psnr:.3f}", f"{each.ssim:.4f}") for each in comparisons]
    print("\n".join(table([("image", "PSNR", "SSIM"), *rows])))
    if len(clean) > 1:
        print(f"These are means over {len(clean)} pages; the figure shows page {arguments.page}.")


def distinct_names(paths: Sequence[Path]) -> list[str]:
    """Return the files' names, with as many of their folders as needed to make them distinct.

    Examples
    --------
    >>> distinct_names([Path("in/x.png"), Path("out/x.png"), Path("y.png")])
    ['in/x.png', 'out/x.png', 'y.png']
    """
    every = [Path(os.path.abspath(path)) for path in paths]
    names = []
    for path in every:
        count, others = 1, set(every) - {path}
        while any(path.parts[-count:] == other.parts[-count:] for other in others):
            count += 1
        names.append(Path(*path.parts[-count:]).as_posix())
    return names


def _point(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,9}),(\d{1,9})", text, re.ASCII)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} must be two whole numbers, such as 310,120")
    return int(match[1]), int(match[2])
