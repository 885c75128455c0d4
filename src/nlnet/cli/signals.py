"""Signals that end a command as Ctrl-C does, so that it can clean up first."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_NAMES = ("SIGTERM", "SIGHUP")


class Terminated(KeyboardInterrupt):
    """A signal asked the process to end; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code that shells report for a process that a signal ended."""
        return 128 + self.number


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
    before = {
        number: signal.getsignal(number)
        for number in numbers
        if signal.getsignal(number) == signal.SIG_DFL
    }

    def end(number: int, frame: FrameType | None) -> NoReturn:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        raise Terminated(number)

    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
