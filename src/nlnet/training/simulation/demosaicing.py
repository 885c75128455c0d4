"""The mosaic of a Bayer sensor, and ways to fill in the colors that it lacks."""

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.float32]


def to_mosaic(planes: Image) -> Image:
    """Keep one color per pixel: red, green / green, blue."""
    mosaic = planes[..., 1].copy()
    mosaic[::2, ::2] = planes[::2, ::2, 0]
    mosaic[1::2, 1::2] = planes[1::2, 1::2, 2]
    return mosaic


_CROSS = np.float32(0.25) * np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]], np.float32)
_SQUARE = np.float32(0.25) * np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]], np.float32)
_OWN = np.zeros((5, 5), np.float32)
_OWN[[0, 4, 2, 2], [2, 2, 0, 4]] = 0.25


def demosaic(mosaic: Image, method: str) -> Image:
    """Fill in the missing colors: (H, W, 3)."""
    if method in ("edge", "vng"):
        return _demosaic_integers(mosaic, method)
    masks = np.zeros((3, *mosaic.shape), np.float32)
    masks[0, ::2, ::2] = masks[2, 1::2, 1::2] = 1
    masks[1] = 1 - masks[0] - masks[2]
    green = _filter(masks[1] * mosaic, _CROSS)
    if method == "malvar":
        # What its neighbors make of the red or blue at a place tells how far off the green is.
        green = green + 0.5 * (1 - masks[1]) * (mosaic - _filter(mosaic, _OWN))
        red, blue = (green + _filter(masks[c] * (mosaic - green), _SQUARE) for c in (0, 2))
    else:
        red, blue = (_filter(masks[c] * mosaic, _SQUARE) for c in (0, 2))
    return np.stack([red, green, blue], axis=-1)


def _demosaic_integers(mosaic: Image, method: str) -> Image:
    """Demosaic by OpenCV's methods, which take integers; VNG takes 8 bits, so square roots."""
    if method == "vng":
        roots = np.clip(np.rint(255 * np.sqrt(np.clip(mosaic, 0, 1))), 0, 255).astype(np.uint8)
        planes = cv2.cvtColor(roots, cv2.COLOR_BayerBG2RGB_VNG)
        return np.asarray(np.square(planes.astype(np.float32) / 255))
    black = 0.1  # noise below black stays below it
    values = np.clip(np.rint((mosaic + black) * 40000), 0, 65535).astype(np.uint16)
    planes = cv2.cvtColor(values, cv2.COLOR_BayerBG2RGB_EA)
    return np.asarray(planes.astype(np.float32) / 40000 - np.float32(black))


def _filter(plane: Image, kernel: npt.NDArray[Any]) -> Image:
    return np.asarray(cv2.filter2D(plane, -1, kernel, borderType=cv2.BORDER_REFLECT_101))
