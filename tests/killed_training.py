"""``nlnet train``, but it kills itself, as ``kill -9`` does, at the n-th write of a file.

Usage: python killed_training.py N before|after ARGUMENTS. What counts as a write are the new files
that take the place of old ones (checkpoints and models), and the lines of the log. With "before"
the new file is complete but not yet in its place.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from nlnet.cli import main
from nlnet.training.progress import RunLog


def deadly(
    write: Callable[..., None], count: Callable[[], int], deadly_number: int, *, before: bool
) -> Callable[..., None]:
    """Return the write, followed, or replaced, by death when its number comes."""

    def replacement(*values: Any) -> None:
        last = count() == deadly_number
        if not (last and before):
            write(*values)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)

    return replacement


if __name__ == "__main__":
    numbers = iter(range(1, 10**6))
    options: dict[str, Any] = {"deadly_number": int(sys.argv[1]), "before": sys.argv[2] == "before"}
    os.replace = deadly(os.replace, lambda: next(numbers), **options)
    RunLog.write = deadly(RunLog.write, lambda: next(numbers), **options)
    sys.exit(main(["train", *sys.argv[3:]]))
