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
    Parser,
    add_data_range,
    add_max_pixels,
    add_option,
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
from nlnet.model.defaults import QUALITIES

if TYPE_CHECKING:
    from nlnet.files.settings import Settings
    from nlnet.noise.record import Noise

NAME = "denoise"
SUMMARY = "remove noise from image files"
DESCRIPTION = """\
Remove noise from images: PNG, JPEG, WebP, AVIF, GIF, BMP, TIFF (also stacks), PGM, PPM and npy.
Bit depth, transparency, color profile, EXIF and resolution are kept. Raw files of cameras are
denoised before they are developed. Images of any size in zarr folders and OME-TIFF files are
denoised block by block, on this machine or on a Dask cluster.
"""
EPILOG = """\
examples:
  nlnet denoise noisy.png -o clean.png
  nlnet denoise noisy.png -o clean.png --sigma 25 --preview look.png
  nlnet denoise scan.tif -o scan-clean.tif --sigma 10 --quality best
  nlnet denoise photos/ -o cleaned/ --recursive --workers 2
  nlnet denoise 'shots/*.jpg' -o cleaned/ --strength 0.5,1
  nlnet denoise cells.tif -o cells-clean.tif --noise poisson
  nlnet denoise stack.tif -o stack-clean.tif --sigma 10,12,15
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
_SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))


def add_arguments(parser: Parser) -> None:
    """Add the arguments of the command."""
    parser.add_argument(
        "inputs", nargs="+", metavar="IN", help="noisy images, folders of them, or patterns"
    )
    add_option(
        parser,
        "-o --output OUT",
        "denoised image, whose suffix sets the format; a folder for several inputs; - for "
        "standard output",
        required=True,
    )
    _add_noise_options(parser)
    add_option(
        parser,
        "--preview FIG.png",
        "also write a figure: before, after, and what was removed (one input only)",
        Path,
    )
    add_option(
        parser, "--format F", "format for standard output, such as png (default: that of the input)"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="report in JSON, one line per file; on standard error with -o -",
    )
    add_writing(parser)
    files = parser.add_argument_group("many files")
    files.add_argument("--recursive", action="store_true", help="include subfolders")
    add_option(
        files, "--workers N", "files, or blocks of a zarr folder, to process at a time", positive, 1
    )
    add_overwrite(files)
    add_development(parser)
    _add_machine_options(parser)


def _add_noise_options(parser: Parser) -> None:
    """Add the options that say what to remove, and with which model."""
    add_sigma(parser, automatic=True)
    add_option(
        parser,
        "--noise KIND",
        "kind of noise: white, poisson (photon noise), camera (correlated, as in photos), or "
        "a JSON file written by 'nlnet noise --json' (default: auto, estimated)",
        default="auto",
    )
    parser.add_argument(
        "--per-page",
        action="store_true",
        help="estimate the noise of every page of a stack by itself (default: of all pages "
        "together, from up to 8 of them)",
    )
    add_data_range(parser)
    add_option(
        parser,
        "--model M",
        "family, model name or model file (default: auto, which --quality chooses)",
        default="auto",
    )
    add_option(
        parser,
        "--quality",
        "which model to use if none is named: best takes longer (default: fast)",
        choices=QUALITIES,
    )
    add_option(
        parser,
        "--strength X",
        "how much of the noise to remove, from 0 to 2, where 1 is what was found and more takes "
        "more; or two numbers, such as 0.5,1, for luma (grain) "
        "and chroma (color blotches)",
        shares,
        1.0,
    )
    add_option(
        parser,
        "--mask FILE",
        "image that marks pixels to leave out: where it is not 0, the input stays as it is "
        "and does not influence other pixels; it has one page, or as many as the input; NaN "
        "is always left out",
        Path,
    )


def _add_machine_options(parser: Parser) -> None:
    """Add the options that say what the work may use."""
    limits = parser.add_argument_group("machine")
    add_threads(limits)
    add_option(
        limits,
        "--max-memory SIZE",
        "memory for the work besides the image, such as 500M or 2G (default: no limit)",
        byte_count,
    )
    add_max_pixels(limits)
    add_option(limits, "--device D", "cpu, or cuda or mps if torch is installed", default="cpu")
    add_option(
        limits,
        "--scheduler ADDRESS",
        "let a Dask cluster denoise zarr, TIFF or a folder of images: the address of its "
        "scheduler, such as tcp://10.0.0.1:8786, or a scheduler file",
    )


def run(arguments: argparse.Namespace) -> int:
    """Denoise one file, or many."""
    from nlnet.files.settings import Settings

    mapped = isinstance(arguments.sigma, Path)
    settings = Settings(
        sigma=None if mapped else arguments.sigma,
        sigma_map=arguments.sigma.absolute() if mapped else None,
        model=arguments.model,
        quality=arguments.quality,
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
        per_page=arguments.per_page,
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
    """Return a kind of noise, the record in a file, or None to estimate it."""
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
    """Refuse to create a folder whose name looks like that of an image file."""
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
