"""Which files of a folder run become which, decided before the first of them is touched."""

from __future__ import annotations

import dataclasses
import glob
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from nlnet.errors import FileError, InputError
from nlnet.images import SUFFIXES
from nlnet.raw import RAW_SUFFIXES, is_raw


@dataclasses.dataclass(frozen=True)
class Job:
    """A file to read and the one to write."""

    source: Path
    target: Path


@dataclasses.dataclass(frozen=True)
class Plan:
    """What to do, and the folders inside the inputs that could not be looked into."""

    jobs: tuple[Job, ...]
    errors: tuple[FileError, ...] = ()


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
    jobs: list[Job] = []
    errors: list[FileError] = []
    for text in inputs:
        found = sorted(_expand(text, output, errors, recursive=recursive))
        if not found and not errors:
            raise InputError(
                f"There are no images in {text!r}; names must end in one of {', '.join(SUFFIXES)}, "
                "or as those of cameras' raw files do."
            )
        jobs.extend(Job(source, output / _renamed(place)) for source, place in found)
    jobs = list(dict.fromkeys(jobs))
    _check_targets(jobs)
    return Plan(tuple(jobs), tuple(errors))


def _expand(
    text: str, output: Path, errors: list[FileError], *, recursive: bool
) -> Iterator[tuple[Path, Path]]:
    """Yield the files an input stands for, each with its place below the output folder."""
    path = Path(text)
    if path.is_dir():
        yield from _walk(path, output, errors, recursive=recursive)
    elif os.path.lexists(path):
        yield path, Path(path.name)
    elif glob.has_magic(text):
        root = _fixed_part(text)
        for match in map(Path, glob.iglob(text, recursive=recursive)):
            if _is_image(match.name) and not match.is_dir():
                yield match, match.relative_to(root)
    else:
        raise FileError(f"Cannot read {text!r}: No such file or directory.")


def _walk(
    folder: Path, output: Path, errors: list[FileError], *, recursive: bool
) -> Iterator[tuple[Path, Path]]:
    def note(error: OSError) -> None:
        reason = error.strerror or str(error)
        errors.append(FileError(f"Cannot read the folder {error.filename!r}: {reason}."))

    for place, folders, names in os.walk(folder, onerror=note):
        inside = Path(place)
        hidden = {name for name in folders if name.startswith(".")}
        folders[:] = sorted(
            name
            for name in set(folders) - hidden
            if recursive and not _is_same(inside / name, output)
        )
        for name in names:
            if _is_image(name):
                yield inside / name, (inside / name).relative_to(folder)


def _is_image(name: str) -> bool:
    # Names that begin with a dot are hidden: other programs keep their own things there.
    suffix = Path(name).suffix.lower()
    return not name.startswith(".") and (suffix in SUFFIXES or suffix in RAW_SUFFIXES)


def _renamed(place: Path) -> Path:
    """Return the name of a result: a raw file becomes a picture."""
    return place.with_suffix(".tif") if is_raw(place) else place


def _is_same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def _fixed_part(pattern: str) -> Path:
    """Return the folders of a pattern before its first wildcard."""
    fixed = []
    for part in Path(pattern).parts[:-1]:
        if glob.has_magic(part):
            break
        fixed.append(part)
    return Path(*fixed)


def _check_targets(jobs: Sequence[Job]) -> None:
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
    """Return what two names have in common if the file system takes them for one."""
    text = os.path.normcase(os.path.abspath(path))
    return text.casefold() if sys.platform == "darwin" else text
