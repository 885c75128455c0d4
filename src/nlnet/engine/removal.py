"""Removing noise of any kind from an image: white, dependent on the brightness, or a camera's.

The engine turns the image into one with the white noise that networks are trained for, lets them
remove it, and turns it back (``engine/src/removal``).
"""

import ctypes
import dataclasses
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from nlnet.arrays import Array, Box, Float32Array, FloatArray, WriteRows
from nlnet.engine.jobs import Job, memory_needed, threads_for
from nlnet.engine.library import SCALES, TYPES, check_status, load
from nlnet.engine.memory import address, array_at, checked_address
from nlnet.engine.network import EngineNetwork
from nlnet.engine.noise import EngineNoise
from nlnet.engine.tasks import NO_BOX
from nlnet.progress import Progress

Elsewhere: TypeAlias = Callable[[int, Float32Array, Box | None], FloatArray]
"""``run(scale, planes, box)`` runs the network of a scale on (C, H, W) planes."""


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Which part of an image planes are, and at which of its scales.

    Parameters
    ----------
    scale : int
        0 for the full size, 1 for half of it.
    size : (H, W)
        Size of the whole image, at this scale.
    origin : (int, int)
        Where in it the part begins.
    change : (C, H // 2, W // 2) array, optional
        What was changed already in the part at half its size.
    """

    scale: int
    size: tuple[int, int]
    origin: tuple[int, int]
    change: Float32Array | None = None


class Removal:
    """What is to be removed from an image, and where the result goes.

    Parameters
    ----------
    planes : (C, H, W) array
        The image, in its own units, of a dtype of `TYPES`, aligned and of native byte order; any
        strides.
    noise : EngineNoise
        Its noise.
    strength : (luma, chroma)
        How much of it is removed, from 0 to 2 times.
    span, black : float
        What the image fills, and where that begins.
    box : (low, high) or None
        Values that the result is kept in.
    part : Part, optional
        For camera noise: which part of an image the planes are. Only the noise of one scale is
        removed then.
    """

    def __init__(
        self,
        planes: Array,
        noise: EngineNoise,
        *,
        strength: tuple[float, float] = (1.0, 1.0),
        span: float = 255.0,
        black: float = 0.0,
        box: Box | None = None,
        part: Part | None = None,
    ) -> None:
        self._planes, self._noise = planes, noise
        self._task = task = _task(noise, planes.shape)
        task.luma, task.chroma = strength
        task.span, task.black = span, black
        task.low, task.high = box or NO_BOX
        task.noisy = _pixels(planes)
        if part is not None:
            change = part.change
            half = (planes.shape[0], planes.shape[1] // 2, planes.shape[2] // 2)
            there = change is not None and checked_address("The change", change, half, np.float32)
            given = load().place(part.scale, *part.size, *part.origin, there or None)
            self._kept = given, change
            task.place = ctypes.pointer(given)

    def sigmas(self) -> list[float]:
        """Return for which white noise, on the 0-255 scale, each scale needs a network.

        The full size comes first; 0 stands for a scale without noise.
        """
        return _sigmas(self._task)

    def memory(
        self, networks: Sequence[EngineNetwork | None], threads: int | None, tile_rows: int
    ) -> int:
        """Return the bytes that :meth:`run` takes on the CPU, besides image and result."""
        self._set_machine(threads, tile_rows)
        return memory_needed("remove", _handles(networks), self._task)

    def run(
        self,
        networks: Sequence[EngineNetwork | None],
        target: Array | WriteRows,
        *,
        threads: int | None = None,
        tile_rows: int = 0,
        elsewhere: Elsewhere | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Remove the noise.

        Parameters
        ----------
        networks : sequence
            One for each of `sigmas`; None where there is no noise.
        target : array or callable
            Where the result goes, an array like the image; or ``write(first, rows)``, which takes
            rows of floats that it must copy to keep.
        threads : int, optional
            Number of threads; by default all CPUs the process may use.
        tile_rows : int
            Height of tiles; 0 for the engine's choice.
        elsewhere : callable, optional
            Runs the networks, in place of the engine.
        progress : callable, optional
            Called with the share of the work done; an exception it raises stops the work.

        Raises
        ------
        InputError
            If the image has values that are too large beside its noise, or is too small.
        """
        task, kept = self._task, [self, networks, target]
        failures: list[BaseException] = []
        self._set_machine(threads if elsewhere is None else 1, tile_rows)
        if callable(target):
            task.denoised = load().pixels(TYPES[np.dtype(np.float32)])
            task.denoised.rows.rows = writer = _writing(target, self._planes.shape, failures)
            kept.append(writer)
        else:
            task.denoised = _pixels(target)
        if elsewhere is not None:
            task.elsewhere = _running(elsewhere, task.channels, failures)
        job = Job("remove", _handles(networks), task, kept, failures=failures)
        job.run(task.threads, progress)

    def _set_machine(self, threads: int | None, tile_rows: int) -> None:
        pixels = int(self._task.height * self._task.width)
        self._task.threads = threads_for(pixels, threads)
        self._task.tile_rows = tile_rows


def _handles(networks: Sequence[EngineNetwork | None]) -> Any:
    """Return networks as the engine takes them."""
    handles = (None if each is None else each.handle.value for each in networks)
    return (ctypes.c_void_p * SCALES)(*handles)


def scales_of(noise: EngineNoise, shape: tuple[int, ...]) -> int:
    """Return the number of scales at which noise is removed from an image (C, H, W)."""
    return len(_sigmas(_task(noise, shape)))


def _task(noise: EngineNoise, shape: tuple[int, ...]) -> Any:
    """Return a task for an image that fills 0 to 1, to remove all of its noise."""
    task = load().removal_task(shape[1], shape[2], shape[0], noise=noise.structure)
    task.luma = task.chroma = task.span = 1.0
    return task


def _sigmas(task: Any) -> list[float]:
    scales, sigmas = ctypes.c_int32(), (ctypes.c_double * SCALES)()
    given = ctypes.byref(task), ctypes.byref(scales), sigmas
    check_status(load().removal_sigmas(*given))
    return list(sigmas[: scales.value])


def _pixels(planes: Array) -> Any:
    """Return (C, H, W) planes as the engine takes them."""
    rows = load().rows(address(planes), *planes.strides)
    return load().pixels(TYPES[planes.dtype], rows)


def _writing(write: WriteRows, shape: tuple[int, ...], failures: list[BaseException]) -> Any:
    """Return what the engine calls with rows of its memory, (C, rows, W)."""
    turn = threading.Lock()

    def take(_: object, first: int, count: int, where: int) -> None:
        with turn:
            write(first, array_at(where, (shape[0], count, shape[2])))

    return dict(load().rows._fields_)["rows"](_told(take, failures))


def _running(elsewhere: Elsewhere, channels: int, failures: list[BaseException]) -> Any:
    def run(
        _: object, scale: int, height: int, width: int, noisy: int, clean: int, *box: float
    ) -> None:
        shape, limits = (channels, height, width), (box[0], box[1])
        found = elsewhere(scale, array_at(noisy, shape), limits if box[0] <= box[1] else None)
        array_at(clean, shape)[:] = found

    return load().elsewhere(_told(run, failures))


def _told(function: Callable[..., None], failures: list[BaseException]) -> Callable[..., int]:
    """Return a callback that tells the engine whether it failed, and keeps the exception."""

    def call(*given: Any) -> int:
        try:
            function(*given)
        except BaseException as error:
            failures.append(error)
            return 1
        return 0

    return call
