"""Correlated noise, and what tells it from texture, which looks much like it.

Three differences are measured. What correlates the noise of a photo has softened the photo as much:
texture as sharp as pixels allow speaks against it. Noise is correlated over a few pixels only, so
that at a quarter of the size its spectrum is nearly flat; texture is as rough at every scale. And
in noise the frequencies are independent: where low ones happen to be weak, medium ones are as
strong as elsewhere; in texture both are weak or strong together.

The first two decide whether there is correlated noise at all, the third how much of what flat
blocks have is noise. The constants were fitted by ``python -m benchmarks.texture`` to photos of a
simulated camera and to images without noise, which also checks them on others; further bounds were
set by hand, with a look at real photos, as their comments say.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np

from nlnet.arrays import Array
from nlnet.noise.blocks import cut_blocks, halve

SCALES = 3
"""Scales at which correlated noise is measured: the full size, half and quarter of it."""

_BINS = (12, 12, 6)
"""Bins of brightness at each scale."""

_CONSTANT = 0.01
"""Variance below which blocks are constant: a tenth of a gray level, if white is 255."""

_CORRELATED = 3.0
"""Times that low frequencies must be stronger than high ones in flat blocks. With 2, weak white
noise in texture is taken for correlated noise (up to 7 dB lost on BSD68 with sigma 5)."""

_SOFTNESS = 1.2
_DEGREES = 0.098
_OFFSET = -9.7
"""Logistic regression of noise against texture: weights of softness and of degrees of freedom, as
fitted to simulated photos of BSDS500's `train`, within what two fits differed by."""

_SOFTEST = 8.0
"""Softness that is as good as any larger one: no fine detail at all."""

_LIKELY = 0.3
"""Probability from which on noise is taken for correlated; chosen with the next constant."""

_DAMAGE = (2.2, 6.0)
"""Bound of a noise's strength times the probability that it is texture, if the image's values go
from 0 to 255: the less sure, the less is removed; more where blocks look like noise in every other
way. Chosen so that images without noise (BSD68) stay above 40 dB; photos (PolyU), also with their
noise made stronger, were looked at, too."""

_LIKE_NOISE = (40.0, 0.15)
"""Degrees of freedom that such blocks have at least, and dependence at most."""

_INDEPENDENT = 0.3
_TEXTURE_TAKES = 5.0
"""How much stronger, as a logarithm of the power, medium frequencies of noise may seem to be where
low ones are stronger, and how fast what is beyond takes off from the noise. Chosen on simulated
photos of `train`, where it makes fewer lose; one enlarged one of 33 still does, by 2.8 dB. Photos
(PolyU) were looked at, too, and lost 0.1 dB by it."""

_GROWTH = ((0.4, 0.65), (0.2, 0.5))
"""Least and largest growth of correlated noise from one scale to the next, in natural logarithms:
more is texture, less is an error of the measurement. White noise does not grow; noise whose
neighbors are all alike doubles, by 0.69."""


@dataclasses.dataclass(frozen=True)
class Flatness:
    """What the flattest blocks of an image say about correlated noise.

    Parameters
    ----------
    levels : tuple of float
        Standard deviation of the noise at each scale, times the scale, as far as it is noise.
    spectrum : float
        How many times stronger low frequencies are than high ones.
    softness : float
        Logarithm of the power of low frequencies over that of high ones where there is texture.
    degrees : float
        Degrees of freedom of blocks at the coarsest scale: the more, the flatter their spectrum.
    dependence : float
        How much stronger medium frequencies are where low ones are stronger, as a logarithm.
    certainty : float
        Probability that there is correlated noise, rather than texture alone.
    """

    levels: tuple[float, ...]
    spectrum: float
    softness: float
    degrees: float
    dependence: float
    certainty: float

    @property
    def share(self) -> float:
        """Share of the levels that may be removed if nobody says that this is noise."""
        degrees, dependence = _LIKE_NOISE
        bound = _DAMAGE[self.degrees > degrees and self.dependence < dependence]
        return min(1.0, bound / ((1 - self.certainty) * self.levels[0]))

    @property
    def correlated(self) -> bool:
        """Whether it is to be taken for correlated noise."""
        return self.spectrum > _CORRELATED and self.certainty > _LIKELY


def measure_flatness(planes: Sequence[Array], low: float, high: float) -> Flatness | None:
    """Look at the flattest blocks of planes at several scales; None if there are too few.

    Parameters
    ----------
    planes : sequence of (H, W) arrays
        The tiles of an image, in gray.
    low, high : float
        Blocks that reach one of these values are left out: there noise was clipped.
    """
    measured: list[float] = []
    spectrum = softness = degrees = dependence = 0.0
    for scale in range(SCALES):
        factor = 2**scale
        blocks = cut_blocks([factor * plane for plane in planes], factor * low, factor * high)
        members = list(blocks.bins_of_equal_count(_BINS[scale]))
        if len(members) < 2:
            break
        bins = [blocks.calmest(each) for each in members]
        # Blocks without any noise, saturated or flattened by JPEG, say nothing about the others.
        noisy = [each for each in bins if each.variance > _CONSTANT]
        bins = sorted(noisy if 2 * len(noisy) > len(bins) else bins, key=lambda each: each.spread)
        # Where blocks are most alike, they are of noise.
        alike = bins[: max(2, len(bins) // 4)]
        variance = float(np.median([each.variance for each in alike]))
        measured.append(0.5 * math.log(max(variance, 1e-6)))
        degrees = float(np.median([each.degrees for each in bins]))
        if scale == 0:
            spectrum = float(np.median([blocks.untextured(each)[1] for each in members]))
            softness = -math.log(max(blocks.sharpness(), 1e-9))
            dependences = sorted(blocks.dependence(each) for each in members)
            dependence = dependences[max(1, len(members) // 4 - 1)]
        planes = [halve(plane) for plane in planes]
    if len(measured) < 2:
        return None
    certainty = _certainty(softness, degrees)
    # Where frequencies depend on each other, there is texture.
    levels = [measured[0] - _TEXTURE_TAKES * max(dependence - _INDEPENDENT, 0.0)]
    for (before, after), limits in zip(itertools.pairwise(measured), _GROWTH, strict=False):
        levels.append(levels[-1] + float(np.clip(after - before, *limits)))
    found = tuple(map(math.exp, levels))
    return Flatness(found, spectrum, softness, degrees, dependence, certainty)


def _certainty(softness: float, degrees: float) -> float:
    score = _SOFTNESS * min(softness, _SOFTEST) + _DEGREES * degrees + _OFFSET
    return 1 / (1 + math.exp(-score))
