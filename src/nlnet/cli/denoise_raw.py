"""The options of ``nlnet denoise`` for raw files, under the names LibRaw gives them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nlnet.cli.arguments import positive_number

if TYPE_CHECKING:
    from nlnet.raw.development import Development


def add_development(parser: argparse.ArgumentParser) -> None:
    """Add the options of development."""
    from nlnet.raw.development import (
        DEFAULT,
        DEMOSAIC_ALGORITHMS,
        HIGHLIGHT_MODES,
        OUTPUT_COLORS,
    )

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
    group.add_argument(
        "--bright",
        type=positive_number,
        default=DEFAULT.bright,
        metavar="X",
        help="brightness factor (default: 1)",
    )
    group.add_argument(
        "--highlight-mode",
        choices=HIGHLIGHT_MODES,
        default=DEFAULT.highlight_mode,
        help="how to treat saturated pixels (default: Clip)",
    )
    group.add_argument(
        "--output-color",
        choices=tuple(OUTPUT_COLORS),
        default=DEFAULT.output_color,
        help="color space; P3D65 is Display P3 (default: sRGB)",
    )
    group.add_argument(
        "--demosaic-algorithm",
        choices=DEMOSAIC_ALGORITHMS,
        default=DEFAULT.demosaic_algorithm,
        help="how to interpolate the missing colors (default: AHD)",
    )


def development_of(arguments: argparse.Namespace) -> Development:
    """Return the options as they were given."""
    import dataclasses

    from nlnet.raw.development import Development

    names = [field.name for field in dataclasses.fields(Development)]
    return Development(**{name: getattr(arguments, name) for name in names})
