"""What commands write: checks of its path before the work starts, extras, figures, options."""

import argparse
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.arguments import OVERWRITE, argument, group, made_of, whole_number
from nlnet.defaults import JPEG_QUALITY
from nlnet.errors import FileError, InputError, reason_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nlnet.images import WritingOptions


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
) -> "Iterator[Callable[[Figure], None]]":
    """Check a file for a figure, as `check_output` does, and yield what writes the figure."""
    with needs_extra("plot", "matplotlib"):
        from nlnet.plotting.files import SUFFIXES, save_figure

        for source in sources or (None,):
            check_output(path, overwrite=overwrite, source=source, suffixes=SUFFIXES)
        yield lambda figure: save_figure(figure, path)


_DEPTHS = {"8": "uint8", "16": "uint16", "float32": "float32"}
_COLORS = {"white": (255, 255, 255), "gray": (128, 128, 128), "black": (0, 0, 0)}


def writing_options(arguments: argparse.Namespace) -> "WritingOptions":
    """Return the options that a command was given."""
    from nlnet.images import WritingOptions

    return made_of(WritingOptions, arguments, depth=_DEPTHS.get(arguments.depth))


def check_writes_images(arguments: argparse.Namespace) -> None:
    """Raise InputError if options for image files are given where none is written."""
    for name in ("jpeg_quality", "webp_quality", "avif_quality", "pyramid", "depth", "background"):
        if getattr(arguments, name):
            raise InputError(
                f"--{name.replace('_', '-')} is for image files, but the output is "
                f"{arguments.output!r}."
            )


def _color(text: str) -> tuple[int, ...]:
    if text.lower() in _COLORS:
        return _COLORS[text.lower()]
    if re.fullmatch(r"#[0-9a-fA-F]{6}", text) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} must be white, gray, black or a color such as #ff8000"
        )
    return tuple(bytes.fromhex(text[1:]))


WRITING = group(
    "output files",
    (
        argument(
            "--jpeg-quality Q",
            "from 1 to 100 (default: that of a JPEG input, or better if too much would be lost; "
            f"else {JPEG_QUALITY})",
            whole_number,
        ),
        argument("--webp-quality Q", "from 1 to 100 (default: lossless)", whole_number),
        argument("--avif-quality Q", "from 1 to 100 (default: lossless)", whole_number),
        argument("--pyramid", "write TIFF as tiles, with smaller versions for viewers"),
        argument(
            "--depth",
            "bit depth to write, where white stays white; JPEG needs 8 for 16-bit images; float32 "
            "keeps the units, and what integers would round away (default: that of the input)",
            choices=tuple(_DEPTHS),
        ),
        argument(
            "--background COLOR",
            "put transparent images on white, gray, black or a color such as #ff8000, "
            "and write them without transparency; JPEG needs this",
            _color,
        ),
    ),
)
