"""What a method is to the benchmark: a function with its settings, the same for nlnet and peers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.pictures import Picture
from nlnet.arrays import Array
from nlnet.evaluation.metrics import psnr


def as_is(image: Any) -> Any:
    """Leave an image as it is."""
    return image


@dataclasses.dataclass(frozen=True)
class Method:
    """A denoiser, ready to be measured.

    Parameters
    ----------
    name : str
        What tables call it.
    kind : {"gray", "color"}
        The images it takes.
    call : callable
        The measured function of (prepared image, strength, threads).
    strengths : sequence of float
        Its strength, such as h of non-local means; of several the one with the best PSNR is taken.
    prepare, finish : callable
        From the noisy float32 image on the 0-255 scale to what the call takes, and back; not timed.
    quality : bool
        Whether its output is worth a PSNR; random weights give none.
    largest : float
        Megapixels up to which it is measured: slow methods take no large images.
    pinned : bool
        Whether it has no setting for threads, so that only the CPUs it may use can limit it.
    note : str
        What has to be said beside its figures.
    """

    name: str
    kind: str
    call: Callable[[Any, float, int], Any]
    strengths: Sequence[float]
    prepare: Callable[[Array], Any] = as_is
    finish: Callable[[Any], Array] = as_is
    quality: bool = True
    largest: float = math.inf
    pinned: bool = False
    note: str = ""

    def run(self, prepared: Any, threads: int) -> Any:
        """Denoise a prepared image."""
        return self.call(prepared, self.strengths[0], threads)

    def score(self, picture: Picture, threads: int) -> float | None:
        """Return the PSNR in dB of the clipped, not rounded, output; None if it has no meaning."""
        output = self.finish(self.run(self.prepare(picture.noisy), threads))
        return psnr(picture.clean, np.clip(output, 0, 255)) if self.quality else None

    def tuned(self, picture: Picture, threads: int) -> Method:
        """Return the method with the strength that is best for this very image.

        No user can do that, for it takes the clean image: the rule favours the peers.
        """
        if len(self.strengths) == 1:
            return self
        fixed = [dataclasses.replace(self, strengths=[strength]) for strength in self.strengths]
        return max(fixed, key=lambda method: method.score(picture, threads) or -math.inf)
