"""What the structures of ``nlnet_engine.h`` are made of."""

from __future__ import annotations

import ctypes
from typing import ClassVar


def fields(kind: type, names: str) -> list[tuple[str, type]]:
    """Return consecutive fields of one type."""
    return [(name, kind) for name in names.split()]


class Task(ctypes.Structure):
    """What a job does; ``nlnet_...`` with the name of its maker makes the job."""

    maker: ClassVar[str]
