"""Remove noise from image files.

Remove noise from images: PNG, JPEG, WebP, AVIF, HEIC, JPEG XL, GIF, BMP, TIFF (also stacks), FITS,
PGM, PPM and npy. Bit depth, transparency, color profile, EXIF and resolution are kept. Raw files of
cameras are denoised before they are developed. Images of any size in zarr folders and OME-TIFF
files are denoised block by block, on this machine or on a Dask cluster.

Examples
--------
  nlnet denoise noisy.png -o clean.png
  nlnet denoise noisy.png -o clean.png --sigma 25 --preview look.png
  nlnet denoise scan.tif -o scan-clean.tif --sigma 10 --quality best
  nlnet denoise photos/ -o cleaned/ --recursive --workers 2
  nlnet denoise 'shots/*.jpg' -o cleaned/ --strength 0.5,1
  nlnet denoise cells.tif -o cells-clean.tif --noise poisson
  nlnet denoise stack.tif -o stack-clean.tif --sigma 10,12,15
  nlnet denoise movie.ome.tif -o movie-clean.ome.tif --along t
  nlnet denoise frames/ -o cleaned/ --along files
  nlnet denoise camera.tif -o clean.tif --data-range 4095 --mask dead-pixels.png
  nlnet denoise scan.tif -o scan.jpg --depth 8 --jpeg-quality 90
  nlnet denoise IMG_0001.CR3 -o IMG_0001.tif --highlight-mode Blend
  nlnet denoise scan.tif -o clean.tif --sigma sigma-of-every-pixel.tif
  nlnet denoise slide.zarr -o clean.zarr --sigma 12
  curl -s https://example.org/noisy.png | nlnet denoise - -o - --format jpg >clean.jpg
  nlnet denoise slide.ome.tif -o clean.zarr --scheduler tcp://10.0.0.1:8786

--sigma is on the 8-bit scale whatever the bit depth of the file: 25 is about a tenth of white. It
is the strength of white noise or, with --noise camera, the mean strength of camera noise. If white
noise is not equally strong everywhere, it is a file (TIFF or npy, for instance) with the sigma of
every pixel, on that scale too: the value 25 is a sigma of 25, whatever the type of the map. Without
it, the kind and strength of the noise are estimated for every file, and reported. If the output is
a folder, files that exist there are skipped, so an interrupted run continues where it stopped.
'nlnet models' lists the models; from a family, the one trained for the nearest sigma is used.
"""

from __future__ import annotations

import argparse
import glob
import itertools
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.denoise_options import ARGUMENTS as ARGUMENTS
from nlnet.cli.denoise_options import settings_of
from nlnet.cli.denoise_volume import denoise_out_of_core, means_volume, on_cluster
from nlnet.cli.messages import error_line, json_line, outcome_lines, progress_bar
from nlnet.cli.output import check_folder, check_output, check_writes_images
from nlnet.cli.streams import STREAM, files_of, uses_streams
from nlnet.errors import InputError, NLNetError, trying

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


def run(arguments: argparse.Namespace) -> int:
    """Denoise one file, or many."""
    settings = settings_of(arguments)
    if arguments.format is not None and arguments.output != STREAM:
        raise InputError("--format is for standard output; the suffix of a file names its format.")
    if not uses_streams(arguments):
        if means_volume(arguments):
            check_writes_images(arguments)
            denoise_out_of_core(settings, arguments)
            return 0
        if _means_folder(arguments):
            return denoise_many(settings, arguments)
        if arguments.scheduler is not None:
            raise InputError(
                "--scheduler is for zarr and TIFF files and for folders of images, but the "
                f"input is {arguments.inputs[0]!r}."
            )
    with files_of(arguments) as (source, target):
        _denoise_one(source, target, settings, arguments)
    return 0


def _means_folder(arguments: argparse.Namespace) -> bool:
    """As `cp` does it: several inputs, or an output that is a folder, mean a folder."""
    name, *others = arguments.inputs
    pattern = glob.has_magic(name) and not os.path.lexists(name)
    several = others or pattern or os.path.isdir(name)
    return bool(several or os.path.isdir(arguments.output)) or arguments.output.endswith(SEPARATORS)


def _denoise_one(
    source: Path, target: Path, settings: Settings, arguments: argparse.Namespace
) -> None:
    from nlnet.files.one_file import denoise_file

    preview, error = arguments.preview, arguments.error
    if error is not None and error.suffix.lower() not in (".tif", ".tiff", ".npy"):
        raise InputError(f"--error is {str(error)!r}, but must be a TIFF or npy file.")
    outputs = {"output": (target, ()), "preview": (preview, [".png"]), "errors": (error, ())}
    for name, (path, suffixes) in outputs.items():
        if path is None:
            continue
        check_output(path, overwrite=arguments.overwrite, source=source, suffixes=suffixes)
        if name != "output" and os.path.abspath(path) == os.path.abspath(target):
            raise InputError(f"The output and the {name} are both {str(target)!r}.")
    with progress_bar(source.name) as bar:
        outcome = denoise_file(
            source, target, settings, bar.report, keep_before=preview is not None
        )
    stream = sys.stderr if arguments.output == STREAM else sys.stdout
    names = arguments.inputs[0], arguments.output
    for line in outcome_lines(*names, outcome.findings, as_json=arguments.json):
        print(line, file=stream)
    if preview is not None:
        from nlnet.evaluation.comparison import preview_figure
        from nlnet.images import write_image

        write_image(preview, preview_figure(outcome, settings.data_range))


def denoise_many(settings: Settings, arguments: argparse.Namespace) -> int:
    """Denoise files, folders and patterns into a folder; return 1 if some files failed."""
    from nlnet.files.many_files import run_jobs, run_series
    from nlnet.files.series import FILES

    for option in ("preview", "error"):
        if getattr(arguments, option) is not None:
            raise InputError(f"--{option} is for one image, but the output is a folder.")
    _check_folder_name(arguments.output)
    inputs, output = arguments.inputs, Path(arguments.output)
    if arguments.scheduler is None:
        work = partial(run_jobs, settings=settings, workers=arguments.workers)
        if settings.along == FILES:
            work = partial(run_series, settings=settings)
        return _denoise_plan(inputs, output, arguments, work)
    if settings.along == FILES:
        raise InputError("--along files is done on this machine; leave --scheduler out.")
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
    from nlnet.files.many_files import FileReport, split_jobs
    from nlnet.files.plan import make_plan
    from nlnet.files.series import FILES

    plan = make_plan(inputs, output, recursive=arguments.recursive)
    with trying(f"make the output folder {str(output)!r}"):
        output.mkdir(parents=True, exist_ok=True)
    check_folder(output)
    todo, existing = split_jobs(plan.jobs, overwrite=arguments.overwrite)
    tally: Counter[str] = Counter()
    failed: list[Path] = []
    with progress_bar("denoise", len(todo)) as bar:
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
