"""Writing files so that a reader sees the old content or the new, never half of it."""

import os
import uuid
from pathlib import Path

from nlnet.errors import trying

PREFIX = ".nlnet-"
"""Names of temporary files begin with this."""
UNFINISHED = ".tmp"
"""Names of files that are still being written end with this."""


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write `data` to `path`, replacing what was there only once all of it is on disk.

    Raises
    ------
    FileError
        If the file cannot be written; then nothing is left behind and an old file is unharmed.
    """
    target = Path(path)
    temporary = temporary_beside(target)
    with trying(f"write {str(target)!r}"):
        try:
            with open(temporary, "xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)


def temporary_beside(path: Path) -> Path:
    """Return an unused path in the same folder, for a file that will replace this one."""
    # Not `tempfile`: its files are private to the user, and the result should obey the umask.
    return path.with_name(f"{PREFIX}{uuid.uuid4().hex}{UNFINISHED}")


def copy_file(source: str | os.PathLike[str], target: str | os.PathLike[str]) -> None:
    """Copy the content of a file, whole or not at all."""
    with trying(f"read {os.fspath(source)!r}"):
        data = Path(source).read_bytes()
    write_atomically(target, data)
