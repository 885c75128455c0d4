"""Which files to denoise, and where the results go, decided before the work starts."""

import dataclasses
import enum
import errno
import glob
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from nlnet.errors import FileError, InputError, cannot
from nlnet.files.volume_paths import is_zarr
from nlnet.images import SUFFIXES
from nlnet.images.formats import OTHER_SUFFIXES, result_suffix
from nlnet.images.raw_files import has_raw_suffix

Version: TypeAlias = tuple[int, int, int]
"""Identifies a version of a file: its inode, modification time and size."""


@dataclasses.dataclass(frozen=True)
class FileJob:
    """A file to read and the one to write.

    `replaces` is the version of the output that may be replaced, None if it must not exist. If
    there is another version when the job is worked on, a second run has written it.
    """

    source: Path
    target: Path
    replaces: Version | None = None

    @property
    def is_open(self) -> bool:
        """Whether the output is still to be written."""
        return find_version(self.target) == self.replaces


def find_version(path: Path) -> Version | None:
    """Return the version of a file that is there now, None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


class Reason(enum.Enum):
    """Why something in a folder is not denoised."""

    NO_IMAGE = "not images by their names"
    OTHER_FORMAT = "images of formats that are not read; convert them to PNG, TIFF or JPEG"
    ZARR = "zarr is denoised alone"
    FOLDER = "folders inside; --recursive goes into them"
    LINK = "links to folders are not followed"


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """A file or folder that is not denoised; names that begin with a dot do not count."""

    path: Path
    reason: Reason


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to do, the folders that could not be looked into, and what is left out."""

    jobs: tuple[FileJob, ...]
    errors: tuple[FileError, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def make_plan(inputs: Sequence[str], output: Path, *, recursive: bool) -> Plan:
    """List the files to denoise, and where the results go.

    Parameters
    ----------
    inputs : sequence of str
        Files, folders (of which every image is taken) and patterns such as ``shots/*.png``. What
        lies below a folder, or below the fixed part of a pattern, keeps its place there. Raw
        files become TIFF files.
    output : Path
        The folder for the results. It may lie inside an input folder: its files are not inputs.
    recursive : bool
        Go into folders inside folders. Links to folders are not followed, so there are no loops.

    Returns
    -------
    Plan
        Jobs are sorted within each input; a file that is named twice is there once.

    Raises
    ------
    FileError
        If an input does not exist, or a result would replace an input.
    InputError
        If there is nothing to do, or two inputs would become one output.
    """
    search = _Search(output, recursive=recursive)
    jobs: list[FileJob] = []
    for text in inputs:
        found = sorted(search.expand(text))
        if not found and not search.errors:
            raise InputError(
                f"There are no images in {text!r}; names must end in one of {', '.join(SUFFIXES)}, "
                "or as those of cameras' raw files do."
            )
        for source, place in found:
            # A raw file becomes a picture, and HEIC is not written.
            suffix = ".tif" if has_raw_suffix(place) else result_suffix(place.suffix)
            jobs.append(FileJob(source, output / place.with_suffix(suffix)))
    jobs = list(dict.fromkeys(jobs))
    _check_targets(jobs)
    left_out = sorted(set(search.left_out), key=lambda left: left.path)
    return Plan(tuple(jobs), tuple(search.errors), tuple(left_out))


class _Search:
    """Finds the files that inputs stand for, and notes what it leaves out."""

    def __init__(self, output: Path, *, recursive: bool) -> None:
        self.errors: list[FileError] = []
        self.left_out: list[LeftOut] = []
        self._output = output
        self._recursive = recursive

    def expand(self, text: str) -> Iterator[tuple[Path, Path]]:
        """Yield the files an input stands for, each with its place below the output folder."""
        path = Path(text)
        if path.is_dir():
            yield from self._walk(path)
        elif os.path.lexists(path):
            yield path, Path(path.name)
        elif glob.has_magic(text):
            # The folders before its first wildcard.
            fixed = itertools.takewhile(lambda part: not glob.has_magic(part), path.parts[:-1])
            root = Path(*fixed)
            for match in map(Path, glob.iglob(text, recursive=self._recursive)):
                # Folders that match are ignored, except for zarr: their files match by themselves.
                if match.is_dir():
                    self._takes(match, Reason.ZARR if is_zarr(match) else None)
                elif self._takes(match, _why_no_image(match)):
                    yield match, match.relative_to(root)
        else:
            raise cannot(
                f"read {text!r}", FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            )

    def _walk(self, folder: Path) -> Iterator[tuple[Path, Path]]:
        def note(error: OSError) -> None:
            self.errors.append(cannot(f"read the folder {error.filename!r}", error))

        for place, folders, names in os.walk(folder, onerror=note):
            inside = Path(place)
            folders[:] = sorted(name for name in folders if self._goes_into(inside / name))
            for file in (inside / name for name in names):
                if self._takes(file, _why_no_image(file)):
                    yield file, file.relative_to(folder)

    def _goes_into(self, folder: Path) -> bool:
        if self._output.exists() and folder.exists() and folder.samefile(self._output):
            return False
        if is_zarr(folder):
            return self._takes(folder, Reason.ZARR)
        if folder.is_symlink():
            return self._takes(folder, Reason.LINK)
        return self._takes(folder, None if self._recursive else Reason.FOLDER)

    def _takes(self, path: Path, reason: Reason | None) -> bool:
        """Whether to take a file or folder: it is not hidden, and there is no reason against it."""
        # Names that begin with a dot are hidden: other programs keep their own things there.
        if path.name.startswith("."):
            return False
        if reason is not None:
            self.left_out.append(LeftOut(path, reason))
        return reason is None


def _why_no_image(file: Path) -> Reason | None:
    suffix = file.suffix.lower()
    if suffix in SUFFIXES or has_raw_suffix(file):
        return None
    return Reason.OTHER_FORMAT if suffix in OTHER_SUFFIXES else Reason.NO_IMAGE


def _check_targets(jobs: Sequence[FileJob]) -> None:
    sources = {os.path.realpath(job.source) for job in jobs}
    taken: dict[str, Path] = {}
    for job in jobs:
        if os.path.realpath(job.target) in sources:
            raise FileError(
                f"The output {str(job.target)!r} is one of the inputs; choose another folder."
            )
        other = taken.setdefault(_key(job.target), job.source)
        if other != job.source:
            raise InputError(
                f"{str(other)!r} and {str(job.source)!r} would both become {str(job.target)!r}; "
                "give their common folder, or denoise them in two runs."
            )


def _key(path: Path) -> str:
    """Return a key that is the same for names that the file system does not tell apart."""
    text = os.path.normcase(os.path.abspath(path))
    return text.casefold() if sys.platform == "darwin" else text
