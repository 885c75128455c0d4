"""Writing files so that a reader sees the old content or the new, never half of it."""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path

from nlnet.errors import FileError
from nlnet.files.claims import remove_dead_claims

_PREFIX, _SUFFIX = ".nlnet-", ".tmp"
_LEFTOVER_SECONDS = 3600.0
"""Writing takes seconds; an unfinished file that is older belongs to nobody any more."""


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path`, replacing what was there only once all of it is on disk.

    Raises
    ------
    FileError
        If the file cannot be written; then nothing is left behind and an old file is unharmed.
    """
    target = Path(path)
    # Not `tempfile`: its files are private to the user, and the result should obey the umask.
    temporary = target.with_name(f"{_PREFIX}{uuid.uuid4().hex}{_SUFFIX}")
    try:
        try:
            with open(temporary, "xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(f"Cannot write {str(target)!r}: {reason}.") from error


def copy_file(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy the content of a file, whole or not at all."""
    try:
        data = Path(source).read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(f"Cannot read {os.fspath(source)!r}: {reason}.") from error
    write_atomically(target, data)


def remove_leftovers(folder: str | os.PathLike[str]) -> None:
    """Remove what writers that were killed long ago left in a folder."""
    oldest = time.time() - _LEFTOVER_SECONDS
    remove_dead_claims(Path(folder), oldest)
    for leftover in Path(folder).glob(f"{_PREFIX}*{_SUFFIX}"):
        # Another process may be doing the same.
        with contextlib.suppress(OSError):
            if leftover.stat().st_mtime < oldest:
                leftover.unlink()
