"""Comparing images side by side: before and after, or results with the clean image."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array
from nlnet.errors import InputError, about
from nlnet.evaluation.metrics import SSIM_SIDE, psnr, ssim
from nlnet.files.data_range import Scale, check_white, display_range, scale_of, white_of
from nlnet.files.one_file import Outcome
from nlnet.images import ImageFile
from nlnet.inputs import check_finite
from nlnet.plotting.figures import Panel, draw_panels


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
    scale = scale_of(outcome.before, data_range)
    # Pixels that are NaN, and so were left out, are shown black.
    before, after = (
        np.nan_to_num(_on_255(image, data_range, scale))
        for image in (outcome.before, outcome.after)
    )
    ends, stretched = _ends(outcome.before, data_range, scale)
    removed = before - after
    sigma = float(removed.std())
    # Three standard deviations reach from middle gray to black and white.
    gain = 127 / (3 * sigma) if sigma > 0 else 1.0
    found = "estimated" if outcome.findings.estimated else "given"
    panels = [
        Panel(
            _between(before, ends),
            "before",
            f"noise of sigma {outcome.findings.sigmas[0]:.1f}, {found}{stretched}",
        ),
        Panel(_between(after, ends), "after"),
        Panel(128 + gain * removed, "removed", f"contrast x {gain:.1f}" if sigma > 0 else ""),
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
        Center of the enlarged part; by default where there is most structure.

    Returns
    -------
    comparisons, figure
        PSNR and SSIM as in evaluation: of values clipped to the range, not rounded.

    Raises
    ------
    InputError
        If sizes or numbers of channels differ, or the clean image is far from 0 to white.
    """
    scale = scale_of(clean, data_range)
    truth = _truth(clean, name, data_range)
    ends, stretched = _ends(clean, data_range, scale)
    panels = [Panel(_between(truth, ends), name, f"clean{stretched}")]
    comparisons = []
    for other_name, image in others:
        shown, comparison = _measure(truth, other_name, image, data_range, scale)
        panels.append(Panel(_between(shown, ends), other_name, _format(comparison)))
        comparisons.append(comparison)
    return comparisons, draw_panels(panels, centre)


def measure_stacks(
    clean: Sequence[ImageFile],
    others: Sequence[tuple[str, Sequence[ImageFile]]],
    *,
    name: str = "clean",
    data_range: float | None = None,
) -> list[Comparison]:
    """Measure stacks against the clean one, page by page; return the means over the pages.

    Parameters and errors are those of :func:`compare`, with sequences of pages for images.
    """
    wanted = _pages(len(clean))
    for other_name, pages in others:
        if len(pages) != len(clean):
            raise InputError(
                f"{other_name!r} has {_pages(len(pages))}, but the clean image {wanted}."
            )
    found: list[list[Comparison]] = [[] for _ in others]
    for number in range(len(clean)):
        page = clean[number]
        truth, scale = _truth(page, name, data_range), scale_of(page, data_range)
        for (other_name, pages), comparisons in zip(others, found, strict=True):
            comparisons.append(_measure(truth, other_name, pages[number], data_range, scale)[1])
    return [
        Comparison(
            comparisons[0].name,
            float(np.mean([comparison.psnr for comparison in comparisons])),
            float(np.mean([comparison.ssim for comparison in comparisons])),
        )
        for comparisons in found
    ]


def _truth(clean: ImageFile, name: str, data_range: float | None) -> Array:
    check_white(clean, data_range, name)
    return _shown(clean, name, data_range, scale_of(clean, data_range))


def _measure(
    truth: Array, name: str, image: ImageFile, data_range: float | None, scale: Scale
) -> tuple[Array, Comparison]:
    """Return the image with white at 255, and how near it is to the truth."""
    shown = _shown(image, name, data_range, scale)
    if shown.shape != truth.shape:
        raise InputError(
            f"{name!r} is {_describe(shown)}, but the clean image is {_describe(truth)}."
        )
    return shown, Comparison(name, psnr(truth, shown), _ssim(truth, shown))


def _pages(count: int) -> str:
    return f"{count} page{'s' if count > 1 else ''}"


def _shown(image: ImageFile, name: str, data_range: float | None, clean: Scale) -> Array:
    """Return the pixels upright, from black at 0 to white at 255."""
    with about(repr(name)):
        check_finite(image.pixels)
    return np.clip(_on_255(image, data_range, clean), 0, 255)


def _on_255(image: ImageFile, data_range: float | None, clean: Scale) -> npt.NDArray[np.float64]:
    """Return the pixels upright, with white at 255; on the clean image's scale if it has none."""
    scale = scale_of(image, data_range, clean)
    scaled: npt.NDArray[np.float64] = (image.pixels - scale.black) * (255 / scale.span)
    return image.upright(scaled)


def _ends(
    image: ImageFile, data_range: float | None, scale: Scale
) -> tuple[tuple[float, float], str]:
    """Return the values, with white at 255, to show as black and white, and say if it is others."""
    shown = display_range(image, white_of(image, data_range))
    if not shown.stretched:
        return (0.0, 255.0), ""
    low, high = ((end - scale.black) * 255 / scale.span for end in (shown.low, shown.high))
    return (low, high), ", contrast stretched"


def _between(values: Array, ends: tuple[float, float]) -> Array:
    """Scale values so that the ends become 0 and 255."""
    low, high = ends
    return np.asarray((values - low) * (255 / (high - low)))


def _ssim(truth: Array, shown: Array) -> float:
    return ssim(truth, shown) if min(truth.shape[:2]) >= SSIM_SIDE else float("nan")


def _format(comparison: Comparison) -> str:
    return f"{comparison.psnr:.2f} dB, SSIM {comparison.ssim:.3f}"


def _describe(pixels: Array) -> str:
    return (
        f"{pixels.shape[1]}x{pixels.shape[0]} pixels in {'gray' if pixels.ndim == 2 else 'color'}"
    )
