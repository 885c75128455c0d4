"""Catching what LibRaw prints to standard error, so that our own message can say it."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
from collections.abc import Iterator

_STDERR = 2
_COMPLAINT = re.compile(rb"[^\r\n]*: (Unexpected end of file|data corrupted at \d+)\r?\n")
_lock = threading.Lock()


@contextlib.contextmanager
def caught_complaints(complaints: list[str]) -> Iterator[None]:
    """Catch LibRaw's complaints, and add them to the list when the block ends.

    LibRaw offers no other way than to look at what comes out. Whatever else is written to the
    standard error meanwhile, by other threads, follows when the block ends.
    """
    with _lock, tempfile.TemporaryFile() as caught:
        try:
            original = os.dup(_STDERR)
        except OSError:  # there is no standard error to keep clean
            yield
            return
        try:
            os.dup2(caught.fileno(), _STDERR)
            yield
        finally:
            os.dup2(original, _STDERR)
            os.close(original)
            caught.seek(0)
            written = caught.read()
            complaints.extend(match[1].decode("ascii") for match in _COMPLAINT.finditer(written))
            with open(_STDERR, "wb", closefd=False) as stderr:
                stderr.write(_COMPLAINT.sub(b"", written))
