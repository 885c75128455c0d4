"""Errors for commands that need an extra which is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from nlnet.errors import InputError


@contextmanager
def needs_extra(extra: str, *modules: str) -> Iterator[None]:
    """Turn a failed import of one of the modules into a sentence that names the extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in modules:
            raise
        raise InputError(
            f"This needs {name}, which is not installed: pip install 'nlnet[{extra}]'."
        ) from error
