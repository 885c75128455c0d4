"""The projection P_C onto the intensity box, and its backward pass.

The planes are those the network works on. Of color images they are opponent planes, but the box is
one of RGB values: the projection goes there and back.
"""

from __future__ import annotations

import numpy as np

from nlnet.arrays import FloatArray
from nlnet.network import color

Box = tuple[float, float]


def project(planes: FloatArray, box: Box, out: FloatArray | None = None) -> FloatArray:
    """Return the (..., C, H, W) planes with their intensities clipped to the box.

    The result goes to `out`, if given, which may be `planes` itself.
    """
    if planes.shape[-3] == 1:
        return np.clip(planes, *box, out=out)  # Eq. (25)
    rgb = color.transform(planes, color.RGB)
    projected = color.transform(np.clip(rgb, *box, out=rgb), color.OPPONENT)
    if out is None:
        return projected
    out[:] = projected
    return out


def project_backward(cotangent: FloatArray, planes: FloatArray, box: Box) -> FloatArray:
    """Return the cotangent of `planes`, given that of ``project(planes, box)``.

    The paper's e: the Jacobian of the clip is 1 inside the box and 0 outside.
    """
    low, high = box
    if planes.shape[-3] == 1:
        return np.where((planes >= low) & (planes <= high), cotangent, 0)  # Eq. (26), Eq. (27)
    rgb = color.transform(planes, color.RGB)
    inner = color.transform(cotangent, color.OPPONENT.T)
    return color.transform(np.where((rgb >= low) & (rgb <= high), inner, 0), color.RGB.T)
