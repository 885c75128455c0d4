"""What commands write: checks of its path, made before the work starts, extras, and figures."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.arguments import OVERWRITE, argument
from nlnet.errors import FileError, InputError, reason_of, trying

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_output(
    path: Path, *, overwrite: bool, source: Path | None = None, suffixes: Sequence[str] = ()
) -> None:
    """Raise FileError unless `path` can be written without harm.

    Its folder must exist and take new files; the file must not exist, or be a plain file that may
    be replaced; and it must not be `source`, under whatever name or link. If `suffixes` are given,
    its name must end in one of them, or InputError is raised.
    """
    if suffixes and path.suffix.lower() not in suffixes:
        wanted = " or ".join(map(repr, suffixes))
        raise InputError(f"The output {str(path)!r} must have the suffix {wanted}.")
    if source is not None and source.exists() and path.exists() and path.samefile(source):
        raise FileError(f"The output {str(path)!r} is the input itself; choose another name.")
    if path.exists() and not path.is_file():
        raise FileError(f"The output {str(path)!r} exists, but is not a plain file.")
    if os.path.lexists(path) and not overwrite:
        raise FileError(f"The output {str(path)!r} exists; replace it with --overwrite.")
    check_folder(path.parent)


def make_folder(folder: Path) -> None:
    """Make an output folder, if it is not there, and check that it takes new files."""
    with trying(f"make the output folder {str(folder)!r}"):
        folder.mkdir(parents=True, exist_ok=True)
    check_folder(folder)


def check_folder(folder: Path) -> None:
    """Raise FileError unless the folder exists and takes new files."""
    if not folder.is_dir():
        raise FileError(f"The output folder {str(folder)!r} does not exist.")
    try:
        # Trying tells more than permission bits: file systems may be read-only or full.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise FileError(
            f"The output folder {str(folder)!r} cannot be written: {reason_of(error)}."
        ) from error


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


DRAWING = (
    argument("-o --output FIG", "PNG, PDF or SVG to write", Path, required=True),
    OVERWRITE,
)


@contextmanager
def drawing(
    path: Path, *, overwrite: bool, sources: Sequence[Path] = ()
) -> Iterator[Callable[[Figure], None]]:
    """Check a file for a figure, as `check_output` does, and yield what writes the figure."""
    with needs_extra("plot", "matplotlib"):
        from nlnet.plotting.files import SUFFIXES, save_figure

        for source in sources or (None,):
            check_output(path, overwrite=overwrite, source=source, suffixes=SUFFIXES)
        yield lambda figure: save_figure(figure, path)
