"""Removing camera noise from coarse to fine: smaller versions of the image come first.

At half the size, the noise of neighboring pixels is less alike, and blotches are as small as grain.
There the networks for white noise remove them; what they changed is enlarged and added to the full
image, whose noise has lost its low frequencies then; the same network removes the rest. The idea is
that of M. Lebrun, M. Colom, J.-M. Morel, "The Noise Clinic: a blind image denoising algorithm",
Image Processing On Line (2015). At each scale, the noise is made even first
(`nlnet.denoising.evening`).
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from nlnet.arrays import Array, ReadRows, WriteRows
from nlnet.denoising.coarse_to_fine import Planes, corrected, halve, memory_of, scales_for
from nlnet.denoising.evening import Evening
from nlnet.denoising.network import Network
from nlnet.noise.record import Camera
from nlnet.progress import Report, part


class Place(NamedTuple):
    """Which part of an image planes are, and at which of its scales."""

    scale: int
    size: tuple[int, int]
    """Of the whole image, at this scale."""
    origin: tuple[int, int]


def scales_of(noise: Camera, shape: tuple[int, ...]) -> int:
    """Return the number of scales at which noise is removed from an image (C, H, W)."""
    channels, height, width = shape
    found = np.flatnonzero(noise.strengths[: min(channels, 2)].any(axis=(0, 2, 3)))
    return scales_for((channels, height, width), int(found.max(initial=0)) + 1)


def remove_camera_noise(
    planes: Array, write: WriteRows, noise: Camera, network: Network, report: Report
) -> None:
    """Remove camera noise from (C, H, W) planes, and write the rows of the result.

    Parameters
    ----------
    planes : (C, H, W) array
        The image, of any dtype.
    write : callable
        ``write(first, rows)`` takes rows of the result.
    noise : Camera
        How strong it is, in the units of the image.
    network : Network
        What removes white noise at one scale.
    report : callable
        Called with the share of the work done.
    """
    channels, height, width = planes.shape
    shape, scales = (channels, height, width), scales_of(noise, planes.shape)
    network = network.beside(memory_of(shape, scales), "the smaller copies", shape)

    def run(planes: Array, write: WriteRows, scale: int, report: Report) -> None:
        change: Planes | None = None
        own_share = 1.0
        if scale + 1 < scales:
            own_share = 0.75  # a quarter of the pixels takes a quarter of the rest, and so on
            half = halve(planes)
            change = np.empty_like(half)
            run(half, _writer(change), scale + 1, part(report, 0.0, 1 - own_share))
            change -= half
            del half
        place = Place(scale, (planes.shape[1], planes.shape[2]), (0, 0))
        own = part(report, 1 - own_share, own_share)
        remove_at_scale(planes, change, write, noise, place, network, own)

    run(planes, write, 0, report)


def remove_at_scale(
    planes: Array,
    change: Planes | None,
    write: WriteRows,
    noise: Camera,
    place: Place,
    network: Network,
    report: Report,
) -> None:
    """Remove the noise of one scale; `change` is what was changed at half the size."""
    read = corrected(planes, change)
    strengths = noise.strengths[: min(len(planes), 2), place.scale]
    evening = Evening.of(strengths, network.black + network.span / 2, place.size, place.origin)
    if evening is None:
        _copy(read, write, planes.shape[1])
        return
    if place.scale > 0:
        # At smaller sizes, what is left of the noise is less like white noise, on which a
        # refinement relies more than the stages do; and values may leave the box for now.
        network = dataclasses.replace(network.of_stages(), box=None)
    network.run_even(read, write, planes.shape, evening, report)


def _copy(read: ReadRows, write: WriteRows, height: int) -> None:
    band = 256  # rows at a time, so that no second copy of a large image is made
    for first in range(0, height, band):
        write(first, np.asarray(read(first, min(first + band, height)), np.float32))


def _writer(target: Planes) -> WriteRows:
    def write(first: int, rows: Array) -> None:
        target[:, first : first + rows.shape[1]] = rows

    return write
