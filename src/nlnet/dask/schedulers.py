"""Where the work is done: in threads of this process, or on a Dask cluster."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from dask.base import compute
from dask.callbacks import Callback
from distributed import Client, Future, KilledWorker, as_completed

from nlnet.errors import InputError, NLNetError
from nlnet.files.claims import remove_leftovers
from nlnet.files.many_files import FileReport, work_on
from nlnet.files.plan import FileJob
from nlnet.files.settings import Settings
from nlnet.progress import Progress, ignore

_ADDRESS = re.compile(
    r"((tcp|tls|ucx|wss?)://)?(\[[\da-f:.%]+\]|[^\s:/\[\]]+):\d{1,5}/?|inproc://\S+", re.IGNORECASE
)
TIMEOUT = 10.0
"""Seconds to wait for a scheduler to answer."""


class Threads:
    """Some blocks at a time in threads of this process, which share its CPUs and memory.

    `settings` are those of one task: how to denoise a block, with which threads and memory.
    """

    def __init__(self, settings: Settings, blocks: int, cpus: int) -> None:
        self._blocks = blocks
        memory = settings.max_memory
        self.settings = dataclasses.replace(
            settings,
            threads=settings.threads or max(1, cpus // blocks),
            max_memory=None if memory is None else max(1, memory // blocks),
        )

    def compute(self, parts: Sequence[Any], progress: Progress = ignore) -> list[Any]:
        """Return the parts' results; report the share of them that is done."""
        wanted = {part.key for part in parts}
        done = 0

        def count(key: object, *_: object) -> None:
            nonlocal done
            if key in wanted:
                done += 1
                progress(done / len(parts))

        # A separate pool, so that leaving the block waits for tasks that still run after an error.
        with concurrent.futures.ThreadPoolExecutor(self._blocks) as pool, Callback(posttask=count):
            return list(compute(*parts, scheduler="threads", pool=pool))


class Cluster:
    """The workers of a Dask cluster; each task uses one thread unless the settings say more."""

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self.settings = dataclasses.replace(settings, threads=settings.threads or 1)

    @property
    def has_workers(self) -> bool:
        """Whether there is anybody to do the work; some clusters start them when asked."""
        return bool(self._client.nthreads())

    def compute(self, parts: Sequence[Any], progress: Progress = ignore) -> list[Any]:
        """Return the parts' results; report the share of them that is done."""
        with _in_a_sentence():
            futures = self._client.compute(list(parts))
            for done, _ in enumerate(_finished(self._client, futures), start=1):
                progress(done / len(parts))
            return [future.result() for future in futures]

    def run_jobs(
        self, jobs: Sequence[FileJob], *, progress: Progress = ignore
    ) -> Iterator[FileReport]:
        """Work on files, one per task, and yield a report on each as soon as it is done.

        The files' names must be absolute, and mean the same everywhere in the cluster.

        Raises
        ------
        FileError
            If the disk is full or cannot be written: every further file would fail as well.
        NLNetError
            If the cluster fails.
        """
        for folder in {job.target.parent for job in jobs}:
            remove_leftovers(folder)
        with _in_a_sentence():
            work = functools.partial(work_on, settings=self.settings, progress=ignore)
            futures = self._client.map(work, jobs, pure=False, batch_size=100)
            for done, future in enumerate(_finished(self._client, futures), start=1):
                progress(done)
                yield future.result()


Scheduler: TypeAlias = Threads | Cluster
"""Who computes lazy parts, and returns their results in order."""


@contextmanager
def connect(address: str) -> Iterator[Client]:
    """Connect to the scheduler at an address, such as ``tcp://10.0.0.1:8786``.

    A scheduler file, which `dask scheduler --scheduler-file` writes, is an address as well.

    Raises
    ------
    InputError
        If it cannot be reached.
    """
    where = _read_scheduler_file(Path(address)) if Path(address).is_file() else address
    # What has no form of an address would leave a half-made client behind, and its traceback.
    if not _ADDRESS.fullmatch(where):
        raise InputError(
            f"The scheduler {where!r} is neither an address, such as tcp://10.0.0.1:8786, nor a "
            "scheduler file that exists."
        )
    try:
        client = Client(where, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"The scheduler {address!r} cannot be reached within {TIMEOUT:g} seconds; it must be "
            "the address of a running Dask scheduler, such as tcp://10.0.0.1:8786, or its file."
        ) from error
    try:
        yield client
    finally:
        client.close(timeout=TIMEOUT)


def _read_scheduler_file(path: Path) -> str:
    """Return the address in a file that a scheduler wrote."""
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        told = None
    if not isinstance(told, dict) or not isinstance(told.get("address"), str):
        raise InputError(f"{str(path)!r} is not the file of a Dask scheduler.")
    return str(told["address"])


def _finished(client: Client, futures: list[Future[Any]]) -> Iterator[Future[Any]]:
    """Yield the futures as they finish; the rest is cancelled on the way out."""
    try:
        for future in as_completed(futures, loop=client.loop):
            if future.status == "error":
                future.result()  # raises
            yield future
    finally:
        client.cancel([future for future in futures if not future.done()])


@contextmanager
def _in_a_sentence() -> Iterator[None]:
    """Turn what goes wrong in a cluster, rather than with an image, into a sentence."""
    try:
        yield
    except NLNetError:
        raise
    except KilledWorker as error:
        raise NLNetError(
            "A part of the work was given up after several workers died of it; "
            "give them more memory, or use --max-memory for smaller blocks."
        ) from error
    except MemoryError as error:
        raise NLNetError("A worker has too little memory; use --max-memory.") from error
    except ModuleNotFoundError as error:
        raise InputError(
            f"The cluster lacks {error.name}; its scheduler and workers need the same nlnet as "
            "here: pip install 'nlnet[dask]'."
        ) from error
    except (concurrent.futures.CancelledError, OSError) as error:
        raise NLNetError(
            "The connection to the scheduler was lost; is it still running?"
        ) from error
    except RuntimeError as error:
        if "deserialization" not in str(error):
            raise
        raise InputError(
            "The cluster's scheduler cannot read the task graph; scheduler and workers need the "
            "same Python, dask and nlnet as here."
        ) from error
