"""``python -m nlnet.training``, but rank 1 dies after so many steps: the variable DIE_AFTER."""

from __future__ import annotations

import os
import signal
import sys

from nlnet.cli import main
from nlnet.training.phase import Phase

honest = Phase._follow_average
steps_left = iter(range(int(os.environ["DIE_AFTER"]), -1, -1))


def deadly(self: Phase, steps: int) -> None:
    if os.environ["RANK"] == "1" and next(steps_left) == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    honest(self, steps)


Phase._follow_average = deadly  # type: ignore[method-assign]
sys.exit(main(["train", *sys.argv[1:]]))
