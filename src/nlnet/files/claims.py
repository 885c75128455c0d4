"""Processes that share a folder: locks let only one of them work on an output at a time."""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from nlnet.atomic import PREFIX, UNFINISHED

_SUFFIX = ".lock"
_LEFTOVER_SECONDS = 3600.0
"""Writing takes seconds, so an unfinished file that is older than this is a leftover."""


@contextlib.contextmanager
def claim(path: Path) -> Iterator[bool]:
    """Claim an output for the length of the block; yields False if another process has done so.

    The claim is a lock on a hidden file beside the output. The system releases it when the process
    ends, even if it is killed; the file itself means nothing. After getting the claim, check
    whether the output exists: another process may just have finished it. On file systems without
    locks, every process gets the claim.
    """
    from filelock import FileLock, Timeout  # takes 0.1 s to import, and not all need it

    # A name as long as the file system allows has no room for more.
    name = hashlib.sha256(os.path.normcase(path.name).encode()).hexdigest()[:32]
    lock = FileLock(path.with_name(f"{PREFIX}{name}{_SUFFIX}"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        yield False
        return
    except (OSError, NotImplementedError):
        yield True
        return
    try:
        yield True
    finally:
        # Before the release, so that the claim of another process is not removed.
        with contextlib.suppress(OSError):
            os.unlink(lock.lock_file)
        lock.release()


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that were killed long ago left in a folder: half a file, a claim."""
    oldest = time.time() - _LEFTOVER_SECONDS
    remove_dead_claims(folder, oldest)
    for leftover in folder.glob(f"{PREFIX}*{UNFINISHED}"):
        # Another process may be doing the same.
        with contextlib.suppress(OSError):
            if leftover.stat().st_mtime < oldest:
                leftover.unlink()


def remove_dead_claims(folder: Path, oldest: float) -> None:
    """Remove the files of claims made before a time by processes that were killed."""
    from filelock import FileLock

    for file in folder.glob(f"{PREFIX}*{_SUFFIX}"):
        # Another process may be doing the same.
        with contextlib.suppress(OSError, NotImplementedError):
            if file.stat().st_mtime < oldest:
                with FileLock(file).acquire(blocking=False):
                    file.unlink()
