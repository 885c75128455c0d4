"""Remove noise from image files.

Remove noise from images: PNG, JPEG, WebP, AVIF, HEIC, JPEG XL, GIF, BMP, TIFF (also stacks), FITS,
PGM, PPM and npy. Bit depth, transparency, color profile, EXIF and resolution are kept. Raw files of
cameras are denoised before they are developed. Images of any size in zarr folders and OME-TIFF
files are denoised block by block, on this machine or on a Dask cluster.

Examples
--------
  nlnet denoise noisy.png -o clean.png
  nlnet denoise noisy.png -o clean.png --sigma 25 --preview look.png
  nlnet denoise scan.tif -o scan-clean.tif --sigma 10 --quality best
  nlnet denoise photos/ -o cleaned/ --recursive --workers 2
  nlnet denoise 'shots/*.jpg' -o cleaned/ --strength 0.5,1
  nlnet denoise cells.tif -o cells-clean.tif --noise poisson
  nlnet denoise stack.tif -o stack-clean.tif --sigma 10,12,15
  nlnet denoise movie.ome.tif -o movie-clean.ome.tif --along t
  nlnet denoise frames/ -o cleaned/ --along files
  nlnet denoise camera.tif -o clean.tif --data-range 4095 --mask dead-pixels.png
  nlnet denoise scan.tif -o scan.jpg --depth 8 --jpeg-quality 90
  nlnet denoise IMG_0001.CR3 -o IMG_0001.tif --highlight-mode Blend
  nlnet denoise scan.tif -o clean.tif --sigma sigma-of-every-pixel.tif
  nlnet denoise slide.zarr -o clean.zarr --sigma 12
  curl -s https://example.org/noisy.png | nlnet denoise - -o - --format jpg >clean.jpg
  nlnet denoise slide.ome.tif -o clean.zarr --scheduler tcp://10.0.0.1:8786

--sigma is on the 8-bit scale whatever the bit depth of the file: 25 is about a tenth of white. It
is the strength of white noise or, with --noise camera, the mean strength of camera noise. If white
noise is not equally strong everywhere, it is a file (TIFF or npy, for instance) with the sigma of
every pixel, on that scale too: the value 25 is a sigma of 25, whatever the type of the map. Without
it, the kind and strength of the noise are estimated for every file, and reported. If the output is
a folder, files that exist there are skipped, so an interrupted run continues where it stopped.
'nlnet models' lists the models; from a family, the one trained for the nearest sigma is used.
"""

from __future__ import annotations

import argparse
import glob
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.denoise_folder import SEPARATORS, denoise_many
from nlnet.cli.denoise_options import ARGUMENTS as ARGUMENTS
from nlnet.cli.denoise_options import settings_of
from nlnet.cli.denoise_volume import denoise_out_of_core, means_volume
from nlnet.cli.messages import outcome_lines
from nlnet.cli.output import check_output
from nlnet.cli.streams import STREAM, files_of, uses_streams
from nlnet.cli.writing import check_writes_images
from nlnet.errors import InputError

if TYPE_CHECKING:
    from nlnet.files.settings import Settings


def run(arguments: argparse.Namespace) -> int:
    """Denoise one file, or many."""
    settings = settings_of(arguments)
    if arguments.format is not None and arguments.output != STREAM:
        raise InputError("--format is for standard output; the suffix of a file names its format.")
    if not uses_streams(arguments):
        if means_volume(arguments):
            check_writes_images(arguments)
            denoise_out_of_core(settings, arguments)
            return 0
        if _means_folder(arguments):
            return denoise_many(settings, arguments)
        if arguments.scheduler is not None:
            raise InputError(
                "--scheduler is for zarr and TIFF files and for folders of images, but the "
                f"input is {arguments.inputs[0]!r}."
            )
    with files_of(arguments) as (source, target):
        _denoise_one(source, target, settings, arguments)
    return 0


def _means_folder(arguments: argparse.Namespace) -> bool:
    """As `cp` does it: several inputs, or an output that is a folder, mean a folder."""
    name, *others = arguments.inputs
    pattern = glob.has_magic(name) and not os.path.lexists(name)
    several = others or pattern or os.path.isdir(name)
    return bool(several or os.path.isdir(arguments.output)) or arguments.output.endswith(SEPARATORS)


def _denoise_one(
    source: Path, target: Path, settings: Settings, arguments: argparse.Namespace
) -> None:
    from nlnet.cli.messages import share_bar
    from nlnet.files.one_file import denoise_file

    preview, error = arguments.preview, arguments.error
    if error is not None and error.suffix.lower() not in (".tif", ".tiff", ".npy"):
        raise InputError(f"--error is {str(error)!r}, but must be a TIFF or npy file.")
    outputs = {"output": (target, ()), "preview": (preview, [".png"]), "errors": (error, ())}
    for name, (path, suffixes) in outputs.items():
        if path is None:
            continue
        check_output(path, overwrite=arguments.overwrite, source=source, suffixes=suffixes)
        if name != "output" and os.path.abspath(path) == os.path.abspath(target):
            raise InputError(f"The output and the {name} are both {str(target)!r}.")
    with share_bar(source.name) as progress:
        outcome = denoise_file(source, target, settings, progress, keep_before=preview is not None)
    stream = sys.stderr if arguments.output == STREAM else sys.stdout
    names = arguments.inputs[0], arguments.output
    for line in outcome_lines(*names, outcome.findings, as_json=arguments.json):
        print(line, file=stream)
    if preview is not None:
        from nlnet.evaluation.comparison import preview_figure
        from nlnet.images import write_image

        write_image(preview, preview_figure(outcome, settings.data_range))
