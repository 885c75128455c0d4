"""Options of commands that write image files: quality, depth, background."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from nlnet.cli.arguments import whole_number
from nlnet.errors import InputError

if TYPE_CHECKING:
    from nlnet.images import WritingOptions

_DEPTHS = {"8": "uint8", "16": "uint16", "float32": "float32"}
_COLORS = {"white": (255, 255, 255), "gray": (128, 128, 128), "black": (0, 0, 0)}
_DEFAULTS = {"jpeg_quality": 95, "webp_quality": None, "depth": None, "background": None}


def add_writing(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    group = parser.add_argument_group("output files")
    group.add_argument(
        "--jpeg-quality",
        type=_quality,
        default=_DEFAULTS["jpeg_quality"],
        metavar="Q",
        help="from 1 to 100 (default: 95, which adds few artifacts)",
    )
    group.add_argument(
        "--webp-quality",
        type=_quality,
        metavar="Q",
        help="from 1 to 100 (default: lossless)",
    )
    group.add_argument(
        "--depth",
        choices=tuple(_DEPTHS),
        help="bit depth to write, where white stays white; JPEG needs 8 for 16-bit images "
        "(default: that of the input)",
    )
    group.add_argument(
        "--background",
        type=_color,
        metavar="COLOR",
        help="put transparent images on white, gray, black or a color such as #ff8000, "
        "and write them without transparency; JPEG needs this",
    )


def writing_options(arguments: argparse.Namespace) -> WritingOptions:
    """Return the options that a command was given."""
    from nlnet.images import WritingOptions

    return WritingOptions(
        jpeg_quality=arguments.jpeg_quality,
        webp_quality=arguments.webp_quality,
        depth=None if arguments.depth is None else _DEPTHS[arguments.depth],
        background=arguments.background,
    )


def check_writes_images(arguments: argparse.Namespace) -> None:
    """Raise InputError if options for image files are given where none is written."""
    for name, default in _DEFAULTS.items():
        if getattr(arguments, name) != default:
            raise InputError(
                f"--{name.replace('_', '-')} is for image files, but the output is "
                f"{arguments.output!r}."
            )


def _quality(text: str) -> int:
    number = whole_number(text)
    if not 1 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} must be from 1 to 100")
    return number


def _color(text: str) -> tuple[int, int, int]:
    if text.lower() in _COLORS:
        return _COLORS[text.lower()]
    match = re.fullmatch(r"#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})", text.lower())
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be white, gray, black or a color such as #ff8000"
        )
    red, green, blue = (int(part, 16) for part in match.groups())
    return red, green, blue
