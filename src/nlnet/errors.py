"""The exceptions nlnet raises on purpose.

Each carries one sentence that says what was given and what is wanted. The command line prints
that sentence and exits with code 2; anything else that escapes is a bug.
"""

from __future__ import annotations


class NLNetError(Exception):
    """Base of every error nlnet raises on purpose."""


class InputError(NLNetError, ValueError):
    """An argument or an image that cannot be used: shape, dtype, range, sigma, NaN."""


class ModelError(NLNetError, ValueError):
    """A model that is unknown, damaged, inconsistent, or not made for this image."""


class FileError(NLNetError, OSError):
    """A file that cannot be read or written."""


class EngineError(NLNetError, RuntimeError):
    """The native engine is missing, or lacks what is asked of it."""


class Cancelled(NLNetError):  # noqa: N818 - it is the user's wish, not an error
    """The caller's ``progress`` function asked to stop the work."""
