"""The opponent color transform of CBM3D: luminance first, then two chrominances."""

import numpy as np

from nlnet.arrays import FloatArray
from nlnet.parallel import single_threaded_blas

OPPONENT = np.array([[1 / 3, 1 / 3, 1 / 3], [1 / 2, 0, -1 / 2], [1 / 4, -1 / 2, 1 / 4]])
"""Rows: luminance, red - blue, and (red + blue) / 2 - green, up to scale."""

RGB = np.linalg.inv(OPPONENT)


def transform(planes: FloatArray, matrix: FloatArray) -> FloatArray:
    """Multiply the channels of (..., 3, H, W) planes by a 3x3 matrix.

    Examples
    --------
    >>> gray = np.full((3, 1, 1), 90.0)
    >>> transform(gray, OPPONENT).ravel().tolist()
    [90.0, 0.0, 0.0]
    """
    flat = planes.reshape(*planes.shape[:-2], -1)  # (..., 3, H * W)
    with single_threaded_blas:
        return np.asarray(matrix.astype(planes.dtype) @ flat).reshape(planes.shape)
