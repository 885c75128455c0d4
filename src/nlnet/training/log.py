"""The log of a run: one line of JSON per epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nlnet.atomic import write_atomically
from nlnet.errors import InputError, trying

FILE_NAME = "log.jsonl"


class RunLog:
    """The log in a run's folder.

    Parameters
    ----------
    run : Path
        The run's folder.
    lines : int
        Lines of an earlier part of the run that are to be kept; those after its last checkpoint
        are dropped, for they will be written again.
    """

    def __init__(self, run: Path, lines: int) -> None:
        self._path = run / FILE_NAME
        with trying(f"read {str(self._path)!r}"):
            held = self._path.read_bytes() if self._path.is_file() else b""
        kept = b"".join(held.splitlines(keepends=True)[:lines])
        if kept != held:
            write_atomically(self._path, kept)

    def write(self, entry: dict[str, Any]) -> None:
        """Add one line."""
        line = json.dumps(entry) + "\n"
        with trying(f"write {str(self._path)!r}"), self._path.open("a") as stream:
            stream.write(line)


def read_log(run: Path) -> list[dict[str, Any]]:
    """Read the log of a run, given its folder or the file itself.

    Raises
    ------
    FileError
        If there is none, or it cannot be read.
    InputError
        If it is not a log, or has no line yet.
    """
    path = run / FILE_NAME if run.is_dir() else run
    with trying(f"read the log {str(path)!r}"):
        lines = path.read_text().splitlines()
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line)
            entry["phase"], float(entry["train_psnr"]), float(entry["seconds"])
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"Line {number} of {str(path)!r} is not one of a log.") from error
        entries.append(entry)
    if not entries:
        raise InputError(f"The log {str(path)!r} has no line yet.")
    return entries
