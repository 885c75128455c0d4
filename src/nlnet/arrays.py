"""The array types that signatures use."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
"""Float32 or float64."""
Float32Array: TypeAlias = npt.NDArray[np.float32]
Groups: TypeAlias = npt.NDArray[np.int8]
"""Offsets (dy, dx) of the members of each pixel's group: (H, W, K, 2)."""
Box: TypeAlias = tuple[float, float]
"""Intensities that an estimate is kept in: lowest and highest."""
ReadRows: TypeAlias = Callable[[int, int], FloatArray]
"""``read(first, last)`` returns rows of planes: (C, last - first, W)."""
WriteRows: TypeAlias = Callable[[int, FloatArray], None]
"""``write(first, rows)`` takes rows of planes: (C, n, W)."""
