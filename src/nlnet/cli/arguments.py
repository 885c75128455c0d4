"""Options that several commands share."""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol

from nlnet.cli.messages import error_line
from nlnet.errors import reason_of

EXIT_ERROR = 2

_TEXT_SUFFIXES = (".txt", ".csv")
"""Files of numbers; other files are maps."""

_MAX_TEXT = 2**24
"""Characters of a text file that are read, in case it is no list of numbers but an image."""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class Container(Protocol):
    """A parser, or a group of its options; argparse has no public name for both."""

    def add_argument(self, *arguments: Any, **options: Any) -> argparse.Action:
        """Add an argument."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like all others.

    Attributes
    ----------
    arguments : list of argparse.Action
        What was added to it, groups aside.
    commands : mapping
        The parsers of its commands, by their names.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.arguments: list[argparse.Action] = []
        self.commands: Mapping[str, Parser] = {}
        super().__init__(*arguments, **options)

    def add_argument(self, *arguments: Any, **options: Any) -> argparse.Action:
        """Add an argument, as argparse does, and keep it."""
        action = super().add_argument(*arguments, **options)
        self.arguments.append(action)
        return action

    def error(self, message: str) -> NoReturn:
        """Print the sentence and end the program."""
        print(error_line(f"{message} (see '{self.prog} --help')"), file=sys.stderr)
        sys.exit(EXIT_ERROR)


def add_option(
    parser: Container,
    usage: str,
    text: str,
    parse: Callable[[str], Any] | None = None,
    default: object = None,
    **more: Any,
) -> None:
    """Add an option that takes a value.

    Parameters
    ----------
    parser : Parser or group
        Where to add it.
    usage : str
        Its names and the name of its value, such as ``"-o --output OUT"``.
    text : str
        The help; the default follows, unless the text names it.
    parse : callable, optional
        Makes a value of the argument.
    default : object, optional
        The value without the option.
    more
        As for argparse.
    """
    words = usage.split()
    names = [word for word in words if word.startswith("-")]
    if default is not None and "(default: " not in text:
        text += f" (default: {str(default).removesuffix('.0')})"
    options = {"type": parse, "default": default, "help": text, **more}
    if len(words) > len(names):
        options["metavar"] = words[-1]
    parser.add_argument(*names, **options)


def add_level(parser: argparse.ArgumentParser) -> None:
    """Add --sigma: which one of a model that is for every sigma."""
    add_option(
        parser, "--sigma S", "of a model for every sigma, the one for this noise", _sigma, 25.0
    )


def add_sigma(parser: argparse.ArgumentParser, *, automatic: bool = False) -> None:
    """Add the option ``--sigma``: required; if automatic, also a file, or None to estimate it."""
    wanted = "standard deviation of the noise on the 8-bit scale, above 0 and at most 255"
    pages = (
        "; for the pages of a stack one each, such as 10,12,15, or a text file of them (.txt, "
        ".csv); an image with that of every pixel; or auto to estimate it (default: auto)"
    )
    parser.add_argument(
        "--sigma",
        type=_sigmas_or_auto if automatic else _sigma,
        required=not automatic,
        metavar="S",
        help=wanted + pages if automatic else wanted,
    )


def add_data_range(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--data-range``."""
    add_option(
        parser,
        "--data-range W",
        "value of white, such as 4095 for 12 bits; sigma S then means S * W / 255 "
        "(default: 255, 65535 or 1.0, depending on the data type)",
        positive_number,
    )


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option ``--seed``."""
    add_option(parser, "--seed N", f"seed of {what}", whole_number, 0)


def add_threads(parser: Container) -> None:
    """Add the option ``--threads``."""
    add_option(
        parser,
        "--threads N",
        "number of threads (default: all CPUs this process may use)",
        positive,
    )


def add_max_pixels(parser: Container) -> None:
    """Add the option ``--max-pixels``, in megapixels."""
    add_option(
        parser,
        "--max-pixels MP",
        "refuse images of more megapixels before they are decoded",
        positive,
        250,
    )


def add_overwrite(parser: Container) -> None:
    """Add the option ``--overwrite``."""
    parser.add_argument("--overwrite", action="store_true", help="replace existing output files")


def whole_number(text: str) -> int:
    """Parse a whole number of at least 0."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least 0")
    return int(text)


def positive(text: str) -> int:
    """Parse a whole number of at least 1."""
    number = whole_number(text)
    if number == 0:
        raise argparse.ArgumentTypeError("0 must be a whole number of at least 1")
    return number


def byte_count(text: str) -> int:
    """Parse a number of bytes, such as 500M or 2G."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text, re.ASCII | re.IGNORECASE)
    size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if size < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of bytes, such as 500M or 2G")
    return size


def shares(text: str) -> float | tuple[float, float]:
    """Parse a number from 0 to 2, or two of them with a comma between."""
    numbers = [_number(part) for part in text.split(",")]
    if len(numbers) > 2 or not all(0 <= number <= 2 for number in numbers):
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a number from 0 to 2, or two such as 0.5,1 for luma and chroma"
        )
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def _number(text: str) -> float:
    """Return NaN, which is in no range, for what is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _sigma(text: str) -> float:
    number = _number(text)
    if not 0 < number <= 255:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number above 0 and at most 255")
    return number


def _sigmas_or_auto(text: str) -> float | tuple[float, ...] | Path | None:
    """Parse a number, several with commas between, or the name of a file: of numbers, or a map."""
    if text == "auto":
        return None
    try:
        sigmas = tuple(map(_sigma, text.split(",")))
    except argparse.ArgumentTypeError as error:
        # Only now: a file may well be called 25.
        path = Path(text)
        if path.suffix.lower() in _TEXT_SUFFIXES:
            sigmas = _sigmas_in(text)
        elif path.suffix[1:2].isalpha() or os.path.lexists(text):
            return path
        else:
            raise argparse.ArgumentTypeError(
                f"{error}; or several with commas, a text file of them, the name of a map, or "
                "'auto'"
            ) from error
    return sigmas if len(sigmas) > 1 else sigmas[0]


def _sigmas_in(name: str) -> tuple[float, ...]:
    """Read a text file of numbers, with commas or white space between."""
    try:
        with open(name, encoding="utf-8-sig") as file:
            words = file.read(_MAX_TEXT).replace(",", " ").split()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"cannot read {name!r}: {reason_of(error)}") from error
    if not words:
        raise argparse.ArgumentTypeError(f"the file {name!r} has no number in it")
    try:
        return tuple(map(_sigma, words))
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"in the file {name!r}, {error}") from error


def positive_number(text: str) -> float:
    """Parse a number above 0."""
    number = _number(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number above 0")
    return number
