"""Options of commands that write image files: quality, depth, background."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from nlnet.cli.arguments import Group, argument, made_of, whole_number
from nlnet.defaults import JPEG_QUALITY
from nlnet.errors import InputError

if TYPE_CHECKING:
    from nlnet.images import WritingOptions

_DEPTHS = {"8": "uint8", "16": "uint16", "float32": "float32"}
_COLORS = {"white": (255, 255, 255), "gray": (128, 128, 128), "black": (0, 0, 0)}


def writing_options(arguments: argparse.Namespace) -> WritingOptions:
    """Return the options that a command was given."""
    from nlnet.images import WritingOptions

    return made_of(WritingOptions, arguments, depth=_DEPTHS.get(arguments.depth))


def check_writes_images(arguments: argparse.Namespace) -> None:
    """Raise InputError if options for image files are given where none is written."""
    for name in ("jpeg_quality", "webp_quality", "avif_quality", "pyramid", "depth", "background"):
        if getattr(arguments, name):
            raise InputError(
                f"--{name.replace('_', '-')} is for image files, but the output is "
                f"{arguments.output!r}."
            )


def _color(text: str) -> tuple[int, ...]:
    if text.lower() in _COLORS:
        return _COLORS[text.lower()]
    if re.fullmatch(r"#[0-9a-fA-F]{6}", text) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be white, gray, black or a color such as #ff8000"
        )
    return tuple(bytes.fromhex(text[1:]))


WRITING = Group(
    "output files",
    (
        argument(
            "--jpeg-quality Q",
            "from 1 to 100 (default: that of a JPEG input, or better if too much would be lost; "
            f"else {JPEG_QUALITY})",
            whole_number,
        ),
        argument("--webp-quality Q", "from 1 to 100 (default: lossless)", whole_number),
        argument("--avif-quality Q", "from 1 to 100 (default: lossless)", whole_number),
        argument("--pyramid", "write TIFF as tiles, with smaller versions for viewers"),
        argument(
            "--depth",
            "bit depth to write, where white stays white; JPEG needs 8 for 16-bit images; float32 "
            "keeps the units, and what integers would round away (default: that of the input)",
            choices=tuple(_DEPTHS),
        ),
        argument(
            "--background COLOR",
            "put transparent images on white, gray, black or a color such as #ff8000, "
            "and write them without transparency; JPEG needs this",
            _color,
        ),
    ),
)
