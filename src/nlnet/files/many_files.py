"""Many files in one run: several at a time, or as one series; existing outputs are skipped."""

import dataclasses
import errno
import itertools
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from nlnet.denoising.image import stoppable
from nlnet.errors import Cancelled, FileError, InputError, NLNetError, trying
from nlnet.files.claims import claim, remove_leftovers
from nlnet.files.findings import Findings
from nlnet.files.one_file import denoise_file, write_results
from nlnet.files.pages import PageWork, with_pixels
from nlnet.files.plan import FileJob, find_version
from nlnet.files.settings import Settings
from nlnet.images import ImageFile, check_format, read_image, read_pages
from nlnet.images.content import Pages
from nlnet.parallel import available_cpus
from nlnet.progress import Progress, ignore

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@dataclasses.dataclass(frozen=True)
class FileReport:
    """What became of a job.

    It has findings or an error. It has neither if the output existed already, or if the job was
    left to another process, which is working on it or has finished it since this run began
    (`elsewhere`).
    """

    job: FileJob
    findings: Findings | None = None
    error: NLNetError | None = None
    elsewhere: bool = False

    @property
    def status(self) -> str:
        """What became of it in a word: written, exists, elsewhere or failed."""
        if self.error is not None:
            return "failed"
        if self.findings is not None:
            return "written"
        return "elsewhere" if self.elsewhere else "exists"


def run_jobs(
    jobs: Sequence[FileJob],
    settings: Settings,
    *,
    workers: int = 1,
    progress: Progress = ignore,
) -> Iterator[FileReport]:
    """Work on the jobs, and yield what became of each as soon as it is done.

    Parameters
    ----------
    jobs : sequence of FileJob
        What to do, from :func:`split_jobs`.
    settings : Settings
        How to denoise; unless it says otherwise, the workers share the CPUs.
    workers : int
        Number of files that are worked on at the same time.
    progress : callable, optional
        Called with the number of files done, fractions included, from any thread.

    Raises
    ------
    FileError
        If the disk is full or cannot be written: every further file would fail as well. It is
        raised after what became of the files that were under way.
    """
    if settings.threads is None:
        threads = max(1, available_cpus() // workers)
        settings = dataclasses.replace(settings, threads=threads)
    tally = _Tally(progress)
    for folder in {job.target.parent for job in jobs}:
        remove_leftovers(folder)

    def work(number: int) -> FileReport | None:
        if tally.stopped.is_set():
            return None
        try:
            return work_on(jobs[number], settings, lambda share: tally.set(number, share))
        except BaseException:
            tally.stopped.set()
            raise

    failure = None
    with ThreadPoolExecutor(workers) as pool:
        try:
            for future in as_completed([pool.submit(work, number) for number in range(len(jobs))]):
                # Of files that are under way when one fails, some are written nevertheless.
                error = future.exception()
                if error is None:
                    yield from filter(None, [future.result()])
                elif failure is None or isinstance(failure, Cancelled):
                    failure = error
        finally:
            tally.stopped.set()
    if failure is not None:
        raise failure


def split_jobs(jobs: Sequence[FileJob], *, overwrite: bool) -> tuple[list[FileJob], list[FileJob]]:
    """Tell the jobs to do from those whose output is there and may not be replaced.

    With `overwrite`, outputs that exist now may be replaced, but not those that another process
    writes in the meantime.
    """
    existing, todo = [], []
    for job in jobs:
        version = find_version(job.target)
        if version is not None and not overwrite:
            existing.append(job)
        else:
            todo.append(dataclasses.replace(job, replaces=version))
    return todo, existing


class _Tally:
    """How much of all files is done; stops those under way when the run ends early."""

    def __init__(self, progress: Progress) -> None:
        self.stopped = threading.Event()
        self._progress = progress
        self._lock = threading.Lock()
        self._shares: dict[int, float] = {}
        self._total = 0.0

    def set(self, number: int, share: float) -> bool:
        with self._lock:
            self._total += share - self._shares.get(number, 0.0)
            self._shares[number] = share
            self._progress(self._total)
        return not self.stopped.is_set()


def work_on(job: FileJob, settings: Settings, progress: Progress) -> FileReport:
    """Work on one job; an error that every further job would meet as well is raised."""
    report = FileReport(job, elsewhere=True)
    try:
        if job.is_open:
            prepare(job.target)
            with claim(job.target) as ours:
                # Once more: another process may have written it before the claim was ours.
                if ours and job.is_open:
                    outcome = denoise_file(job.source, job.target, settings, progress)
                    report = FileReport(job, outcome.findings)
    except Cancelled:
        raise
    except NLNetError as error:
        if getattr(error.__cause__, "errno", None) in _DISK_ERRORS:
            raise
        report = FileReport(job, error=error)
    except MemoryError:
        report = FileReport(job, error=NLNetError(f"{str(job.source)!r} takes too much memory."))
    progress(1.0)
    return report


def prepare(target: Path) -> None:
    """Make the folder of an output, which must be a plain file if it exists."""
    if os.path.lexists(target) and not target.is_file():
        raise FileError(f"The output {str(target)!r} exists, but is not a plain file.")
    with trying(f"make the output folder {str(target.parent)!r}"):
        target.parent.mkdir(parents=True, exist_ok=True)


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
