"""How commands say what arguments they take, and the arguments that several share."""

import argparse
import contextlib
import dataclasses
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, TypeVar

from nlnet.cli.messages import error_line
from nlnet.defaults import MAX_PIXELS
from nlnet.errors import reason_of

EXIT_ERROR = 2

_TEXT_SUFFIXES = (".txt", ".csv")
"""Files of numbers; other files are maps."""

_MAX_TEXT = 2**24
"""Characters of a text file that are read, in case it is no list of numbers but an image."""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

Kind = TypeVar("Kind")
Number = TypeVar("Number", int, float)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like all others.

    Attributes
    ----------
    commands : mapping
        The parsers of the commands, by their names.
    """

    commands: "Mapping[str, Parser]"

    def error(self, message: str) -> NoReturn:
        """Print the sentence and end the program."""
        print(error_line(f"{message} (see '{self.prog} --help')"), file=sys.stderr)
        sys.exit(EXIT_ERROR)


Argument: TypeAlias = Callable[[argparse._ActionsContainer], object]
"""Adds itself to a parser, or to a group of one."""


def argument(
    usage: str,
    text: str,
    parse: Callable[[str], Any] | None = None,
    default: object = None,
    **more: Any,
) -> Argument:
    """Describe an argument.

    Parameters
    ----------
    usage : str
        Its names and that of its value: ``"-o --output OUT"`` is an option, ``"folder DIR"`` a
        positional argument, and ``"--recursive"`` a switch, unless there are choices.
    text : str
        The help; the default follows, unless the text names it.
    parse : callable, optional
        Makes a value of the text.
    default : object, optional
        The value without the option.
    more
        As for argparse.
    """
    words = usage.split()
    names = [word for word in words if word.startswith("-")] or words[:1]
    if default is not None and "(default: " not in text:
        text += f" (default: {str(default).removesuffix('.0')})"
    options: dict[str, Any] = {"type": parse, "default": default, **more}
    if len(words) > len(names):
        options["metavar"] = words[-1]
    elif "choices" not in more:
        options = {"action": "store_true"}
    return lambda parser: parser.add_argument(*names, help=text, **options)


def group(title: str, arguments: Sequence[Argument], text: str | None = None) -> Argument:
    """Describe arguments that the help lists under a title of their own."""

    def add(parser: argparse._ActionsContainer) -> None:
        listed = parser.add_argument_group(title, text)
        for each in arguments:
            each(listed)

    return add


def made_of(kind: Callable[..., Kind], arguments: argparse.Namespace, **more: Any) -> Kind:
    """Return a dataclass of the arguments that are called as its fields are.

    Parameters
    ----------
    kind : dataclass
        What to make; its defaults stand for arguments that are not given.
    arguments : Namespace
        What was given.
    more
        Further fields, which come before arguments of the same name.
    """
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]
    given = {name: getattr(arguments, name, None) for name in names} | more
    return kind(**{name: value for name, value in given.items() if value is not None})


def in_range(
    parse: Callable[[str], Number], wanted: str, above: float, most: float = sys.float_info.max
) -> Callable[[str], Number]:
    """Return what parses numbers above one and up to another, and says what is wanted of others."""

    def parse_checked(text: str) -> Number:
        with contextlib.suppress(ValueError):
            value = parse(text)
            if above < value <= most:
                return value
        raise argparse.ArgumentTypeError(f"{text!r} must be {wanted}")

    return parse_checked


def digits(text: str) -> int:
    """Parse a whole number that has nothing but digits; raise ValueError for others."""
    if not text.isascii() or not text.isdigit():
        raise ValueError
    return int(text)


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(?:i?B)?", text, re.ASCII | re.IGNORECASE)
    return int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0


whole_number = in_range(digits, "a whole number of at least 0", -1)
positive = in_range(digits, "a whole number of at least 1", 0)
positive_number = in_range(float, "a number above 0", 0)
sigma = in_range(float, "a number above 0 and at most 255", 0, 255)
byte_count = in_range(_bytes, "a number of bytes, such as 500M or 2G", 0)


def megapixels(text: str) -> int:
    """Parse a number of megapixels; returns that of pixels."""
    return 1_000_000 * positive(text)


def sigmas_or_auto(text: str) -> float | tuple[float, ...] | Path | None:
    """Parse a sigma, several with commas between, or the name of a file: of numbers, or a map."""
    if text == "auto":
        return None
    try:
        sigmas = tuple(map(sigma, text.split(",")))
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
        return tuple(map(sigma, words))
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"in the file {name!r}, {error}") from error


SIGMA_TEXT = "standard deviation of the noise on the 8-bit scale, above 0 and at most 255"
SIGMA = argument("--sigma S", SIGMA_TEXT, sigma, required=True)
LEVEL = argument("--sigma S", "of a model for every sigma, the one for this noise", sigma, 25.0)
NOISE_AXIS = argument(
    "--noise-axis A",
    "axis of an array or a stack whose pages differ in their noise, such as channels: 0 for the "
    "first (default: the channels, if the file names them, as zarr, OME and ImageJ do)",
    whole_number,
)
DATA_RANGE = argument(
    "--data-range W",
    "value of white, such as 4095 for 12 bits; sigma S then means S * W / 255 "
    "(default: 255, 65535 or 1.0, depending on the data type)",
    positive_number,
)
THREADS = argument(
    "--threads N", "number of threads (default: all CPUs this process may use)", positive
)
LARGEST = argument(
    "--max-pixels MP",
    "refuse images of more megapixels before they are decoded "
    f"(default: {MAX_PIXELS // 1_000_000})",
    megapixels,
    MAX_PIXELS,
)
MODEL = argument("model MODEL", "name of a model, or a model file")
OVERWRITE = argument("--overwrite", "replace existing output files")
