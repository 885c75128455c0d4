"""The part of ``nlnet denoise`` for many files: progress, what went wrong, and a summary."""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.messages import error_line, json_line, outcome_lines
from nlnet.cli.output import make_folder
from nlnet.errors import NLNetError

if TYPE_CHECKING:
    from nlnet.dask.schedulers import Cluster
    from nlnet.files.many_files import FileReport
    from nlnet.files.plan import FileJob, LeftOut
    from nlnet.files.settings import Settings
    from nlnet.progress import Progress

_EXIT_SOME_FAILED = 1
_NAMES_SHOWN = 10


def denoise_many(
    output: Path,
    settings: Settings,
    arguments: argparse.Namespace,
    cluster: Cluster | None = None,
) -> int:
    """Denoise files, folders and patterns into a folder; return 1 if some files failed."""
    from nlnet.cli.progress import file_bar
    from nlnet.files.many_files import split_jobs
    from nlnet.files.plan import make_plan

    inputs = arguments.inputs
    if cluster is not None:
        # The workers have been started in folders of their own.
        inputs, output = [os.path.abspath(name) for name in inputs], output.absolute()
    plan = make_plan(inputs, output, recursive=arguments.recursive)
    make_folder(output)
    todo, existing = split_jobs(plan.jobs, overwrite=arguments.overwrite)
    tally = {"written": 0, "exists": 0, "elsewhere": 0, "failed": 0}
    failed: list[FileJob] = []
    with file_bar("denoise", len(todo)) as bar:
        for error in plan.errors:
            bar.say(error_line(error), sys.stderr)
        done = _reports(todo, settings, arguments, cluster, bar.report)
        for report in itertools.chain(map(_existing, existing), done):
            tally[report.status] += 1
            for line in _report_lines(report, as_json=arguments.json):
                bar.say(line)
            if report.error is not None:
                failed.append(report.job)
                bar.say(error_line(_with_name(report.error, report.job)), sys.stderr)
    if arguments.json:
        for left in plan.left_out:
            print(json_line("left out", left.path, reason=left.reason.value))
    else:
        print(_summary(tally))
        for line in _left_out(plan.left_out):
            print(line)
    if not failed and not plan.errors:
        return 0
    print(_failures(failed, len(plan.errors)), file=sys.stderr)
    return _EXIT_SOME_FAILED


def _existing(job: FileJob) -> FileReport:
    from nlnet.files.many_files import FileReport

    return FileReport(job)


def _report_lines(report: FileReport, *, as_json: bool) -> list[str]:
    """Report on a file; for people, existing and failed files are reported elsewhere."""
    source, target = report.job.source, report.job.target
    if report.findings is not None:
        return outcome_lines(source, target, report.findings, as_json=as_json)
    if not as_json:
        return []
    reason = {} if report.error is None else {"error": report.error}
    return [json_line(report.status, source, target=target, **reason)]


def _reports(
    jobs: Sequence[FileJob],
    settings: Settings,
    arguments: argparse.Namespace,
    cluster: Cluster | None,
    progress: Progress,
) -> Iterator[FileReport]:
    """Work on the jobs, on the cluster if there is one."""
    from nlnet.files.many_files import run_jobs

    if cluster is not None:
        return cluster.run_jobs(jobs, progress=progress)
    return run_jobs(jobs, settings, workers=arguments.workers, progress=progress)


def _with_name(error: NLNetError, job: FileJob) -> str:
    """Return the message, with the name of the file if it is not in there."""
    names = (repr(str(job.source)), repr(str(job.target)))
    named = any(name in str(error) for name in names)
    return str(error) if named else f"{names[0]}: {error}"


def _summary(tally: Mapping[str, int]) -> str:
    words = {
        "exists": "skipped that exist (--overwrite replaces them)",
        "elsewhere": "left to another process",
        "failed": "failed",
    }
    parts = [f"{tally[status]} {what}" for status, what in words.items() if tally[status]]
    return ", ".join([f"{tally['written']} written", *parts])


def _left_out(left_out: Sequence[LeftOut]) -> list[str]:
    """Say what was left out, a line for each reason."""
    paths: dict[str, list[Path]] = {}
    for left in left_out:
        paths.setdefault(left.reason.value, []).append(left.path)
    return [
        f"{len(some)} left out ({reason}): {', '.join(_names(some))}"
        for reason, some in paths.items()
    ]


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the first names, and how many more there are; a name is always one line."""
    names = [" ".join(str(path).split()) for path in paths[:_NAMES_SHOWN]]
    if len(paths) > _NAMES_SHOWN:
        names.append(f"and {len(paths) - _NAMES_SHOWN} more")
    return names


def _failures(failed: Sequence[FileJob], folders: int) -> str:
    names = _names([job.source for job in failed])
    if folders:
        names.append(f"and {folders} folders that cannot be read")
    return error_line(f"not denoised: {', '.join(names)}".replace(": and", ":"))
