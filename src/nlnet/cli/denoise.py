"""``nlnet denoise``: image files in, image files out."""

from __future__ import annotations

import argparse
import glob
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.arguments import (
    Subparsers,
    add_data_range,
    add_max_pixels,
    add_overwrite,
    add_sigma,
    add_threads,
    byte_count,
    positive,
    shares,
)
from nlnet.cli.denoise_folder import denoise_many
from nlnet.cli.denoise_raw import add_development, development_of
from nlnet.cli.denoise_volume import denoise_out_of_core, means_volume, on_cluster
from nlnet.cli.messages import outcome_lines
from nlnet.cli.output import check_figure, check_output
from nlnet.cli.streams import STREAM, denoise_streams, uses_streams
from nlnet.cli.writing import add_writing, check_writes_images, writing_options
from nlnet.errors import FileError, InputError, reason_of

if TYPE_CHECKING:
    from nlnet.files.settings import Settings
    from nlnet.noise.record import Noise

_DESCRIPTION = """\
Remove noise from images: PNG, JPEG, WebP, AVIF, GIF, BMP, TIFF (stacks too), PGM, PPM and npy.
Cameras' raw files are denoised before they are developed, with the noise found in them.
Bit depth, transparency, color profile, EXIF and resolution are kept. Images of any size in zarr
folders and OME-TIFF files are worked on block by block, here or on a Dask cluster.
"""
_EPILOG = """\
examples:
  nlnet denoise noisy.png -o clean.png
  nlnet denoise noisy.png -o clean.png --sigma 25 --preview look.png
  nlnet denoise scan.tif -o scan-clean.tif --sigma 10 --model gray-7x7
  nlnet denoise photos/ -o cleaned/ --recursive --workers 2
  nlnet denoise 'shots/*.jpg' -o cleaned/ --strength 0.5,1
  nlnet denoise cells.tif -o cells-clean.tif --noise poisson
  nlnet denoise camera.tif -o clean.tif --data-range 4095 --mask dead-pixels.png
  nlnet denoise scan.tif -o scan.jpg --depth 8 --jpeg-quality 90
  nlnet denoise IMG_0001.CR3 -o IMG_0001.tif --highlight-mode Blend
  nlnet denoise slide.zarr -o clean.zarr --sigma 12
  curl -s https://example.org/noisy.png | nlnet denoise - -o - --format jpg >clean.jpg
  nlnet denoise slide.ome.tif -o clean.zarr --scheduler tcp://10.0.0.1:8786

sigma is on the 8-bit scale whatever the depth of the file: 25 is about a tenth of white. It means
white noise, or the mean strength of camera noise with --noise camera. Without it the kind and the
strength of every image's noise are found out, and said. With a folder as output, files that exist
there are skipped, so that an interrupted run goes on where it stopped.
'nlnet models' lists the models; of a family, the one trained for the nearest sigma is taken.
"""
_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))


def add_parser(commands: Subparsers) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "denoise",
        help="remove noise from image files",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "inputs", nargs="+", metavar="IN", help="noisy images, folders of them, or patterns"
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="denoised image, whose suffix names the format; for several inputs a folder; - is "
        "standard output",
    )
    add_sigma(parser, automatic=True)
    parser.add_argument(
        "--noise",
        default="auto",
        metavar="KIND",
        help="what the noise is: white, poisson (photon noise), camera (correlated, as in photos), "
        "or a record in a JSON file as 'nlnet noise --json' writes it (default: auto, found out)",
    )
    add_data_range(parser)
    parser.add_argument(
        "--model",
        default="auto",
        metavar="M",
        help="family, model name or model file (default: gray-5x5 or color-5x5, as the image is)",
    )
    parser.add_argument(
        "--strength",
        type=shares,
        default=1.0,
        metavar="X",
        help="share of the noise to remove, from 0 to 1; or two, such as 0.5,1, for luma (grain) "
        "and chroma (blotches of color) (default: 1)",
    )
    parser.add_argument(
        "--mask",
        type=Path,
        metavar="FILE",
        help="image whose pixels other than 0 are left out of what is denoised, and of what is "
        "looked at for it; of one page, or as many as the input; NaN is left out in any case",
    )
    parser.add_argument(
        "--preview",
        type=Path,
        metavar="FIG.png",
        help="also write a figure: before, after, and what was removed (one input only)",
    )
    parser.add_argument(
        "--format",
        metavar="F",
        help="format for standard output, such as png (default: that of the input)",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="say what was done in lines of JSON, one for each file; on standard error with -o -",
    )
    add_writing(parser)
    files = parser.add_argument_group("many files")
    files.add_argument("--recursive", action="store_true", help="go into folders inside folders")
    files.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="files, or blocks of a zarr folder, at a time (default: 1)",
    )
    add_overwrite(files)
    add_development(parser)
    limits = parser.add_argument_group("machine")
    add_threads(limits)
    limits.add_argument(
        "--max-memory",
        type=byte_count,
        metavar="SIZE",
        help="memory for the work besides the image, such as 500M or 2G (default: no limit)",
    )
    add_max_pixels(limits)
    limits.add_argument(
        "--device",
        default="cpu",
        metavar="D",
        help="cpu, or with torch installed cuda or mps (default: cpu)",
    )
    limits.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="let a Dask cluster do the work: zarr, TIFF, or a folder of images; the address is "
        "like tcp://10.0.0.1:8786, or a scheduler file",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Denoise one file, or many."""
    from nlnet.files.settings import Settings

    settings = Settings(
        sigma=arguments.sigma,
        model=arguments.model,
        data_range=arguments.data_range,
        strength=arguments.strength,
        noise=_noise(arguments.noise),
        threads=arguments.threads,
        max_memory=arguments.max_memory,
        device=arguments.device,
        max_pixels=1_000_000 * arguments.max_pixels,
        writing=writing_options(arguments),
        development=development_of(arguments),
        mask=None if arguments.mask is None else arguments.mask.absolute(),
    )
    settings.check()
    output = Path(arguments.output)
    if arguments.format is not None and arguments.output != STREAM:
        raise InputError("--format is for standard output; the suffix of a file names its format.")
    if uses_streams(arguments):
        denoise_streams(
            arguments,
            lambda source, target: _denoise_one(source, target, settings, arguments),
        )
        return 0
    if means_volume(arguments):
        check_writes_images(arguments)
        denoise_out_of_core(Path(arguments.inputs[0]), output, settings, arguments)
        return 0
    if not _means_folder(arguments.inputs, arguments.output):
        if arguments.scheduler is not None:
            raise InputError(
                "--scheduler is for zarr and TIFF files and for folders of images, but the "
                f"input is {arguments.inputs[0]!r}."
            )
        _denoise_one(Path(arguments.inputs[0]), output, settings, arguments)
        return 0
    if arguments.preview is not None:
        raise InputError("--preview shows one image, but the output is a folder.")
    _check_folder_name(arguments.output)
    if arguments.scheduler is not None:
        with on_cluster(arguments.scheduler, settings) as cluster:
            return denoise_many(output, settings, arguments, cluster)
    return denoise_many(output, settings, arguments)


def _noise(text: str) -> str | Noise | None:
    """Return a kind of noise, a record in a file, or None for what is to be found out."""
    from nlnet.noise.record import KINDS, Noise

    if text == "auto":
        return None
    if text in KINDS:
        return text
    try:
        return Noise.from_json(Path(text).read_text())
    except OSError as error:
        raise FileError(
            f"--noise is {text!r}, but must be auto, {', '.join(KINDS)}, or a JSON file; it cannot "
            f"be read: {reason_of(error)}."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"--noise is {text!r}, which is not a text file.") from error


def _means_folder(inputs: Sequence[str], output: str) -> bool:
    """As `cp` does it: several inputs, or an output that is a folder, mean a folder."""
    first = Path(inputs[0])
    pattern = glob.has_magic(inputs[0]) and not os.path.lexists(first)
    several = len(inputs) > 1 or first.is_dir() or pattern
    return several or Path(output).is_dir() or output.endswith(_SEPARATORS)


def _check_folder_name(output: str) -> None:
    """Refuse to make a folder that is called like a file."""
    from nlnet.images import SUFFIXES

    path = Path(output)
    file = path.suffix.lower() in (*SUFFIXES, ".zarr") and not output.endswith(_SEPARATORS)
    if file and not path.is_dir():
        raise InputError(
            f"Several images go into a folder, but the output {output!r} is named like a file; "
            f"if that is a folder, write {output + os.sep!r}."
        )


def _denoise_one(
    source: Path, target: Path, settings: Settings, arguments: argparse.Namespace
) -> None:
    from nlnet.cli.progress import share_bar
    from nlnet.files.one_file import denoise_file

    check_output(target, overwrite=arguments.overwrite, source=source)
    if arguments.preview is not None:
        _check_preview(arguments, source, target)
    with share_bar(source.name) as progress:
        keep = arguments.preview is not None
        outcome = denoise_file(source, target, settings, progress, keep_before=keep)
    piped = arguments.output == STREAM
    shown = Path(arguments.inputs[0]), Path(arguments.output)
    for line in outcome_lines(*shown, outcome.findings, as_json=arguments.json):
        print(line, file=sys.stderr if piped else sys.stdout)
    if arguments.preview is not None:
        from nlnet.evaluation.comparison import preview_figure
        from nlnet.images import write_image

        write_image(arguments.preview, preview_figure(outcome, settings.data_range))


def _check_preview(arguments: argparse.Namespace, source: Path, target: Path) -> None:
    check_figure(arguments.preview, overwrite=arguments.overwrite, source=source)
    if os.path.abspath(arguments.preview) == os.path.abspath(target):
        raise InputError(f"The output and the preview are both {str(target)!r}.")
