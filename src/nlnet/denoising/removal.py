"""Removing noise of any kind: it is turned into white noise, which the network removes.

White noise is scaled to that of the training. Noise that depends on the brightness is evened out
first (`nlnet.noise.stabilisation`). Correlated noise is removed from coarse to fine
(`nlnet.denoising.coarse_to_fine`), and noise that varies over the image at several strengths
(`nlnet.denoising.sigma_map`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, Box, FloatArray, ReadRows, WriteRows
from nlnet.denoising import sigma_map as varying
from nlnet.denoising.coarse_to_fine import (
    Denoise,
    corrected,
    memory_of,
    remove_correlated,
    scales_for,
)
from nlnet.denoising.devices import CPU, denoise_on_device
from nlnet.denoising.sigma_map import SigmaMap
from nlnet.denoising.strength import Shares, blend
from nlnet.errors import InputError
from nlnet.model.model import Model
from nlnet.network.recursion import denoise_rows
from nlnet.noise.deciding import pyramid_sigmas
from nlnet.noise.record import Level, Noise
from nlnet.noise.stabilisation import Anscombe, Curve, Stabiliser
from nlnet.progress import Report


@dataclasses.dataclass(frozen=True)
class Network:
    """Which network runs, and on what.

    Parameters
    ----------
    choose : callable
        Returns the model for white noise of a standard deviation, if white is 255.
    threads, max_memory, device
        As for `nlnet.denoise`.
    """

    choose: Callable[[float], Model]
    threads: int | None
    max_memory: int | None
    device: str

    def model_for(self, sigma: float, span: float) -> Model:
        """Return the model for white noise, given with the data range in one unit."""
        return self.choose(sigma * 255 / span)

    def of_stages(self) -> Network:
        """Return the same without the refinement, if its models have one."""

        def choose(sigma: float) -> Model:
            return self.choose(sigma).without_refinement()

        return dataclasses.replace(self, choose=choose)

    def for_images(self, span: float, box: Box | None) -> Denoise:
        """Return what removes white noise from images of one data range and box."""

        def denoise(
            read: ReadRows,
            write: WriteRows,
            shape: tuple[int, int, int],
            sigma: float,
            report: Report,
        ) -> None:
            self.run(read, write, shape, sigma, span, box, report)

        return denoise

    def run(
        self,
        read: ReadRows,
        write: WriteRows,
        shape: tuple[int, int, int],
        sigma: float,
        span: float,
        box: Box | None,
        report: Report,
    ) -> None:
        """Remove white noise from rows; their values, `sigma`, `span` and `box` are in one unit."""
        model = self.model_for(sigma, span)
        # The image's noise becomes that of the training; the box is scaled with it.
        scale = model.sigma / sigma
        scaled = None if box is None else (box[0] * scale, box[1] * scale)

        def read_scaled(first: int, last: int) -> FloatArray:
            return _to_network(read(first, last), scale)

        def write_scaled(first: int, rows: FloatArray) -> None:
            write(first, rows / np.float32(scale))

        if self.device != CPU:
            noisy = read_scaled(0, shape[1])
            write_scaled(0, denoise_on_device(noisy, model, self.device, scaled, report))
            return
        denoise_rows(
            read_scaled,
            write_scaled,
            shape,
            model.config,
            [stage.astype(np.float32) for stage in model.stages],
            model.refinement,
            box=scaled,
            threads=self.threads,
            max_memory=self.max_memory,
            progress=report,
        )


def remove_noise(
    planes: Array,
    noise: Noise,
    span: float,
    box: Box | None,
    shares: Shares,
    network: Network,
    report: Report,
    change: npt.NDArray[np.float32] | None = None,
    sigma_map: SigmaMap | None = None,
) -> Array:
    """Return (C, H, W) planes without their noise, of the same dtype.

    Parameters
    ----------
    planes : (C, H, W) array
        The image, in its own dtype and units.
    noise : Noise
        What its noise is, in the same units.
    span : float
        Its data range.
    box : (low, high) or None
        Values that the result is kept in.
    shares : (luma, chroma)
        How much of the noise is removed.
    network : Network
        What removes it.
    report : callable
        Called with the share of the work done; an exception it raises stops the work.
    change : (C, H // 2, W // 2) array, optional
        What was changed already at half the size; for white noise.
    sigma_map : SigmaMap, optional
        The noise of every pixel; for white noise.
    """
    restored = np.empty_like(planes)

    def write(first: int, rows: FloatArray) -> None:
        here = slice(first, first + rows.shape[1])
        restored[:, here] = _to_dtype(blend(planes[:, here], rows, shares), restored.dtype)

    channels, height, width = planes.shape
    shape = (channels, height, width)
    if sigma_map is not None:
        _remove_varying_noise(planes, write, sigma_map, span, box, network, report)
    elif noise.kind == "white":
        read = corrected(planes, change)
        network.run(read, write, shape, noise.strength, span, box, report)
    elif noise.correlated:
        _remove_camera_noise(planes, write, noise, span, box, network, report)
    else:
        evened = [_stabiliser(level) for level in noise.levels] * (channels // len(noise.levels))

        def read_evened(first: int, last: int) -> FloatArray:
            rows = planes[:, first:last]
            return np.stack([way.forward(row) for way, row in zip(evened, rows, strict=True)])

        def write_back(first: int, rows: FloatArray) -> None:
            back = np.stack([way.inverse(row) for way, row in zip(evened, rows, strict=True)])
            write(first, back if box is None else np.clip(back, *box))

        ends = evened[0].forward(np.array([0.0, span]))
        evened_span = max(float(ends[1] - ends[0]), 1.0)
        network.run(read_evened, write_back, shape, 1.0, evened_span, None, report)
    return restored


def _remove_camera_noise(
    planes: Array,
    write: WriteRows,
    noise: Noise,
    span: float,
    box: Box | None,
    network: Network,
    report: Report,
) -> None:
    channels, height, width = planes.shape
    shape = (channels, height, width)
    sigmas = pyramid_sigmas(noise)[: scales_for(shape, len(noise.octaves))]
    network = _beside(network, memory_of(shape, len(sigmas)), "the smaller copies", shape)
    # At smaller sizes, what is left of the noise is less like white noise, on which a refinement
    # relies more than the stages do.
    whole, smaller = (each.for_images(span, box) for each in (network, network.of_stages()))
    remove_correlated(planes, write, sigmas, (whole, smaller), report)


def _remove_varying_noise(
    planes: Array,
    write: WriteRows,
    sigma_map: SigmaMap,
    span: float,
    box: Box | None,
    network: Network,
    report: Report,
) -> None:
    channels, height, width = planes.shape
    if len(sigma_map.levels) > 1:
        shape = (channels, height, width)
        taken = varying.memory_of(shape)
        network = _beside(network, taken, "the sums over several strengths", shape)
    varying.remove_varying(
        planes,
        write,
        sigma_map,
        lambda sigma: network.model_for(sigma, span).config,
        network.for_images(span, box),
        report,
    )


def _beside(network: Network, taken: int, what: str, shape: tuple[int, int, int]) -> Network:
    """Return the network, with the memory that is left beside bytes that are taken."""
    if network.max_memory is None:
        return network
    if network.max_memory <= taken:
        raise InputError(
            f"max_memory is {network.max_memory} bytes, but {what} of an image of "
            f"{shape[2]}x{shape[1]} pixels alone take {taken}."
        )
    return dataclasses.replace(network, max_memory=network.max_memory - taken)


def _stabiliser(level: Level) -> Stabiliser:
    if level.nodes:
        return Curve(*zip(*level.nodes, strict=True))
    return Anscombe(level.gain, level.offset)


def _to_network(rows: Array, scale: float) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        scaled: npt.NDArray[np.float32] = np.multiply(rows, scale, dtype=np.float32)
    if not np.isfinite(scaled).all():
        raise InputError("The image has values that are too large beside its sigma for float32.")
    return scaled


def _to_dtype(rows: FloatArray, dtype: np.dtype[Any]) -> Array:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # In float64, which holds the limits of 32-bit integers exactly.
        rows = np.clip(np.rint(rows, dtype=np.float64), limits.min, limits.max)
    return rows.astype(dtype)
