"""Removing noise of any kind: it is turned into white noise, which the network removes.

White noise is scaled to that of the training. Noise that depends on the brightness is evened out
first (`nlnet.noise.stabilisation`). Camera noise is removed from coarse to fine
(`nlnet.denoising.camera`), and noise that varies over the image at several strengths
(`nlnet.denoising.sigma_map`).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, FloatArray, WriteRows
from nlnet.denoising.camera import Place, remove_at_scale, remove_camera_noise
from nlnet.denoising.network import Network
from nlnet.denoising.plan import SURE, Plan
from nlnet.denoising.sigma_map import SigmaMap, remove_varying
from nlnet.denoising.strength import Shares, blend
from nlnet.noise.record import Camera, Noise
from nlnet.noise.stabilisation import stabiliser
from nlnet.progress import Report


def denoise_planes(
    planes: Array,
    plan: Plan,
    shares: Shares,
    network: Network,
    report: Report,
    *,
    change: npt.NDArray[np.float32] | None = None,
    place: Place | None = None,
    sigma_map: SigmaMap | None = None,
    unblended: npt.NDArray[np.float32] | None = None,
) -> tuple[Array, tuple[str, ...]]:
    """Return (C, H, W) planes without their noise, of the same dtype, and the models that ran.

    Nothing is checked: that is done where users' values come in.

    Parameters
    ----------
    planes : (C, H, W) array
        The image, in its own dtype and units.
    plan : Plan
        What to do, in the same units.
    shares : (luma, chroma)
        How much of the noise is removed.
    network : Network
        What removes it.
    report : callable
        Called with the share of the work done; an exception it raises stops the work.
    change, place : optional
        For camera noise of a part of an image, at one scale: what was changed already at half the
        size, (C, H // 2, W // 2), and which part it is.
    sigma_map : SigmaMap, optional
        The noise of every pixel; for white noise.
    unblended : (C, H, W) array, optional
        Takes the result before it is blended and rounded, unless the plan is idle.
    """
    if plan.idle:
        report(1.0)
        return planes.copy(), ()
    restored = np.empty_like(planes)
    used = shares if place is not None and place.scale > 0 else used_shares(shares, plan.noise)

    def write(first: int, rows: FloatArray) -> None:
        here = slice(first, first + rows.shape[1])
        if unblended is not None:
            unblended[:, here] = rows
        restored[:, here] = to_dtype(blend(planes[:, here], rows, used), restored.dtype)

    network = dataclasses.replace(network, span=plan.span, black=plan.black, box=plan.box, ran={})
    noise, factors = plan.noise, (max(shares[0], 1.0), max(shares[1], 1.0))
    if isinstance(noise, Camera) and sigma_map is None:
        noise = noise.times(factors)
        if place is None:
            remove_camera_noise(planes, write, noise, network, report)
        else:
            remove_at_scale(planes, change, write, noise, place, network, report)
        return restored, tuple(network.ran)
    network = dataclasses.replace(network, factors=factors)
    if sigma_map is not None:
        remove_varying(planes, write, sigma_map, network, report)
    elif noise.sigma is not None:
        network.run(lambda a, b: planes[:, a:b], write, planes.shape, noise.sigma, report)
    else:
        _remove_dependent_noise(planes, write, noise, network, report)
    return restored, tuple(network.ran)


def _remove_dependent_noise(
    planes: Array,
    write: WriteRows,
    noise: Noise,
    network: Network,
    report: Report,
) -> None:
    evened = [stabiliser(level) for level in noise.levels] * (len(planes) // len(noise.levels))
    box = network.box

    def read_evened(first: int, last: int) -> FloatArray:
        rows = planes[:, first:last]
        return np.stack([way.forward(row) for way, row in zip(evened, rows, strict=True)])

    def write_back(first: int, rows: FloatArray) -> None:
        back = np.stack([way.inverse(row) for way, row in zip(evened, rows, strict=True)])
        write(first, back if box is None else np.clip(back, *box))

    unlimited = dataclasses.replace(network, box=None)
    unlimited.run(read_evened, write_back, planes.shape, 1.0, report)


def used_shares(shares: Shares, noise: Noise) -> Shares:
    """Return the shares of what networks remove that are taken from the image, up to 1.

    What may be texture is removed by the share that is probably noise: the least expected error.
    """
    sure = min(noise.certainty / SURE, 1.0) if isinstance(noise, Camera) else 1.0
    return min(shares[0], 1.0) * sure, min(shares[1], 1.0) * sure


def to_dtype(rows: FloatArray, dtype: np.dtype[Any]) -> Array:
    """Return values of a dtype: integers are rounded, and kept in its range."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # In float64, which holds the limits of 32-bit integers exactly.
        rows = np.clip(np.rint(rows, dtype=np.float64), limits.min, limits.max)
    return rows.astype(dtype)
