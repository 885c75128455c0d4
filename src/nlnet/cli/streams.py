"""The part of ``nlnet denoise`` for pipes: ``-`` is standard input or standard output."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nlnet.errors import InputError, NLNetError, cannot

STREAM = "-"

DenoiseOne = Callable[[Path, Path], object]


def uses_streams(arguments: argparse.Namespace) -> bool:
    """Whether an image comes from standard input, or goes to standard output."""
    return STREAM in (*arguments.inputs, arguments.output)


def denoise_streams(arguments: argparse.Namespace, denoise_one: DenoiseOne) -> None:
    """Denoise one image from or to a stream, through files in a temporary folder."""
    _check(arguments)
    (name,) = arguments.inputs
    with tempfile.TemporaryDirectory(prefix="nlnet-") as folder:
        source, target = Path(name), Path(arguments.output)
        names: dict[str, str] = {}
        if name == STREAM:
            source = _keep_stdin(Path(folder) / "input")
            names[str(source)] = "standard input"
        if arguments.output == STREAM:
            target = Path(folder) / f"output{_suffix(arguments, source, names)}"
            names[str(target)] = "standard output"
        with _called(names):
            denoise_one(source, target)
        if arguments.output == STREAM:
            with open(target, "rb") as result:
                shutil.copyfileobj(result, sys.stdout.buffer)


def _check(arguments: argparse.Namespace) -> None:
    if len(arguments.inputs) > 1:
        raise InputError(
            f"'-' stands for one image, but there are {len(arguments.inputs)} inputs; a file of "
            "that name is './-'."
        )
    if arguments.scheduler is not None:
        raise InputError("--scheduler is for files, but '-' is a stream.")
    if arguments.output == STREAM and sys.__stdout__ is None:
        raise InputError("Standard output is closed, but the image is to go there.")
    if arguments.output == STREAM and sys.stdout.isatty():
        raise InputError("Standard output is a terminal; send it to a file or a program.")


def _keep_stdin(path: Path) -> Path:
    """Write standard input to a file."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("Standard input is no image; send one there, or name a file.")
    try:
        with open(path, "xb") as kept:
            shutil.copyfileobj(sys.stdin.buffer, kept)
    except OSError as error:
        raise cannot("read standard input", error) from error
    return path


def _suffix(arguments: argparse.Namespace, source: Path, names: Mapping[str, str]) -> str:
    """Return the suffix of the format to write: the one that is asked for, or the input's."""
    from nlnet.images import SUFFIXES, suffix_of

    if arguments.format is not None:
        suffix = f".{arguments.format.removeprefix('.').lower()}"
        if suffix not in SUFFIXES:
            known = ", ".join(name[1:] for name in SUFFIXES)
            raise InputError(f"--format is {arguments.format!r}, but must be one of {known}.")
        return suffix
    try:
        with open(source, "rb") as stream:
            start = stream.read(4096)
    except OSError as error:
        raise cannot(f"read {os.fspath(source)!r}", error) from error
    return suffix_of(start, names.get(str(source), str(source)))


@contextmanager
def _called(names: Mapping[str, str]) -> Iterator[None]:
    """Let errors speak of streams, not of the files they pass through."""
    try:
        yield
    except NLNetError as error:
        sentence = str(error)
        for path, name in names.items():
            sentence = sentence.replace(path, name)
        raise type(error)(sentence) from error
