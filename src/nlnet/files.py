"""Writing files so that a reader sees the old content or the new, never half of it."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from nlnet.errors import FileError


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path`, replacing what was there only once all of it is on disk.

    Raises
    ------
    FileError
        If the file cannot be written; then nothing is left behind and an old file is unharmed.
    """
    target = Path(path)
    # Not `tempfile`: its files are private to the user, and the result should obey the umask.
    temporary = target.with_name(f".{uuid.uuid4().hex}.tmp")
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
