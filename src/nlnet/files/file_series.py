"""The images of a folder as one series: a burst, or the frames of a film."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from nlnet.denoising.image import stoppable
from nlnet.errors import InputError
from nlnet.files.claims import claim
from nlnet.files.many_files import FileReport, prepare
from nlnet.files.one_file import write_results
from nlnet.files.pages import PageWork, with_pixels
from nlnet.files.plan import FileJob
from nlnet.files.settings import Settings
from nlnet.images import ImageFile, check_format, read_image, read_pages
from nlnet.images.content import Pages
from nlnet.progress import Progress


def run_series(
    jobs: Sequence[FileJob],
    settings: Settings,
    *,
    existing: Sequence[FileJob] = (),
    progress: Progress,
) -> Iterator[FileReport]:
    """Denoise the images of each folder along the series that they are, by the numbers in names.

    Parameters
    ----------
    jobs : sequence of FileJob
        What to do.
    settings : Settings
        How to denoise.
    existing : sequence of FileJob
        Images whose results are there already: neighbors of the others.
    progress : callable
        Called with the number of files done, fractions included.

    Raises
    ------
    FileError, InputError, ModelError
        If an image cannot be read or written, or is of another size than the first of its folder.
    """
    todo = {job.source for job in jobs}
    by_name = sorted({*jobs, *existing}, key=lambda job: natural_key(job.source))
    done = 0
    for _, group in itertools.groupby(by_name, key=lambda job: job.source.parent):
        members = list(group)
        wanted = [number for number, job in enumerate(members) if job.source in todo]
        if wanted:
            count = len(wanted)
            share = partial(lambda before, part, n: progress(before + part * n), done, n=count)
            yield from _denoise_folder(members, wanted, settings, share)
            done += count


def natural_key(path: Path) -> tuple[Path, list[tuple[int, str]]]:
    """Return what files are ordered by: numbers in names count as numbers.

    Examples
    --------
    >>> sorted([Path("a10.png"), Path("a9.png")], key=natural_key)[0].name
    'a9.png'
    """
    parts = re.findall(r"\d+|\D+", path.name)
    return path.parent, [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _denoise_folder(
    jobs: Sequence[FileJob], wanted: Sequence[int], settings: Settings, progress: Progress
) -> Iterator[FileReport]:
    first, folder = _read(jobs[0].source, settings), jobs[0].source.parent
    for number in wanted:
        check_format(jobs[number].target, first, 1, settings.writing)

    def read(number: int) -> ImageFile:
        page = _read(jobs[number].source, settings) if number else first
        if (page.pixels.shape, page.pixels.dtype) != (first.pixels.shape, first.pixels.dtype):
            raise InputError(
                f"{str(jobs[number].source)!r} is {_in_words(page)}, but the first image of its "
                f"folder, {str(jobs[0].source)!r}, is {_in_words(first)}; a series has one size."
            )
        return page

    pages, network = Pages(len(jobs), read), settings.network(first.channels)
    work = PageWork(
        pages, settings, network, str(folder), lambda number: repr(str(jobs[number].source))
    )
    for number, before, pixels, found in work.along(range(len(jobs)), stoppable(progress), wanted):
        job, page = jobs[number], with_pixels(before, pixels)
        prepare(job.target)
        with claim(job.target) as ours:
            if ours and job.is_open:
                source = read_pages(job.source, max_pixels=settings.max_pixels)
                told = [] if found is None else [found]
                findings = write_results(job.source, job.target, source, [page], told, settings)
                yield FileReport(job, findings)
            else:
                yield FileReport(job, elsewhere=True)


def _read(path: Path, settings: Settings) -> ImageFile:
    return read_image(path, max_pixels=settings.max_pixels)


def _in_words(page: ImageFile) -> str:
    height, width = page.pixels.shape[:2]
    kind = "gray" if page.channels == 1 else "color"
    return f"{width}x{height} pixels in {kind} ({page.pixels.dtype})"
