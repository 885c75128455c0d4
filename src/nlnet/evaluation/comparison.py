"""Comparing images side by side: before and after, or results with the clean image."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from nlnet.arrays import Array
from nlnet.errors import InputError, about
from nlnet.evaluation.metrics import SSIM_SIDE, psnr, ssim
from nlnet.files.data_range import Range, check_white, display_range, range_of, white_of
from nlnet.files.findings import Outcome
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
    values = range_of(outcome.before, data_range)
    # Pixels that are NaN, and so were left out, are shown black.
    before, after = (
        np.nan_to_num(_on_255(image, data_range, values))
        for image in (outcome.before, outcome.after)
    )
    shown, stretched = _display(outcome.before, data_range, values)
    removed = before - after
    sigma = float(removed.std())
    # Three standard deviations reach from middle gray to black and white.
    gain = 127 / (3 * sigma) if sigma > 0 else 1.0
    found = "estimated" if outcome.findings.estimated else "given"
    noise = f"noise of sigma {outcome.findings.sigmas[0]:.1f}, {found}{stretched}"
    panels = [
        Panel(shown.on_255(before), "before", noise),
        Panel(shown.on_255(after), "after"),
        Panel(128 + gain * removed, "removed", f"contrast x {gain:.1f}" if sigma > 0 else ""),
    ]
    return draw_panels(panels, detail_of=1)


def compare(
    clean: Sequence[ImageFile],
    others: Sequence[tuple[str, Sequence[ImageFile]]],
    *,
    name: str = "clean",
    data_range: float | None = None,
    centre: tuple[int, int] | None = None,
    page: int = 0,
) -> tuple[list[Comparison], ImageFile]:
    """Measure images against the clean one, page by page, and draw all of them side by side.

    Parameters
    ----------
    clean : sequence of ImageFile
        The pages of the clean image.
    others : sequence of (name, pages)
        Images of the same size and number of pages: the noisy one and results.
    name : str
        What the figure calls the clean image.
    data_range : float, optional
        The value of white in all of them; by default what each file says or its dtype stands for.
    centre : (x, y), optional
        Center of the enlarged part; by default where there is most structure.
    page : int
        Number of the page to draw.

    Returns
    -------
    comparisons, figure
        PSNR and SSIM as in evaluation: of values clipped to the range, not rounded; means over the
        pages. The figure has those of its page.

    Raises
    ------
    InputError
        If pages, sizes or numbers of channels differ, or the clean image is far from 0 to white.
    """
    for other, pages in others:
        if len(pages) != len(clean):
            wanted = _pages(len(clean))
            raise InputError(f"{other!r} has {_pages(len(pages))}, but the clean image {wanted}.")
    scores = []
    panels: list[Panel] = []
    for number in range(len(clean)):
        image = clean[number]
        check_white(image, data_range, name)
        values = range_of(image, data_range)
        truth = _clipped(image, name, data_range, values)
        results = [_clipped(pages[number], other, data_range, values) for other, pages in others]
        names = [other for other, _ in others]
        found = [_measure(truth, *each) for each in zip(results, names, strict=True)]
        scores.append([(each.psnr, each.ssim) for each in found])
        if number == page:
            shown, stretched = _display(image, data_range, values)
            panels = [Panel(shown.on_255(truth), name, f"clean{stretched}")]
            for result, each in zip(results, found, strict=True):
                figures = f"{each.psnr:.2f} dB, SSIM {each.ssim:.3f}"
                panels.append(Panel(shown.on_255(result), each.name, figures))
    means = np.mean(scores, axis=0).tolist()
    comparisons = [Comparison(other, *mean) for (other, _), mean in zip(others, means, strict=True)]
    return comparisons, draw_panels(panels, centre)


def _measure(truth: Array, result: Array, name: str) -> Comparison:
    if result.shape != truth.shape:
        raise InputError(
            f"{name!r} is {_describe(result)}, but the clean image is {_describe(truth)}."
        )
    large = min(truth.shape[:2]) >= SSIM_SIDE
    return Comparison(name, psnr(truth, result), ssim(truth, result) if large else float("nan"))


def _clipped(image: ImageFile, name: str, data_range: float | None, clean: Range) -> Array:
    """Return the pixels upright, from black at 0 to white at 255."""
    with about(repr(name)):
        check_finite(image.pixels)
    return np.clip(_on_255(image, data_range, clean), 0, 255)


def _on_255(image: ImageFile, data_range: float | None, clean: Range) -> Array:
    """Return the pixels upright, with white at 255; by the clean image's range if it has none."""
    return image.upright(range_of(image, data_range, clean).on_255(image.pixels))


def _display(image: ImageFile, data_range: float | None, values: Range) -> tuple[Range, str]:
    """Return which values, if white is 255, to show as black and white; say if not 0 and 255."""
    shown = display_range(image, white_of(image, data_range))
    if not shown.stretched:
        return Range(0.0, 255.0), ""
    return Range(values.on_255(shown.low), values.on_255(shown.high)), ", contrast stretched"


def _pages(count: int) -> str:
    return f"{count} page{'s' if count > 1 else ''}"


def _describe(pixels: Array) -> str:
    kind = "gray" if pixels.ndim == 2 else "color"
    return f"{pixels.shape[1]}x{pixels.shape[0]} pixels in {kind}"
