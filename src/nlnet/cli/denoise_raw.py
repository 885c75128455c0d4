"""The options of ``nlnet denoise`` for raw files, under the names LibRaw gives them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nlnet.cli.arguments import add_option, positive_number

if TYPE_CHECKING:
    from nlnet.raw.development import Development


def add_development(parser: argparse.ArgumentParser) -> None:
    """Add the options of development."""
    from nlnet.raw import development as raw

    group = parser.add_argument_group(
        "raw files", "how LibRaw develops them; in an output folder they become 16-bit TIFF files"
    )
    group.add_argument(
        "--use-auto-wb",
        action="store_true",
        help="compute the white balance from the picture (default: that of the camera)",
    )
    group.add_argument(
        "--no-auto-bright",
        action="store_true",
        help="do not brighten the picture until one percent of the pixels is white",
    )
    add_option(group, "--bright X", "brightness factor", positive_number, raw.DEFAULT.bright)
    choices = {
        "highlight-mode": ("how to treat saturated pixels", raw.HIGHLIGHT_MODES),
        "output-color": ("color space; P3D65 is Display P3", tuple(raw.OUTPUT_COLORS)),
        "demosaic-algorithm": ("how to interpolate the missing colors", raw.DEMOSAIC_ALGORITHMS),
    }
    for name, (text, known) in choices.items():
        default = getattr(raw.DEFAULT, name.replace("-", "_"))
        add_option(group, f"--{name}", text, default=default, choices=known)


def development_of(arguments: argparse.Namespace) -> Development:
    """Return the options as they were given."""
    import dataclasses

    from nlnet.raw.development import Development

    names = [field.name for field in dataclasses.fields(Development)]
    return Development(**{name: getattr(arguments, name) for name in names})
