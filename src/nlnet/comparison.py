"""Images to look at side by side: before and after, or results beside the clean image."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.errors import InputError
from nlnet.figures import Panel, draw_panels
from nlnet.file_denoising import Outcome, white_of
from nlnet.images import ImageFile
from nlnet.metrics import psnr, ssim

_SMALLEST = 11
"""Side of SSIM's window."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How near an image is to the clean one."""

    name: str
    psnr: float
    ssim: float


def preview_figure(outcome: Outcome, data_range: float | None = None) -> ImageFile:
    """Draw an image before and after denoising, and what was removed, made visible."""
    if outcome.before is None:
        raise InputError("The image before denoising was not kept.")
    before, after = (_on_255(image, data_range) for image in (outcome.before, outcome.after))
    removed = before - after
    spread = float(removed.std())
    # Three standard deviations reach from middle gray to black and white.
    gain = 127 / (3 * spread) if spread > 0 else 1.0
    found = "estimated" if outcome.findings.estimated else "given"
    panels = [
        Panel(before, "before", f"noise of sigma {outcome.findings.sigmas[0]:.1f}, {found}"),
        Panel(after, "after"),
        Panel(128 + gain * removed, "removed", f"contrast x {gain:.1f}" if spread > 0 else ""),
    ]
    return draw_panels(panels, detail_of=1)


def compare(
    clean: ImageFile,
    others: Sequence[tuple[str, ImageFile]],
    *,
    name: str = "clean",
    data_range: float | None = None,
    centre: tuple[int, int] | None = None,
) -> tuple[list[Comparison], ImageFile]:
    """Measure images against the clean one, and draw all of them side by side.

    Parameters
    ----------
    clean : ImageFile
        The clean image.
    others : sequence of (name, ImageFile)
        Images of the same size: the noisy one and results.
    name : str
        What the figure calls the clean image.
    data_range : float, optional
        The value of white in all of them; by default what each file says or its dtype stands for.
    centre : (x, y), optional
        Middle of the enlarged part; by default it is where there is most to see.

    Returns
    -------
    comparisons, figure
        PSNR and SSIM as in evaluation: of values clipped to the range, not rounded.

    Raises
    ------
    InputError
        If sizes or numbers of channels differ.
    """
    truth = np.clip(_on_255(clean, data_range), 0, 255)
    panels = [Panel(truth, name, "clean")]
    comparisons = []
    for other_name, image in others:
        shown = np.clip(_on_255(image, data_range), 0, 255)
        if shown.shape != truth.shape:
            raise InputError(
                f"{other_name!r} is {_describe(shown)}, but the clean image is {_describe(truth)}."
            )
        comparison = Comparison(other_name, psnr(truth, shown), _ssim(truth, shown))
        panels.append(Panel(shown, other_name, _format(comparison)))
        comparisons.append(comparison)
    return comparisons, draw_panels(panels, centre)


def _on_255(image: ImageFile, data_range: float | None) -> npt.NDArray[np.float64]:
    """Return the pixels upright, with white at 255."""
    scaled: npt.NDArray[np.float64] = image.pixels * (255 / white_of(image, data_range))
    return image.upright(scaled)


def _ssim(truth: Array, shown: Array) -> float:
    return ssim(truth, shown) if min(truth.shape[:2]) >= _SMALLEST else float("nan")


def _format(comparison: Comparison) -> str:
    return f"{comparison.psnr:.2f} dB, SSIM {comparison.ssim:.3f}"


def _describe(pixels: Array) -> str:
    return (
        f"{pixels.shape[1]}x{pixels.shape[0]} pixels in {'gray' if pixels.ndim == 2 else 'color'}"
    )
