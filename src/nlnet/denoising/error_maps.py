"""How sure a denoised pixel is: the standard deviation of its error.

Two energies tell how difficult a place is, at the full size and three halvings of it: that of what
was removed, and that of the gradients of the result, both in units of the noise. How strong the
noise is at the place counts, too, and how many photons it has. A small network of dense layers
turns the logarithms of all into that of the error, at half the size. It was trained on the errors
that shipped models make on open photos (``scripts/error_head.py``), so that 68 % of all errors are
within what it says.
"""

import functools
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.denoising.network import Network
from nlnet.denoising.page import blend, used_shares
from nlnet.denoising.plan import Plan
from nlnet.denoising.sigma_map import SigmaMap
from nlnet.engine.planes import enlarge, halve, widen
from nlnet.inputs import Shares
from nlnet.noise.camera import Camera
from nlnet.noise.levels import Level
from nlnet.noise.record import Noise, Photon
from nlnet.parallel import available_cpus, single_threaded_blas

Maps = npt.NDArray[np.float32]

SCALES = 4
_UNIT = 1 << SCALES
"""Rows and columns are a multiple of this, so that they can be halved."""

_BAND, _HALO = 256, 2 * _UNIT
"""Rows that are looked at together, and those around them that matter."""

_LEAST_ENERGY = 1e-3
_PHOTONS = -0.7, 4.0
"""Limits of the logarithm of the noise in photons: beyond, photon noise is like other noise."""

_LEAST, _MOST = -4.5, 1.5
"""Limits of the logarithm of the error, in units of the noise."""


def error_map(
    planes: Array,
    restored: Maps,
    plan: Plan,
    sigma_map: SigmaMap | None,
    network: Network,
) -> Maps:
    """Return the standard deviation of the error of every value, (C, H, W).

    Parameters
    ----------
    planes, restored : (C, H, W) arrays
        The noisy image, and what the networks made of it, before it is blended or rounded.
    plan, sigma_map, network
        As for `nlnet.denoising.page.denoise_planes`.
    """
    sigmas = sigmas_of(plan.noise, restored, sigma_map)
    rounding = np.float32(1 / 12 if planes.dtype.kind in "iu" else 0.0)
    if plan.idle:
        return np.asarray(np.sqrt(np.square(sigmas) + rounding))
    errors, refined = np.empty_like(restored), network.is_refined
    height = restored.shape[1]

    def fill(first: int) -> None:
        top, last = max(first - _HALO, 0), min(first + _BAND, height)
        seen = slice(top, min(last + _HALO, height))
        looked_at = planes[:, seen], restored[:, seen], sigmas[:, seen]
        logs = _head(features(*looked_at, plan, refined=refined))
        rows = enlarge(logs, first - top, last - top, restored.shape[2])
        errors[:, first:last] = np.exp(rows) * sigmas[:, first:last]

    with single_threaded_blas, ThreadPoolExecutor(network.threads or available_cpus()) as pool:
        list(pool.map(fill, range(0, height, _BAND)))
    shares = used_shares(network, plan.noise)
    if min(shares) < 1:
        # What is left of the removed noise is nearly independent of the error.
        left = np.maximum(np.square(sigmas) - np.square(errors), 0)
        errors = np.sqrt(np.square(errors) + _kept(left, shares))
    return np.sqrt(np.square(errors) + rounding) if rounding else errors


def features(planes: Array, restored: Maps, sigmas: Maps, plan: Plan, *, refined: bool) -> Maps:
    """Return what the error is read from, (features, C, h, w), at half the size, rounded up."""
    channels, height, width = restored.shape
    sides = [(0, -side % _UNIT) for side in (height, width)]
    result = np.pad(restored, [(0, 0), *sides], mode="symmetric")
    removed = np.pad(planes, [(0, 0), *sides], mode="symmetric") - result
    powers = np.square(np.pad(sigmas, [(0, 0), *sides], mode="symmetric"))
    weights = np.reciprocal(powers)
    found = []
    for scale in range(SCALES):
        energies = np.square(removed) * weights * 4**scale, _gradients(result) * weights
        for number, energy in enumerate(energies):
            part = energy if scale else halve(energy)
            part = part if number else _blurred(part)
            for _ in range(scale - 1):
                part = enlarge(part, 0, 2 * part.shape[1], 2 * part.shape[2])
            found.append(np.log(part + np.float32(_LEAST_ENERGY)))
        result, removed, weights = halve(result), halve(removed), halve(weights)
    noise = plan.noise
    local = halve(np.sqrt(powers))
    found.append(np.log(local / np.float32(plan.span)))
    gain = noise.levels[0].gain if isinstance(noise, Photon) else 0.0
    few, many = _PHOTONS
    light = local / np.float32(gain) if gain else np.full_like(local, math.exp(many))
    found.append(np.clip(np.log(np.maximum(light, math.exp(few))), few, many))
    greens_and_blues = np.eye(3, dtype=np.float32)[1:, :channels, np.newaxis, np.newaxis]
    maps = np.stack([*found, *np.broadcast_to(greens_and_blues, (2, *local.shape))])
    sigma = 1.0 if noise.sigma is None else plan.average  # once it is even
    known = [channels == 3, refined, math.log(sigma / plan.span), gain > 0, 0.0, 1.0, 0.0, 0.0]
    if isinstance(noise, Camera):
        known[4:] = 1.0, noise.certainty, *np.log(np.maximum(noise.octaves[1:], 0.1))
    everywhere = np.reshape(np.array(known, np.float32), (-1, 1, 1, 1))
    everywhere = np.broadcast_to(everywhere, (len(known), *maps.shape[1:]))
    return np.concatenate([maps, everywhere])[:, :, : -(-height // 2), : -(-width // 2)]


def _head(found: Maps) -> Maps:
    """Return the logarithm of the error in units of the noise, (C, h, w)."""
    layers = _shipped_head()
    values = found.reshape(len(found), -1)
    for number, (weights, biases) in enumerate(layers):
        values = weights @ values + biases[:, np.newaxis]
        if number < len(layers) - 1:
            np.maximum(values, 0, out=values)
    return np.clip(values.reshape(found.shape[1:]), _LEAST, _MOST)


@functools.cache
def _shipped_head() -> tuple[tuple[Maps, Maps], ...]:
    from safetensors.numpy import load_file

    tensors = load_file(Path(__file__).with_name("error_head.safetensors"))
    return tuple((tensors[f"{n}.weights"], tensors[f"{n}.biases"]) for n in range(3))


def sigmas_of(noise: Noise, restored: Maps, sigma_map: SigmaMap | None) -> Maps:
    """Return the standard deviation of the noise of every value."""
    if sigma_map is not None:
        sigmas: Array = sigma_map.values
    elif isinstance(noise, Camera):
        # Strengths of luma and chroma are alike for white noise.
        powers = np.square(noise.strengths[:, 0])
        power = powers[0] if len(restored) == 1 else (powers[0] + 2 * powers[1]) / 3
        size = restored.shape[1], restored.shape[2]
        power = np.maximum(power, 0.01 * power.mean())
        sigmas = np.sqrt(widen(power, size))
    else:
        levels = noise.levels * (len(restored) // len(noise.levels))
        sigmas = np.stack(
            [
                # A pixel without photons is not without noise.
                np.maximum(level.sigma(plane), level.gain * 0.6)
                if isinstance(level, Level)
                else level.sigma(plane)
                for level, plane in zip(levels, restored, strict=True)
            ]
        )
    return np.broadcast_to(np.asarray(sigmas, np.float32), restored.shape)


def _gradients(planes: Maps) -> Maps:
    down = np.diff(planes, axis=1, append=planes[:, -1:])
    across = np.diff(planes, axis=2, append=planes[:, :, -1:])
    return np.asarray(np.square(down) + np.square(across))


def _blurred(planes: Maps) -> Maps:
    """Return planes after an average with the values around, by 1/4, 1/2 and 1/4 each way."""
    wide = np.pad(planes, ((0, 0), (1, 1), (1, 1)), mode="edge")
    wide = wide[:, 2:] + 2 * wide[:, 1:-1] + wide[:, :-2]
    return np.asarray((wide[:, :, 2:] + 2 * wide[:, :, 1:-1] + wide[:, :, :-2]) / 16)


def _kept(powers: Maps, shares: Shares) -> Maps:
    """Return the power that is left of removed noise, (C, H, W), where it is not all taken."""
    units = np.eye(len(powers), dtype=np.float32)[:, :, np.newaxis]
    matrix = blend(units, np.zeros_like(units), shares)[..., 0]
    return np.asarray(np.tensordot(np.square(matrix).T, powers, 1), np.float32)
