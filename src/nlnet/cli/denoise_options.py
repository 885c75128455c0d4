"""The options of ``nlnet denoise``, and the settings that they are."""

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.arguments import (
    DATA_RANGE,
    LARGEST,
    NOISE_AXIS,
    OVERWRITE,
    SIGMA_TEXT,
    THREADS,
    Argument,
    argument,
    byte_count,
    group,
    made_of,
    positive,
    positive_number,
    sigmas_or_auto,
)
from nlnet.cli.output import WRITING, writing_options
from nlnet.defaults import QUALITIES
from nlnet.errors import FileError, reason_of
from nlnet.raw.development import CHOICES, DEFAULT

if TYPE_CHECKING:
    from nlnet.files.settings import Settings
    from nlnet.noise.record import Noise


def settings_of(arguments: argparse.Namespace) -> "Settings":
    """Return the settings, and raise what would go wrong with every file."""
    from nlnet.files.settings import Settings
    from nlnet.raw.development import Development

    mapped = isinstance(arguments.sigma, Path)
    mask = arguments.mask
    settings = made_of(
        Settings,
        arguments,
        sigma=None if mapped else arguments.sigma,
        sigma_map=arguments.sigma.absolute() if mapped else None,
        mask=None if mask is None else mask.absolute(),
        noise=_noise(arguments.noise),
        hot_pixels=arguments.hot_pixels or None,
        writing=writing_options(arguments),
        development=made_of(Development, arguments),
    )
    settings.check()
    return settings


def _noise(text: str) -> "str | Noise | None":
    """Return a kind of noise, the record in a file, or None to estimate it."""
    from nlnet.noise.record import KINDS, Noise

    if text == "auto":
        return None
    if text in KINDS:
        return text
    try:
        return Noise.from_json(Path(text).read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise FileError(
            f"--noise is {text!r}, but must be auto, {', '.join(KINDS)}, or a JSON file; it cannot "
            f"be read: {reason_of(error)}."
        ) from error


def _shares(text: str) -> float | tuple[float, ...]:
    """Parse a number from 0 to 2, or two of them with a comma between."""
    with contextlib.suppress(ValueError):
        first, *more = shares = tuple(map(float, text.split(",")))
        if len(more) < 2 and all(0 <= share <= 2 for share in shares):
            return shares if more else first
    raise argparse.ArgumentTypeError(
        f"{text!r} must be a number from 0 to 2, or two such as 0.5,1 for luma and chroma"
    )


def _axis(text: str) -> str | int:
    """Parse the number of an axis, or a name."""
    return int(text) if text.isdecimal() else text.lower()


_NOISE = (
    argument(
        "--sigma S",
        f"{SIGMA_TEXT}; for the pages of a stack one each, such as 10,12,15, or a text file of "
        "them (.txt, .csv); an image with that of every pixel; or auto to estimate it "
        "(default: auto)",
        sigmas_or_auto,
    ),
    argument(
        "--noise KIND",
        "kind of noise: white, poisson (photon noise), camera (correlated, as in photos), or "
        "a JSON file written by 'nlnet noise --json' (default: auto, estimated)",
        default="auto",
    ),
    argument(
        "--along AXIS",
        "for pages that show nearly the same, as of a movie, a stack or a burst: denoise each with "
        "those before and after it. t or z, if the file names its axes; a number, 0 for the first "
        "axis; pages, for all pages of a file; or files, for the numbered images of a folder",
        _axis,
    ),
    argument(
        "--per-page",
        "estimate the noise of every page of a stack by itself (default: of all pages "
        "together, from up to 8 of them)",
    ),
    NOISE_AXIS,
    DATA_RANGE,
    argument(
        "--model M",
        "family, model name or model file (default: auto, which --quality chooses)",
        default="auto",
    ),
    argument(
        "--quality",
        "which model to use if none is named: best takes longer (default: fast)",
        choices=QUALITIES,
    ),
    argument(
        "--strength X",
        "how much of the noise to remove, from 0 to 2, where 1 is what was found and more takes "
        "more; or two numbers, such as 0.5,1, for luma (grain) and chroma (color blotches)",
        _shares,
        1.0,
    ),
    argument(
        "--mask FILE",
        "image that marks pixels to leave out: where it is not 0, the input stays as it is "
        "and does not influence other pixels; it has one page, or as many as the input; NaN "
        "is always left out",
        Path,
    ),
    argument(
        "--hot-pixels",
        "fill hot and dead pixels before the noise is removed (those of raw files always are)",
    ),
)

_CHOSEN = {
    "--highlight-mode": "how to treat saturated pixels",
    "--output-color": "color space; P3D65 is Display P3",
    "--demosaic-algorithm": "how to interpolate the missing colors",
}
_RAW = (
    argument(
        "--use-auto-wb", "compute the white balance from the picture (default: that of the camera)"
    ),
    argument(
        "--no-auto-bright", "do not brighten the picture until one percent of the pixels is white"
    ),
    argument("--bright X", "brightness factor", positive_number, DEFAULT.bright),
    *(
        argument(name, text, default=getattr(DEFAULT, field), choices=CHOICES[field])
        for (name, text), field in zip(_CHOSEN.items(), CHOICES, strict=True)
    ),
)

_MACHINE = (
    THREADS,
    argument(
        "--max-memory SIZE",
        "memory for the work besides the image, such as 500M or 2G (default: no limit)",
        byte_count,
    ),
    LARGEST,
    argument("--device D", "cpu, or cuda or mps if torch is installed", default="cpu"),
    argument(
        "--scheduler ADDRESS",
        "let a Dask cluster denoise zarr, TIFF or a folder of images: the address of its "
        "scheduler, such as tcp://10.0.0.1:8786, or a scheduler file",
    ),
)

ARGUMENTS: tuple[Argument, ...] = (
    argument("inputs IN", "noisy images, folders of them, or patterns", nargs="+"),
    argument(
        "-o --output OUT",
        "denoised image, whose suffix sets the format; a folder for several inputs; - for "
        "standard output",
        required=True,
    ),
    *_NOISE,
    argument(
        "--preview FIG.png",
        "also write a figure: before, after, and what was removed (one input only)",
        Path,
    ),
    argument(
        "--error ERR.tif",
        "also write the standard deviation of the error of every pixel, in the units of the "
        "input, as TIFF or npy (one input only)",
        Path,
    ),
    argument("--format F", "format for standard output, such as png (default: that of the input)"),
    argument("--json", "report in JSON, one line per file; on standard error with -o -"),
    WRITING,
    group(
        "many files",
        (
            argument("--recursive", "include subfolders"),
            argument(
                "--workers N",
                "files, or blocks of a zarr folder, to process at a time",
                positive,
                1,
            ),
            OVERWRITE,
        ),
    ),
    group(
        "raw files",
        _RAW,
        "how LibRaw develops them; a DNG holds the denoised mosaic instead; in an output "
        "folder they become 16-bit TIFF files",
    ),
    group("machine", _MACHINE),
)
