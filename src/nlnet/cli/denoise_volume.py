"""The part of ``nlnet denoise`` for images of any size: zarr and TIFF, here or on a cluster."""

import argparse
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from nlnet.cli.messages import outcome_lines, progress_bar
from nlnet.cli.output import check_folder, check_output, needs_extra
from nlnet.errors import FileError, InputError
from nlnet.files.volume_paths import ZARR_FILES, is_tiff, is_zarr

if TYPE_CHECKING:
    from nlnet.dask.schedulers import Cluster
    from nlnet.files.settings import Settings

LIBRARIES = ("dask", "distributed", "tifffile", "zarr")


def means_volume(arguments: argparse.Namespace) -> bool:
    """Zarr in or out, or a TIFF file for a cluster; other files fit into memory."""
    source, target = Path(arguments.inputs[0]), Path(arguments.output)
    if len(arguments.inputs) > 1:
        zarrs = [name for name in arguments.inputs if is_zarr(Path(name))]
        if zarrs:
            raise InputError(f"{zarrs[0]!r} is one of several inputs; give it alone.")
        return False
    if is_zarr(source) or is_zarr(target):
        return True
    tiffs = is_tiff(source) and is_tiff(target)
    return arguments.scheduler is not None and tiffs and not source.is_dir()


def denoise_out_of_core(settings: "Settings", arguments: argparse.Namespace) -> None:
    """Denoise a zarr folder or a TIFF file, block by block."""
    source, target = Path(arguments.inputs[0]), Path(arguments.output)
    refused = {
        "--preview": arguments.preview,
        "--error": arguments.error,
        "--mask": settings.mask,
        "--sigma with a map": settings.sigma_map,
    }
    for option, given in refused.items():
        if given is not None:
            raise InputError(
                f"{option} is for images in memory, but not for zarr or work on a cluster; "
                "nlnet.dask.denoise takes masks and maps of sigma."
            )
    _check_output(target, overwrite=arguments.overwrite, source=source)
    with needs_extra("dask", *LIBRARIES):
        from nlnet.dask.out_of_core import denoise_volume
        from nlnet.dask.schedulers import Threads
        from nlnet.dask.targets import unfinished_path
    from nlnet.parallel import available_cpus

    try:
        with _silent_libraries(), progress_bar(source.name) as bar:
            if arguments.scheduler is not None:
                with on_cluster(arguments.scheduler, settings) as cluster:
                    findings = denoise_volume(source, target, cluster, bar.report)
            else:
                threads = Threads(settings, arguments.workers, available_cpus())
                findings = denoise_volume(source, target, threads, bar.report)
    except KeyboardInterrupt:
        kept = unfinished_path(target)
        if kept.exists():
            print(
                f"nlnet: the same command goes on where this one stopped, from {str(kept)!r}",
                file=sys.stderr,
            )
        raise
    for line in outcome_lines(source, target, findings, as_json=arguments.json):
        print(line)


@contextmanager
def on_cluster(address: str, settings: "Settings") -> "Iterator[Cluster]":
    """Connect to the cluster whose scheduler has that address."""
    with needs_extra("dask", *LIBRARIES):
        from nlnet.dask.schedulers import Cluster, connect
    with _silent_libraries(), connect(address) as client:
        cluster = Cluster(client, settings)
        if not cluster.has_workers:
            print("nlnet: the scheduler has no workers yet; waiting for them", file=sys.stderr)
        yield cluster


@contextmanager
def _silent_libraries() -> Iterator[None]:
    """Keep distributed and tifffile from logging what we say in one sentence."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _check_output(path: Path, *, overwrite: bool, source: Path) -> None:
    """As `check_output`, for an output that may be a folder."""
    if not is_zarr(path):
        check_output(path, overwrite=overwrite, source=source)
        return
    inside = os.path.commonpath([os.path.realpath(path), os.path.realpath(source)])
    if inside in (os.path.realpath(path), os.path.realpath(source)):
        raise FileError(
            f"The output {str(path)!r} and the input {str(source)!r} lie in each other; "
            "choose another name."
        )
    if os.path.lexists(path) and not overwrite:
        raise FileError(f"The output {str(path)!r} exists; replace it with --overwrite.")
    if path.exists() and not any((path / name).is_file() for name in ZARR_FILES):
        raise FileError(f"The output {str(path)!r} exists, but is not zarr.")
    check_folder(path.parent)
