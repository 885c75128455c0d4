"""Options that several commands share."""

from __future__ import annotations

import argparse
from typing import TypeAlias

# A string: argparse's class takes a parameter for the type checker only.
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_sigma(parser: argparse.ArgumentParser) -> None:
    """Add the required option ``--sigma``."""
    parser.add_argument(
        "--sigma",
        type=_sigma,
        required=True,
        metavar="S",
        help="standard deviation of the noise on the 8-bit scale, above 0 and at most 255",
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--threads``."""
    parser.add_argument(
        "--threads",
        type=_positive,
        metavar="N",
        help="number of threads (default: all CPUs this process may use)",
    )


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--overwrite``."""
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the output file if it exists"
    )


def whole_number(text: str) -> int:
    """Parse a whole number of at least 0."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 0")
    return int(text)


def _positive(text: str) -> int:
    number = whole_number(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 must be a whole number of at least 1")
    return number


def _sigma(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    # Written so that NaN does not pass.
    if not 0 < number <= 255:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number above 0 and at most 255")
    return number
