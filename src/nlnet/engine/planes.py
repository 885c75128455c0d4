"""Parts of removal for planes in memory: at half or twice the size, maps at that of an image."""

import numpy as np

from nlnet.arrays import Array, Float32Array
from nlnet.engine.library import check_status, instruction_set, load
from nlnet.engine.memory import address, call


def halve(planes: Array) -> Float32Array:
    """Return (C, H, W) planes at half the size, in float32: means of 2x2 pixels.

    Examples
    --------
    >>> halve(np.arange(16, dtype=np.uint8).reshape(1, 4, 4)).tolist()
    [[[2.5, 4.5], [10.5, 12.5]]]
    """
    whole = np.ascontiguousarray(planes, np.float32)
    channels, height, width = whole.shape
    half = np.empty((channels, height // 2, width // 2), np.float32)
    if half.size:
        check_status(load().halve(instruction_set(), *whole.shape, address(whole), address(half)))
    return half


def enlarge(half: Float32Array, first: int, last: int, width: int) -> Float32Array:
    """Return rows, from `first` to `last`, of half-size planes at the full size; bilinear.

    Examples
    --------
    >>> enlarge(np.array([[[0.0, 4.0]]], np.float32), 0, 1, 5).tolist()
    [[[0.0, 1.0, 3.0, 4.0, 4.0]]]
    """
    given = np.ascontiguousarray(half, np.float32)
    planes = np.empty((len(given), last - first, width), np.float32)
    rows = address(given), first, last, width, address(planes)
    call("enlarge", instruction_set(), *given.shape, *rows)
    return planes


def widen(grid: Float32Array, size: tuple[int, int]) -> Float32Array:
    """Return a coarse map (h, w) at the size of an image, (H, W); bilinear.

    Examples
    --------
    >>> widen(np.array([[0.0, 4.0]], np.float32), (1, 4)).tolist()
    [[0.0, 1.0, 3.0, 4.0]]
    """
    given = np.ascontiguousarray(grid, np.float32)
    plane = np.empty(size, np.float32)
    call("widen", instruction_set(), *given.shape, address(given), *size, address(plane))
    return plane


def blend(noisy: Array, denoised: Array, shares: tuple[float, float]) -> Float32Array:
    """Return (C, H, W) planes between noisy and denoised ones, by shares of luma and chroma.

    Examples
    --------
    >>> noisy, denoised = np.full((1, 1, 1), 100.0), np.full((1, 1, 1), 104.0)
    >>> blend(noisy, denoised, (0.25, 0.25)).item()
    101.0
    """
    before, blended = np.ascontiguousarray(noisy, np.float32), np.array(denoised, np.float32)
    channels, height, width = blended.shape
    planes = channels, height * width, address(before), address(blended)
    check_status(load().blend(instruction_set(), *planes, *shares))
    return blended
