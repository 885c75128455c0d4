"""Camera noise: correlated between neighboring pixels, and not equally strong everywhere."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from nlnet.errors import InputError
from nlnet.noise.levels import AnyLevel, Level
from nlnet.noise.record import SCALES, Noise


@dataclasses.dataclass(frozen=True, eq=False)
class Camera(Noise):
    """Noise that is correlated between neighboring pixels, and may vary over the image.

    Parameters
    ----------
    strengths : (2, 3, h, w) array
        Standard deviations of luma and of chroma, as coarse maps over the whole image: at the full
        size, after averaging squares of 2x2 pixels, and of 4x4. The maps are 1x1 for noise that is
        as strong everywhere. White noise has half the strength from one scale to the next; where
        there is 0, nothing is removed.

    Examples
    --------
    >>> blotches = Camera.even(12.0, (1.0, 1.5, 2.0))
    >>> blotches.strengths[0, :, 0, 0].tolist()
    [12.0, 9.0, 6.0]
    """

    kind = "camera"
    strengths: npt.NDArray[np.float32]

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = self.strengths.shape
        if len(shape) != 4 or shape[:2] != (2, SCALES) or not self.strengths.size:
            raise InputError(f"The strengths of noise are {shape}, but must be (2, 3, h, w).")
        if not (np.isfinite(self.strengths) & (self.strengths >= 0)).all():
            raise InputError("Noise has values that are negative or not finite.")
        if not self.sigma > 0:
            raise InputError(f"sigma is {self.sigma:g}, but must be above 0.")

    @classmethod
    def even(
        cls, sigma: float, octaves: tuple[float, ...] = (1.0,), certainty: float = 1.0
    ) -> Camera:
        """Return noise that is as strong everywhere, in luma and in chroma.

        Parameters
        ----------
        sigma : float
            Standard deviation at the full size.
        octaves : tuple of float
            Standard deviation after averaging squares of 1, 2, 4 pixels, times their side, relative
            to the first: 1, 1, 1 for white noise. Scales that are left out are not denoised.
        certainty : float
            As for `Noise`.
        """
        strengths = np.zeros((2, SCALES, 1, 1), np.float32)
        for scale, octave in enumerate(octaves[:SCALES]):
            strengths[:, scale] = sigma * octave / 2**scale
        return cls(strengths, certainty=certainty)

    @property
    def sigma(self) -> float:
        """Standard deviation of luma at the full size, on average over the image."""
        return float(self.strengths[0, 0].mean(dtype=np.float64))

    @property
    def levels(self) -> tuple[AnyLevel, ...]:
        """The same at every brightness, on average."""
        return (Level(read=self.sigma),)

    @property
    def octaves(self) -> tuple[float, ...]:
        """Correlation of luma on average: see :meth:`even`; 0 where nothing is removed."""
        means = self.strengths[0].mean(axis=(1, 2), dtype=np.float64) / self.sigma
        return tuple(float(mean) * 2**scale for scale, mean in enumerate(means))

    def scaled(self, factor: float) -> Camera:
        """Return the noise of the image times a factor."""
        return dataclasses.replace(self, strengths=self.strengths * np.float32(factor))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Camera)
            and self.certainty == other.certainty
            and np.array_equal(self.strengths, other.strengths)
        )

    def __hash__(self) -> int:
        return hash((self.certainty, self.strengths.shape, self.strengths.tobytes()))

    def __str__(self) -> str:
        return f"camera noise, correlated, about {self.sigma:.2g}"
