"""Add noise to an image, for tests.

Add white Gaussian noise to an image. Depth, transparency and metadata are kept. Whole numbers are
rounded and kept in the data range, signed and 32-bit ones in what their type holds; floating values
(TIFF, npy) are neither, as in experiments.

Examples
--------
  nlnet add-noise clean.png -o noisy.png --sigma 25
  nlnet add-noise clean.tif -o noisy.tif --sigma 10 --seed 3
"""

import argparse
from pathlib import Path

from nlnet.cli.arguments import DATA_RANGE, LARGEST, OVERWRITE, SIGMA, argument, whole_number
from nlnet.cli.output import WRITING, check_output, writing_options

ARGUMENTS = (
    argument("input IN", "clean image", Path),
    argument("-o --output OUT", "noisy image to write", Path, required=True),
    SIGMA,
    argument(
        "--seed N", "seed of the noise; page N of a stack gets the seed plus N", whole_number, 0
    ),
    DATA_RANGE,
    LARGEST,
    OVERWRITE,
    WRITING,
)


def run(arguments: argparse.Namespace) -> None:
    """Add noise to one file."""
    import dataclasses

    from nlnet.files.data_range import check_white, known_white, white_of
    from nlnet.images import check_format, losses, read_pages, write_pages
    from nlnet.noise import add_noise, store

    source, target = arguments.input, arguments.output
    check_output(target, overwrite=arguments.overwrite, source=source)
    pages = read_pages(source, max_pixels=arguments.max_pixels)
    writing = writing_options(arguments)
    check_format(target, pages[0], len(pages), writing)
    results = []
    for number, page in enumerate(pages):
        white = white_of(page, arguments.data_range)
        check_white(page, arguments.data_range, str(source))
        noisy = add_noise(page.pixels, arguments.sigma * white / 255, arguments.seed + number)
        known = known_white(page, arguments.data_range)
        pixels = store(noisy, page.pixels.dtype, known)
        results.append(dataclasses.replace(page, pixels=pixels))
    write_pages(target, results, writing)
    for line in results[0].notes + losses(target, results, writing):
        print(f"{source}: {line}")
