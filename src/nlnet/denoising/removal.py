"""Removing noise of any kind from planes: what the plan of a page says is done.

The engine removes white noise, noise that depends on the brightness, and camera noise
(`nlnet.engine.removal`). Noise that varies from pixel to pixel is removed at several strengths
(`nlnet.denoising.sigma_map`).
"""

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, FloatArray
from nlnet.denoising.network import Network
from nlnet.denoising.plan import Plan
from nlnet.denoising.sigma_map import SigmaMap, remove_varying
from nlnet.engine import planes
from nlnet.engine.removal import Part
from nlnet.inputs import Shares
from nlnet.noise.record import Noise
from nlnet.noise.stabilisation import engine_noise
from nlnet.progress import Report


def denoise_planes(
    planes: Array,
    plan: Plan,
    network: Network,
    report: Report,
    *,
    part: Part | None = None,
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
    network : Network
        What removes it, and how much of it.
    report : callable
        Called with the share of the work done; an exception it raises stops the work.
    part : Part, optional
        For camera noise of a part of an image, at one scale: which part it is.
    sigma_map : SigmaMap, optional
        The noise of every pixel; for white noise.
    unblended : (C, H, W) array, optional
        Takes the result before it is blended and rounded, unless the plan is idle.
    """
    if plan.idle:
        report(1.0)
        return planes.copy(), ()
    restored = np.empty_like(planes)
    network = dataclasses.replace(network, span=plan.span, black=plan.black, box=plan.box)
    if sigma_map is None and unblended is None:
        return restored, network.remove(planes, plan.noise, restored, report, part)
    used = used_shares(network, plan.noise)

    def write(first: int, rows: FloatArray) -> None:
        here = slice(first, first + rows.shape[1])
        if unblended is not None:
            unblended[:, here] = rows
        restored[:, here] = to_dtype(blend(planes[:, here], rows, used), restored.dtype)

    # More noise than there is may be removed, but nothing is blended yet.
    network = network.unblended()
    if sigma_map is not None:
        return restored, remove_varying(planes, write, sigma_map, network, report)
    sure = dataclasses.replace(plan.noise, certainty=1.0)
    return restored, network.remove(planes, sure, write, report, part)


def used_shares(network: Network, noise: Noise) -> Shares:
    """Return the shares of what networks remove that are taken from the image, up to 1."""
    return engine_noise(noise).shares(network.strength)


def to_dtype(rows: FloatArray, dtype: np.dtype[Any]) -> Array:
    """Return values of a dtype: integers are rounded, and kept in its range."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        # In float64, which holds the limits of 32-bit integers exactly.
        rows = np.clip(np.rint(rows, dtype=np.float64), limits.min, limits.max)
    return rows.astype(dtype)


def blend(noisy: Array, denoised: FloatArray, shares: Shares) -> FloatArray:
    """Return (C, H, W) planes between the noisy and the denoised ones.

    Examples
    --------
    >>> noisy, denoised = np.full((1, 1, 1), 100.0), np.full((1, 1, 1), 104.0)
    >>> blend(noisy, denoised, (0.25, 0.25)).item()
    101.0
    """
    luma, chroma = (min(share, 1.0) for share in shares)
    return denoised if luma == chroma == 1 else planes.blend(noisy, denoised, (luma, chroma))
