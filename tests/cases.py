"""Random networks, images and groups, and the yardsticks that several proofs share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from nlnet.engine import tasks
from nlnet.engine.jobs import Job, threads_for
from nlnet.engine.library import load
from nlnet.engine.memory import address
from nlnet.engine.network import EngineNetwork
from nlnet.engine.tasks import NO_BOX
from nlnet.network import color
from nlnet.network.block import make_network, prepare
from nlnet.network.config import BOX, NetworkConfig
from nlnet.network.matching import check_size, find_groups
from nlnet.network.parameters import (
    StageParameters,
    dct_basis,
    normalize_rows,
    odd_from_half,
)
from nlnet.network.potentials import cubic_basis, table_intervals, table_step

TILE_COLUMNS = 64
"""Columns of a stage's tiles; those of matching have twice as many."""

SMALL = NetworkConfig(stages=2, patch_size=3, group_size=3, window=5, rbf_count=11, odd=False)
"""Few filters and wide Gaussians: central differences of every entry take seconds."""


def filters_from_mix(mix: np.ndarray) -> np.ndarray:
    """Filters that are mixtures of DCT atoms: zero mean and unit norm, whatever the mix."""
    return normalize_rows(mix) @ dct_basis(math.isqrt(len(mix) + 1))


def random_stages(config: NetworkConfig, seed: int = 0) -> tuple[StageParameters, ...]:
    """Stages as no training would leave them: every entry matters, nothing is symmetric."""
    rng = np.random.default_rng(seed)
    count, members = config.filter_count, config.group_size
    stages = []
    for number in range(config.stages):
        free = rng.standard_normal((config.channels, count, config.free_coefficients))
        weights = rng.standard_normal(members)
        stages.append(
            StageParameters(
                filters_from_mix(rng.standard_normal((count, count))),
                weights / np.linalg.norm(weights),
                odd_from_half(free, config.rbf_count) if config.odd else free,
                0.1 + 0.2 * number,
            )
        )
    return tuple(stages)


def noise(*shape: int, std: float = 25.0, seed: int = 1) -> np.ndarray:
    """A noisy gray area on the 0-255 scale."""
    return 128 + std * np.random.default_rng(seed).standard_normal(shape)


def few_levels(*shape: int, levels: int = 4, seed: int = 1) -> np.ndarray:
    """Integers, of which every sum of squares is exact in float32; few of them, for many ties."""
    return np.random.default_rng(seed).integers(0, levels, shape).astype(np.float32)


def random_groups(shape: tuple[int, ...], config: NetworkConfig, seed: int = 2) -> np.ndarray:
    """Groups, (*shape, K, 2), with any patches of the window, equal ones too."""
    rng = np.random.default_rng(seed)
    radius = config.window // 2
    size = (*shape, config.group_size)
    axes = []
    for length, place in zip(shape[-2:], np.indices(shape)[-2:, ..., None], strict=True):
        low, high = np.maximum(place - radius, 0), np.minimum(place + radius, length - 1)
        axes.append(rng.integers(low, high + 1, size) - place)
    return np.stack(axes, axis=-1).astype(np.int8)


def brute_force(image: np.ndarray, config: NetworkConfig) -> np.ndarray:
    """Block matching by sorting all distances: `slow.match`, an offset at a time."""
    (height, width), size, radius = image.shape, config.patch_size, config.window // 2
    padded = np.pad(image.astype(np.float64), size // 2, mode="symmetric")
    span = range(-radius, radius + 1)
    offsets = sorted(((dy, dx) for dy in span for dx in span), key=lambda o: o[0] ** 2 + o[1] ** 2)
    distances = np.full((height, width, len(offsets)), np.inf)
    for number, (dy, dx) in enumerate(offsets):
        if abs(dy) < height and abs(dx) < width:
            squares = (
                padded[_overlap(dy, len(padded)), _overlap(dx, len(padded[0]))]
                - padded[_overlap(-dy, len(padded)), _overlap(-dx, len(padded[0]))]
            ) ** 2
            rows, columns = _overlap(dy, height), _overlap(dx, width)
            distances[rows, columns, number] = _sums(_sums(squares, size).T, size).T
    ranks = np.argsort(distances, axis=2, kind="stable")[:, :, : config.group_size]
    return np.array(offsets)[ranks]


def _sums(values: np.ndarray, size: int) -> np.ndarray:
    """Sums of `size` rows that follow each other."""
    count = len(values) - size + 1
    total = values[:count].copy()
    for start in range(1, size):
        total += values[start : start + count]
    return total


def _overlap(shift: int, length: int) -> slice:
    """Places of a line whose neighbour at `shift` is on it too."""
    return slice(max(0, -shift), length - max(0, shift))


def central_differences(
    function: Callable[[np.ndarray], float], at: np.ndarray, step: float
) -> np.ndarray:
    """Gradient of a scalar function, entry by entry."""
    gradient = np.empty(at.shape)
    for entry in np.ndindex(at.shape):
        ahead, behind = at.copy(), at.copy()
        ahead[entry] += step
        behind[entry] -= step
        gradient[entry] = (function(ahead) - function(behind)) / (2 * step)
    return gradient


def assert_close(actual: object, wanted: object, relative: float) -> None:
    """No entry is further off than `relative` times the largest."""
    scale = np.max(np.abs(np.asarray(wanted)))
    assert scale > 0
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=relative * scale)


def denoise_planes(
    noisy: np.ndarray, config: NetworkConfig, stages, refinement=None, **options
) -> np.ndarray:
    """One image in memory, (C, H, W) on the 0-255 scale, through all stages."""
    check_size(*noisy.shape[1:], config)
    stages = [stage.astype(noisy.dtype) for stage in stages]
    return sweep(prepare(config, stages, refinement), noisy, **options)


def sweep(
    network: EngineNetwork, noisy: np.ndarray, *, box=BOX, threads=None, tile_rows=0, progress=None
) -> np.ndarray:
    """One image in memory, (C, H, W), through the engine's ``nlnet_denoise``."""
    denoised, engine = np.full(noisy.shape, np.nan, noisy.dtype), load()
    rows = [engine.rows(address(each), *each.strides) for each in (noisy, denoised)]
    threads = threads_for(noisy[0].size, threads)
    task = engine.denoise_task(*noisy.shape[1:], *rows, *(box or NO_BOX), threads, tile_rows)
    Job("denoise", network.handle, task, (noisy, denoised)).run(threads, progress)
    return denoised


def run_stages(config, stages, estimate, noisy, groups, *, box=BOX, threads=1) -> tasks.Run:
    """A batch of working planes through stages, as training runs them."""
    network = make_network(config, [stage.astype(noisy.dtype) for stage in stages])
    options = {"box": box, "project_last": True, "threads": threads}
    return tasks.Run(network, estimate, noisy, groups, **options)


def run_batch(image: np.ndarray, config: NetworkConfig, stages, *, box=BOX) -> np.ndarray:
    """The network as training runs it: match the whole image, then stage after stage."""
    planes = to_working_planes(image[np.newaxis])
    groups = find_groups(planes[:, 0], config)
    run = run_stages(config, stages, planes, planes, groups, box=box)
    return from_working_planes(run.estimates[-1])[0]


def tabulated_psi(features: np.ndarray, coefficients: np.ndarray, config) -> np.ndarray:
    """psi by its table, for (n, F) features and (F, M) coefficients, in numpy."""
    intervals = table_intervals(config)
    cubics = (coefficients @ cubic_basis(config).T).reshape(len(coefficients), intervals, 4)
    place = np.clip((features + config.rbf_range) / table_step(config), 0, intervals)
    interval = np.minimum(place.astype(int), intervals - 1)
    c0, c1, c2, c3 = np.moveaxis(cubics[np.arange(len(coefficients)), interval], -1, 0)
    t = place - interval
    return ((c3 * t + c2) * t + c1) * t + c0


def to_working_planes(images: np.ndarray) -> np.ndarray:
    """From gray or RGB images, (..., C, H, W), to the planes the stages work on."""
    return images if images.shape[-3] == 1 else color.transform(images, color.OPPONENT)


def from_working_planes(planes: np.ndarray) -> np.ndarray:
    """From the planes the stages work on back to gray or RGB images."""
    return planes if planes.shape[-3] == 1 else color.transform(planes, color.RGB)
