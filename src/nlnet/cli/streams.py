"""The part of ``nlnet denoise`` for pipes: ``-`` is standard input or standard output."""

import argparse
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from nlnet.errors import InputError, NLNetError, trying

STREAM = "-"


def uses_streams(arguments: argparse.Namespace) -> bool:
    """Whether an image comes from standard input, or goes to standard output."""
    return STREAM in (*arguments.inputs, arguments.output)


@contextmanager
def files_of(arguments: argparse.Namespace) -> Iterator[tuple[Path, Path]]:
    """Yield the file to read and the one to write; streams go through a temporary folder."""
    name, output = arguments.inputs[0], arguments.output
    if not uses_streams(arguments):
        yield Path(name), Path(output)
        return
    _check(arguments)
    with tempfile.TemporaryDirectory(prefix="nlnet-") as folder:
        kept = Path(folder, "input")
        written = Path(folder, "output")
        try:
            source = _keep_stdin(kept) if name == STREAM else Path(name)
            if output != STREAM:
                yield source, Path(output)
                return
            written = written.with_suffix(_suffix(arguments.format, source))
            yield source, written
        except NLNetError as error:
            # Errors speak of streams, not of the files they pass through.
            sentence = str(error).replace(str(kept), "standard input")
            raise type(error)(sentence.replace(str(written), "standard output")) from error
        with open(written, "rb") as result:
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
    with trying("read standard input"), open(path, "xb") as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
    return path


def _suffix(asked: str | None, source: Path) -> str:
    """Return the suffix of the format to write: the one that is asked for, or the input's."""
    from nlnet.images import SUFFIXES, result_suffix, suffix_of

    if asked is None:
        with trying(f"read {str(source)!r}"), open(source, "rb") as stream:
            start = stream.read(4096)
        return result_suffix(suffix_of(start, str(source)))
    suffix = f".{asked.removeprefix('.').lower()}"
    if suffix not in (every := (*SUFFIXES, ".dng")):
        known = ", ".join(name[1:] for name in every)
        raise InputError(f"--format is {asked!r}, but must be one of {known}.")
    return suffix


_NAMES = ("SIGTERM", "SIGHUP")


class Terminated(KeyboardInterrupt):
    """A signal asked the process to end; its only argument is the signal's number."""


@contextmanager
def orderly_end() -> Iterator[None]:
    """Inside the block, turn the signals that end a process into an exception.

    A second signal ends it at once. Signals that are ignored, as under `nohup`, stay so.
    """
    # Only the main thread may handle signals.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]

    def end(number: int, frame: FrameType | None) -> NoReturn:
        restore()
        raise Terminated(number)

    def restore() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)

    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        restore()
