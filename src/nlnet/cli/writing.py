"""Options of commands that write image files: quality, depth, background."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from nlnet.cli.arguments import add_option, whole_number
from nlnet.errors import InputError

if TYPE_CHECKING:
    from nlnet.images import WritingOptions

_DEPTHS = {"8": "uint8", "16": "uint16", "float32": "float32"}
_COLORS = {"white": (255, 255, 255), "gray": (128, 128, 128), "black": (0, 0, 0)}


def add_writing(parser: argparse.ArgumentParser) -> None:
    """Add the options to a command."""
    group = parser.add_argument_group("output files")
    adds_few = "from 1 to 100 (default: 95, which adds few artifacts)"
    add_option(group, "--jpeg-quality Q", adds_few, _quality)
    add_option(group, "--webp-quality Q", "from 1 to 100 (default: lossless)", _quality)
    add_option(
        group,
        "--depth",
        "bit depth to write, where white stays white; JPEG needs 8 for 16-bit images "
        "(default: that of the input)",
        choices=tuple(_DEPTHS),
    )
    add_option(
        group,
        "--background COLOR",
        "put transparent images on white, gray, black or a color such as #ff8000, "
        "and write them without transparency; JPEG needs this",
        _color,
    )


def writing_options(arguments: argparse.Namespace) -> WritingOptions:
    """Return the options that a command was given."""
    from nlnet.images import WritingOptions

    return WritingOptions(**_given(arguments))


def check_writes_images(arguments: argparse.Namespace) -> None:
    """Raise InputError if options for image files are given where none is written."""
    for name in _given(arguments):
        raise InputError(
            f"--{name.replace('_', '-')} is for image files, but the output is "
            f"{arguments.output!r}."
        )


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that were given, as `WritingOptions` takes them."""
    names = ("jpeg_quality", "webp_quality", "depth", "background")
    given = {name: getattr(arguments, name) for name in names}
    given["depth"] = _DEPTHS.get(arguments.depth)
    return {name: value for name, value in given.items() if value is not None}


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
