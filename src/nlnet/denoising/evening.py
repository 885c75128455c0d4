"""Making noise that varies over an image even, and giving the result its scale back.

The networks remove noise of one strength. Where the noise of a place is `sigma`, the image
is multiplied by ``reference / sigma`` before a network sees it, and divided again after it. Color
images are scaled in opponent colors, for luma and chroma have noise of different strength.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from nlnet.arrays import FloatArray
from nlnet.network import color

Grid = npt.NDArray[np.float32]

_WEAKEST = 0.35
"""Share of the reference that noise counts as at least; where there is less of it, the result is
blended with the image instead, for a network would take faint detail there for noise."""

_LEAST_CHROMA = 0.25
"""Share of the reference that the noise of chroma counts as at least."""


@dataclasses.dataclass(frozen=True, eq=False)
class Evening:
    """How an image, or a part of it, is made even.

    Parameters
    ----------
    reference : float
        Standard deviation of the noise that the networks see.
    center : float
        The value of gray that stays as it is: where factors vary, values near it are bent least.
    gains : (P, h, w) array
        Factors, a coarse map over the image: of gray, or of luma and chroma.
    shares : (P, h, w) array or None
        How much of the result is used; None for all of it.
    size : (H, W)
        Size of the image.
    origin : (int, int)
        Where in the image the part begins.
    """

    reference: float
    center: float
    gains: Grid
    shares: Grid | None
    size: tuple[int, int]
    origin: tuple[int, int] = (0, 0)

    @classmethod
    def of(
        cls,
        strengths: Grid,
        center: float,
        size: tuple[int, int],
        origin: tuple[int, int] = (0, 0),
    ) -> Evening | None:
        """Return what makes noise even whose strength is given by maps, (P, h, w).

        None if there is no noise.
        """
        typical = [float(np.sqrt(np.mean(np.square(each), dtype=np.float64))) for each in strengths]
        reference = max(typical[0], 0.5 * max(typical[1:], default=0.0))
        if not reference > 0:
            return None
        least = reference * np.array([_WEAKEST, _LEAST_CHROMA], np.float32)[: len(strengths)]
        counted = np.maximum(strengths, least[:, np.newaxis, np.newaxis])
        shares = strengths / counted
        gains = np.float32(reference) / counted
        return cls(reference, center, gains, None if shares.min() == 1 else shares, size, origin)

    def even(self, rows: FloatArray, first: int) -> FloatArray:
        """Return rows of the image, from `first` on, with noise of the reference everywhere."""
        center = np.float32(self.center)
        return _colors(_opponent(rows - center) * self._at(self.gains, rows, first)) + center

    def restore(self, rows: FloatArray, noisy: FloatArray, first: int) -> FloatArray:
        """Return denoised rows at their own scale; `noisy` are the rows before they were even."""
        center = np.float32(self.center)
        planes = _opponent(rows - center) / self._at(self.gains, rows, first)
        if self.shares is not None:
            before = _opponent(noisy - center)
            planes = before + (planes - before) * self._at(self.shares, rows, first)
        return _colors(planes) + center

    def _at(self, grid: Grid, rows: FloatArray, first: int) -> Grid:
        """Return rows of a coarse map at the size of the image; luma once, chroma twice."""
        channels, count, width = rows.shape
        top, left = self.origin[0] + first, self.origin[1]
        here = interpolate(grid, self.size, (top, top + count), (left, left + width))
        return here[[0, 1, 1]] if channels == 3 else here


def interpolate(
    grid: Grid, size: tuple[int, int], rows: tuple[int, int], columns: tuple[int, int]
) -> Grid:
    """Return a part of a coarse map (P, h, w) over an image of some size; bilinear.

    Examples
    --------
    >>> interpolate(np.array([[[0.0, 4.0]]], np.float32), (1, 4), (0, 1), (1, 4)).tolist()
    [[[1.0, 3.0, 4.0]]]
    """
    if grid.shape[1:] == (1, 1):
        return grid
    down, down_shares = _neighbors(np.arange(*rows), size[0], grid.shape[1])
    across, across_shares = _neighbors(np.arange(*columns), size[1], grid.shape[2])
    # Few rows of the map are needed, so that these are widened first.
    used = slice(int(down[0].min()), int(down[1].max()) + 1)
    narrow = grid[:, used]
    left, right = narrow[..., across[0]], narrow[..., across[1]]
    wide = left + (right - left) * across_shares
    near, far = wide[:, down[0] - used.start], wide[:, down[1] - used.start]
    return np.asarray(near + (far - near) * down_shares[:, np.newaxis])


def _neighbors(
    places: npt.NDArray[np.intp], length: int, count: int
) -> tuple[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], Grid]:
    """Return the two cells of a map around each place, and the share of the second."""
    at = (places + 0.5) * (count / length) - 0.5
    below = np.floor(at).astype(np.intp)
    share = (at - below).astype(np.float32)
    return (np.clip(below, 0, count - 1), np.clip(below + 1, 0, count - 1)), share


def _opponent(rows: FloatArray) -> FloatArray:
    return rows if len(rows) == 1 else color.transform(rows, color.OPPONENT)


def _colors(rows: FloatArray) -> FloatArray:
    return rows if len(rows) == 1 else color.transform(rows, color.RGB)
