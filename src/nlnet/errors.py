"""The exceptions nlnet raises on purpose.

Each carries one sentence that says what was given and what is wanted. The command line prints
that sentence and exits with code 2; anything else that escapes is a bug.
"""

from collections.abc import Iterator
from contextlib import contextmanager


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


def reason_of(error: Exception) -> str:
    """Return what went wrong with a file, without its number and path."""
    if isinstance(error, UnicodeError):
        return "it is not a text file"
    return getattr(error, "strerror", None) or str(error)


def cannot(act: str, error: Exception) -> FileError:
    """Return the error that says what could not be done to a file, and why.

    Examples
    --------
    >>> cannot("read 'a.png'", FileNotFoundError(2, "No such file or directory", "a.png"))
    FileError("Cannot read 'a.png': No such file or directory.")
    """
    return FileError(f"Cannot {act}: {reason_of(error)}.")


@contextmanager
def trying(act: str) -> Iterator[None]:
    """Raise the `FileError` of `cannot` where the system, or text that is none, stops the act.

    Examples
    --------
    >>> with trying("read 'a.png'"):
    ...     open("/no/a.png")
    Traceback (most recent call last):
    nlnet.errors.FileError: Cannot read 'a.png': No such file or directory.
    """
    try:
        yield
    except NLNetError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise cannot(act, error) from error


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Put the subject, unless it is empty, in front of the message of an `InputError`.

    Examples
    --------
    >>> with about("'a.tif', page 2"):
    ...     raise InputError("It is empty.")
    Traceback (most recent call last):
    nlnet.errors.InputError: 'a.tif', page 2: It is empty.
    """
    try:
        yield
    except InputError as error:
        if not subject:
            raise
        raise InputError(f"{subject}: {error}") from error


class Cancelled(NLNetError):  # noqa: N818 - it is the user's wish, not an error
    """The caller's ``progress`` function asked to stop the work."""
