"""The part of ``nlnet denoise`` for many files: progress, what went wrong, and a summary."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.denoise_volume import on_cluster
from nlnet.cli.messages import error_line, json_line, outcome_lines
from nlnet.cli.output import make_folder
from nlnet.errors import InputError, NLNetError

if TYPE_CHECKING:
    from nlnet.files.many_files import FileReport
    from nlnet.files.plan import FileJob, LeftOut
    from nlnet.files.settings import Settings

_EXIT_SOME_FAILED = 1
_NAMES_SHOWN = 10
_WORDS = {
    "exists": "skipped that exist (--overwrite replaces them)",
    "elsewhere": "left to another process",
    "failed": "failed",
}

SEPARATORS = tuple(filter(None, (os.sep, os.altsep)))
"""What the name of an output folder may end in."""


def denoise_many(settings: Settings, arguments: argparse.Namespace) -> int:
    """Denoise files, folders and patterns into a folder; return 1 if some files failed."""
    from nlnet.files.many_files import run_jobs
    from nlnet.files.series import FILES

    for option in ("preview", "error"):
        if getattr(arguments, option) is not None:
            raise InputError(f"--{option} is for one image, but the output is a folder.")
    _check_folder_name(arguments.output)
    inputs, output = arguments.inputs, Path(arguments.output)
    if settings.along == FILES:
        if arguments.scheduler is not None:
            raise InputError("--along files is done on this machine; leave --scheduler out.")
        from nlnet.files.file_series import run_series

        return _denoise_plan(inputs, output, arguments, partial(run_series, settings=settings))
    if arguments.scheduler is None:
        work = partial(run_jobs, settings=settings, workers=arguments.workers)
        return _denoise_plan(inputs, output, arguments, work)
    with on_cluster(arguments.scheduler, settings) as cluster:
        # The workers have been started in folders of their own.
        inputs = [os.path.abspath(name) for name in inputs]
        return _denoise_plan(inputs, output.absolute(), arguments, cluster.run_jobs)


def _denoise_plan(
    inputs: Sequence[str],
    output: Path,
    arguments: argparse.Namespace,
    work: Callable[..., Iterator[FileReport]],
) -> int:
    from nlnet.cli.messages import file_bar
    from nlnet.files.many_files import FileReport, split_jobs
    from nlnet.files.plan import make_plan
    from nlnet.files.series import FILES

    plan = make_plan(inputs, output, recursive=arguments.recursive)
    make_folder(output)
    todo, existing = split_jobs(plan.jobs, overwrite=arguments.overwrite)
    tally: Counter[str] = Counter()
    failed: list[Path] = []
    with file_bar("denoise", len(todo)) as bar:
        for error in plan.errors:
            bar.say(error_line(error), sys.stderr)
        neighbors = {"existing": existing} if arguments.along == FILES else {}
        done = work(todo, progress=bar.report, **neighbors)
        for report in itertools.chain(map(FileReport, existing), done):
            tally[report.status] += 1
            for line in _report_lines(report, as_json=arguments.json):
                bar.say(line)
            if report.error is not None:
                failed.append(report.job.source)
                bar.say(error_line(_with_name(report.error, report.job)), sys.stderr)
    if arguments.json:
        for left in plan.left_out:
            print(json_line("left out", left.path, reason=left.reason.value))
    else:
        _print_summary(tally, plan.left_out)
    if not failed and not plan.errors:
        return 0
    names = _names(failed)
    if plan.errors:
        names.append(f"{'and ' if names else ''}{len(plan.errors)} folders that cannot be read")
    print(error_line(f"not denoised: {', '.join(names)}"), file=sys.stderr)
    return _EXIT_SOME_FAILED


def _check_folder_name(output: str) -> None:
    """Refuse to create a folder whose name looks like that of an image file."""
    from nlnet.images import SUFFIXES

    path = Path(output)
    file = path.suffix.lower() in (*SUFFIXES, ".zarr") and not output.endswith(SEPARATORS)
    if file and not path.is_dir():
        raise InputError(
            f"Several images go into a folder, but the output {output!r} is named like a file; "
            f"if that is a folder, write {output + os.sep!r}."
        )


def _report_lines(report: FileReport, *, as_json: bool) -> list[str]:
    """Report on a file; for people, existing and failed files are reported elsewhere."""
    source, target = report.job.source, report.job.target
    if report.findings is not None:
        return outcome_lines(source, target, report.findings, as_json=as_json)
    if not as_json:
        return []
    reason = {} if report.error is None else {"error": report.error}
    return [json_line(report.status, source, target=target, **reason)]


def _with_name(error: NLNetError, job: FileJob) -> str:
    """Return the message, with the name of the file if it is not in there."""
    names = (repr(str(job.source)), repr(str(job.target)))
    named = any(name in str(error) for name in names)
    return str(error) if named else f"{names[0]}: {error}"


def _print_summary(tally: Mapping[str, int], left_out: Sequence[LeftOut]) -> None:
    """Print how many files were written and not, and what was left out: a line for each reason."""
    parts = [f"{tally[status]} {what}" for status, what in _WORDS.items() if tally[status]]
    print(", ".join([f"{tally['written']} written", *parts]))
    paths: dict[str, list[Path]] = {}
    for left in left_out:
        paths.setdefault(left.reason.value, []).append(left.path)
    for reason, some in paths.items():
        print(f"{len(some)} left out ({reason}): {', '.join(_names(some))}")


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the first names, and how many more there are; a name is always one line."""
    names = [" ".join(str(path).split()) for path in paths[:_NAMES_SHOWN]]
    if len(paths) > _NAMES_SHOWN:
        names.append(f"and {len(paths) - _NAMES_SHOWN} more")
    return names
