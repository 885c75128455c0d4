"""Eyes with random weights, and an eye in plain numpy, for several test modules."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from nlnet.engine.jobs import Job
from nlnet.engine.library import load
from nlnet.engine.memory import address, checked_address
from nlnet.network.block import prepare_eye
from nlnet.network.color import OPPONENT
from nlnet.network.eye import Eye, EyeConfig
from nlnet.network.layers import Layer

SMALL = EyeConfig((8, 16), (1, 1), 8)

ALL_SIZES = (
    SMALL,
    EyeConfig(),
    EyeConfig((16,), (0,), 16),
    EyeConfig((24, 8, 16), (2, 0, 1), 8),
)
"""From one level to four, with and without blocks."""


def random_eye(config: EyeConfig = SMALL, seed: int = 0) -> Eye:
    """An eye whose every weight matters."""
    rng = np.random.default_rng(seed)
    layers = []
    for spec in config.layers:
        size = 1 / np.sqrt(np.prod(spec.weights[1:]))
        weights = rng.normal(0, size, spec.weights).astype(np.float32)
        layers.append(Layer(weights, rng.normal(0, 0.3, spec.filters).astype(np.float32)))
    return Eye(config, tuple(layers))


def random_tiles(*shape: int, seed: int = 0) -> np.ndarray:
    """Tiles a little beyond the 0-255 scale."""
    return np.random.default_rng(seed).uniform(-20, 280, shape).astype(np.float32)


def look(eye: Eye, tiles: np.ndarray, threads: int = 2) -> np.ndarray:
    """The maps of (N, C, H, W) tiles, by the engine."""
    count, channels, height, width = tiles.shape
    unit = eye.config.unit
    maps = np.empty((count, eye.config.outputs, height // unit, width // unit), np.float32)
    where = checked_address("tiles", tiles, tiles.shape, np.float32), address(maps)
    task = load().look_task(count, height, width, channels, threads, *where)
    Job("look", prepare_eye(eye).handle, task, (tiles, maps)).run(threads)
    return maps


def look_slowly(eye: Eye, tiles: np.ndarray) -> np.ndarray:
    """The maps of (N, C, H, W) tiles, in float64."""
    return np.stack([_look(eye, tile.astype(np.float64)) for tile in tiles])


def features(tile: np.ndarray) -> np.ndarray:
    """Four features of every pixel of a (C, H, W) tile."""
    planes = np.zeros((3, *tile.shape[1:]))
    planes[: len(tile)] = np.tensordot(OPPONENT, tile, 1) if len(tile) == 3 else tile
    padded = np.pad(planes, ((0, 0), (2, 2), (2, 2)), mode="edge")
    means = sliding_window_view(padded, (5, 5), axis=(1, 2)).mean(axis=(-2, -1))
    return np.concatenate([(planes[:1] - 127.5) / 64, np.arcsinh((planes - means) / 2)])


def _look(eye: Eye, tile: np.ndarray) -> np.ndarray:
    layers = iter(eye.layers)
    seen = features(tile)
    count, height, width = seen.shape
    pairs = seen.reshape(count, height // 2, 2, width // 2, 2)
    planes = pairs.transpose(0, 2, 4, 1, 3).reshape(4 * count, height // 2, width // 2)
    planes = _convolve(planes, next(layers))
    for level, blocks in enumerate(eye.config.down):
        if level > 0:
            planes = _convolve(planes, next(layers))
        for _ in range(blocks):
            inner = np.maximum(_convolve(planes, next(layers)), 0)
            planes = planes + _convolve(inner, next(layers))
    return _convolve(np.maximum(planes, 0), next(layers))


def _convolve(planes: np.ndarray, layer: Layer) -> np.ndarray:
    """3x3 with zeros around, or 2x2 with a stride of 2."""
    side = layer.weights.shape[-1]
    if side == 3:
        planes = np.pad(planes, ((0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(planes, (side, side), axis=(1, 2))
    if side == 2:
        windows = windows[:, ::2, ::2]
    result = np.einsum("ihwyx,oiyx->ohw", windows, layer.weights.astype(np.float64))
    return result + layer.biases[:, None, None]
