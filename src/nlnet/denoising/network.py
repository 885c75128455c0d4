"""The network as denoising uses it: chosen by the noise, and run on rows in an image's units."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, Box, FloatArray, ReadRows, WriteRows
from nlnet.denoising.devices import CPU, denoise_on_device
from nlnet.denoising.evening import Evening
from nlnet.errors import InputError
from nlnet.model.loading import ModelLike, choose_model
from nlnet.model.model import Model
from nlnet.network.recursion import denoise_rows
from nlnet.progress import Report


@dataclasses.dataclass(frozen=True)
class Network:
    """Which network runs, and on what.

    Parameters
    ----------
    choose : callable
        Returns the model for white noise of a standard deviation, if the image fills 0 to 255.
    threads, max_memory, device
        As for `nlnet.denoise`.
    span, black : float
        What the image fills, and where that begins: a refinement, other than the stages, expects
        values from 0 to 255.
    box : (low, high) or None
        Values that the result is kept in.
    factors : (luma, chroma)
        How many times more noise is removed than there is.
    ran : dict
        The names of the models that have run, in the order of their first run.
    """

    choose: Callable[[float], Model]
    threads: int | None = None
    max_memory: int | None = None
    device: str = CPU
    span: float = 255.0
    black: float = 0.0
    box: Box | None = None
    factors: tuple[float, float] = (1.0, 1.0)
    ran: dict[str, None] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: ModelLike,
        channels: int,
        quality: str | None,
        threads: int | None,
        max_memory: int | None,
        device: str,
    ) -> Network:
        """Return what runs the model that a user asks for; parameters as for `nlnet.denoise`."""
        return cls(
            lambda sigma: choose_model(model, channels, sigma, quality), threads, max_memory, device
        )

    def model_for(self, sigma: float) -> Model:
        """Return the model for white noise of the image."""
        return self.choose(sigma * 255 / self.span)

    def of_stages(self) -> Network:
        """Return the same without the refinement, if its models have one."""
        return dataclasses.replace(
            self, choose=lambda sigma: self.choose(sigma).without_refinement()
        )

    def beside(self, taken: int, what: str, shape: tuple[int, ...]) -> Network:
        """Return the network with the memory that is left beside bytes that are taken."""
        if self.max_memory is None:
            return self
        if self.max_memory <= taken:
            raise InputError(
                f"max_memory is {self.max_memory} bytes, but {what} of an image of "
                f"{shape[2]}x{shape[1]} pixels alone take {taken}."
            )
        return dataclasses.replace(self, max_memory=self.max_memory - taken)

    def run(
        self,
        read: ReadRows,
        write: WriteRows,
        shape: tuple[int, ...],
        sigma: float,
        report: Report,
    ) -> None:
        """Remove white noise from rows; their values and `sigma` are in the unit of the span."""
        luma, chroma = (sigma * factor for factor in self.factors)
        if luma == chroma or shape[0] == 1:
            self._run(read, write, shape, luma, report)
            return
        strengths = np.array([luma, chroma], np.float32).reshape(2, 1, 1)
        evening = Evening.of(strengths, self.black + self.span / 2, (shape[1], shape[2]))
        assert evening is not None
        self.run_even(read, write, shape, evening, report)

    def run_even(
        self,
        read: ReadRows,
        write: WriteRows,
        shape: tuple[int, ...],
        evening: Evening,
        report: Report,
    ) -> None:
        """Remove noise that is made even first."""
        box = self.box

        def read_even(first: int, last: int) -> Array:
            return evening.even(np.asarray(read(first, last), np.float32), first)

        def write_back(first: int, rows: Array) -> None:
            noisy = rows
            if evening.shares is not None:
                noisy = np.asarray(read(first, first + rows.shape[1]), np.float32)
            restored = evening.restore(rows, noisy, first)
            write(first, restored if box is None else np.clip(restored, *box))

        # A network that sees values at another scale has no box.
        unlimited = dataclasses.replace(self, box=None)
        unlimited._run(read_even, write_back, shape, evening.reference, report)

    def _run(
        self,
        read: ReadRows,
        write: WriteRows,
        shape: tuple[int, ...],
        sigma: float,
        report: Report,
    ) -> None:
        model = self.model_for(sigma)
        self.ran[model.name] = None
        # The image's noise becomes that of the training; the box is scaled with it.
        scale = model.sigma / sigma
        # The stages do not depend on where values begin; a refinement does.
        black = 0.0 if model.refinement is None else self.black * scale
        scaled = self.box and (self.box[0] * scale - black, self.box[1] * scale - black)

        def read_scaled(first: int, last: int) -> FloatArray:
            return _to_network(read(first, last), scale, black)

        def write_scaled(first: int, rows: FloatArray) -> None:
            restored = (rows + np.float32(black)) / np.float32(scale)
            write(first, restored if self.box is None else np.clip(restored, *self.box))

        if self.device != CPU:
            noisy = read_scaled(0, shape[1])
            write_scaled(0, denoise_on_device(noisy, model, self.device, scaled, report))
            return
        channels, height, width = shape
        denoise_rows(
            read_scaled,
            write_scaled,
            (channels, height, width),
            model.config,
            [stage.astype(np.float32) for stage in model.stages],
            model.refinement,
            box=scaled,
            threads=self.threads,
            max_memory=self.max_memory,
            progress=report,
        )


def _to_network(rows: Array, scale: float, black: float) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        scaled = np.multiply(rows, scale, dtype=np.float32) - np.float32(black)
    if not np.isfinite(scaled).all():
        raise InputError("The image has values that are too large beside its sigma for float32.")
    return scaled
