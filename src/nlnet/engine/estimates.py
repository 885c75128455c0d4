"""What the engine finds out about the noise of an image."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nlnet.engine.library import Plane, WhiteTask, instruction_set, load
from nlnet.engine.memory import call_in_memory, checked_address


def estimate_white(
    planes: Sequence[npt.NDArray[np.float32]], limits: tuple[float, float], start: float = 0.0
) -> float:
    """Return the standard deviation of the white noise in planes.

    Parameters
    ----------
    planes : sequence of (H, W) float32 arrays
        Parts of one image, every channel by itself; one at least has 3x3 pixels.
    limits : (low, high)
        The values at which noise was clipped; infinite where it was not.
    start : float
        About what the standard deviation is; 0 if unknown.
    """
    places = (Plane * len(planes))(
        *(
            Plane(checked_address("A plane", plane, plane.shape, np.float32), *plane.shape)
            for plane in planes
        )
    )
    task = WhiteTask(places, len(planes), *limits, start)
    sigma, given = ctypes.c_double(), (ctypes.byref(task), instruction_set())
    call_in_memory(load().nlnet_estimate_white, "The estimate", *given, result=sigma)
    return sigma.value
