"""One training at a time writes to the folder of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from nlnet.errors import FileError, cannot

LOCK_NAME = ".lock"


@contextlib.contextmanager
def sole_writer(run: Path) -> Iterator[None]:
    """Keep other processes from training in the folder of a run.

    The system releases the lock when the process ends, even if it is killed. The file stays, but
    means nothing without the lock.

    Raises
    ------
    FileError
        If another process trains there, or the folder cannot be written.
    """
    lock = FileLock(run / LOCK_NAME)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise FileError(
            f"Another process is training in {str(run)!r}; wait for it, or name another folder."
        ) from error
    except OSError as error:
        raise cannot(f"write to the folder {str(run)!r}", error) from error
    try:
        yield
    finally:
        lock.release()
