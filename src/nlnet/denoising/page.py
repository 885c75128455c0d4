"""One page: its noise found and removed, and what there is to say about it.

Arrays, stacks, files, and uploads of the web page all go through here, once their values have been
checked. What is found is returned, not warned of.

The engine removes white noise, noise that depends on the brightness, and camera noise
(`nlnet.engine.removal`). Noise that varies from pixel to pixel is removed at several strengths
(`nlnet.denoising.sigma_map`).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Array, FloatArray
from nlnet.denoising.hot_pixels import fill_hot_pixels, hot_pixels_of
from nlnet.denoising.network import Network
from nlnet.denoising.plan import Plan, Request, make_plan
from nlnet.denoising.sigma_map import SigmaMap, is_map, read_map, remove_varying
from nlnet.engine import planes
from nlnet.engine.estimates import sampled_pages
from nlnet.engine.removal import Part
from nlnet.errors import InputError
from nlnet.inputs import Shares
from nlnet.masks import Planes
from nlnet.noise import store
from nlnet.noise.record import Noise
from nlnet.noise.sample import Sample
from nlnet.noise.stabilisation import engine_noise
from nlnet.progress import Report


@dataclasses.dataclass(frozen=True)
class PageFindings:
    """What there is to say about a page that was denoised.

    Parameters
    ----------
    plan : Plan
        What its noise is, and what was done about it.
    models : tuple of str
        The names of the models that ran; empty if none did.
    left_out : int
        Number of pixels that are masked or NaN.
    hot : int
        Number of hot and dead pixels that were filled, of all channels.
    error : array or None
        Standard deviation of the error of every pixel, NaN where one is left out; if it was asked
        for.
    """

    plan: Plan
    models: tuple[str, ...]
    left_out: int
    hot: int = 0
    error: Array | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class PlannedPage:
    """A page, what is done about its noise, and the map of its sigma if there is one."""

    page: Planes
    plan: Plan
    sigma_map: SigmaMap | None = None
    hot: int = 0
    """Number of its hot and dead pixels that were filled, of all channels."""

    @classmethod
    def of(
        cls,
        page: Planes,
        sigma: float | npt.ArrayLike | None,
        request: Request,
        common: Plan | None = None,
        dtype: np.dtype[Any] | None = None,
    ) -> "PlannedPage":
        """Decide how to denoise a page, and fill its hot pixels if that is asked for.

        Parameters
        ----------
        page : Planes
            The page.
        sigma : float, array or None
            Standard deviation of its noise, or a map of it, as for `nlnet.denoise`.
        request : Request
            What else the user says about it.
        common : Plan, optional
            The plan of all pages of a stack together.
        dtype : dtype, optional
            That of the result, if it is another than the page's.

        Raises
        ------
        InputError
            As `nlnet.denoise`.
        """
        plan, sigma_map = plan_page(page, sigma, request, common)
        count = 0
        if request.hot_pixels:
            hot = hot_pixels_of(page.planes, plan.noise)
            page = dataclasses.replace(page, planes=fill_hot_pixels(page.planes, hot))
            count = int(np.count_nonzero(hot))
        return cls(page.cast(dtype), plan, sigma_map, count)

    def part(self, region: tuple[slice, slice]) -> "PlannedPage | None":
        """Return some rows and columns of it; None if all of them are left out."""
        page, sigma_map = self.page.part(region), self.sigma_map
        if sigma_map is not None:
            sigma_map = dataclasses.replace(sigma_map, values=sigma_map.values[region])
        return None if page is None else PlannedPage(page, self.plan, sigma_map)

    def findings(self, models: tuple[str, ...] = (), error: Array | None = None) -> PageFindings:
        """Return what there is to say about it once it is denoised."""
        return PageFindings(self.plan, models, self.page.left_out, self.hot, error)


def denoise_page(
    found: PlannedPage, network: Network, report: Report, *, error: bool = False
) -> tuple[Array, PageFindings]:
    """Return the denoised image, of the kind that the page was, and what was found.

    Parameters
    ----------
    found : PlannedPage
        The page.
    network, report
        As for `denoise_planes`.
    error : bool
        Whether to find the standard deviation of the error of every pixel, too.

    Raises
    ------
    InputError, ModelError, Cancelled
        As `nlnet.denoise`.
    """
    page, plan, sigma_map = found.page, found.plan, found.sigma_map
    unblended = page.planes.astype(np.float32) if error else None
    restored, models = denoise_planes(
        page.planes, plan, network, report, sigma_map=sigma_map, unblended=unblended
    )
    errors = None
    if unblended is not None:
        from nlnet.denoising.error_maps import error_map

        errors = page.like(error_map(page.planes, unblended, plan, sigma_map, network))
    return page.put_back(restored), found.findings(models, errors)


def plan_page(
    page: Planes,
    sigma: float | npt.ArrayLike | None,
    request: Request,
    common: Plan | None = None,
) -> tuple[Plan, SigmaMap | None]:
    """Decide how to denoise a page; parameters as for `PlannedPage.of`."""
    sample = Sample.of(page.planes)
    sigma_map = None
    given: float | tuple[float, float] | None
    if is_map(sigma):
        assert sigma is not None
        sigma_map = read_map(sigma, page.planes.shape[1:], page.hidden, sample.magnitude)
        given = sigma_map.low, sigma_map.high
    else:
        given = sigma  # type: ignore[assignment]
    plan = make_plan(sample, given, request, common)
    if sigma_map is not None:
        plan = dataclasses.replace(plan, average=float(sigma_map.values.mean()))
    return plan, sigma_map


def plan_together(
    count: int, planes_of: Callable[[int], Array | None], sigma: float | None, request: Request
) -> Plan:
    """Decide how to denoise pages that have their noise in common, from some of them.

    Parameters
    ----------
    count : int
        Number of pages, at least 1.
    planes_of : callable
        Called with the number of a page; returns its (C, H, W) planes, of finite values, or None
        for a page that is missing, for which the next one is taken.
    sigma : float or None
        Standard deviation of their noise, if it is given.
    request : Request
        What else the user says.

    Raises
    ------
    InputError
        If all pages are missing, or as `make_plan`.
    """
    chosen = sampled_pages(count)
    samples = []
    for number in chosen:
        following = (planes_of((number + step) % count) for step in range(count))
        planes = next((each for each in following if each is not None), None)
        if planes is None:
            raise InputError(f"All {count} pages are masked or NaN.")
        samples.append(Sample.of(planes, len(chosen)).kept())
    return make_plan(Sample.together(samples), sigma, request)


def denoise_planes(
    planes: Array,
    plan: Plan,
    network: Network,
    report: Report,
    *,
    part: Part | None = None,
    sigma_map: SigmaMap | None = None,
    unblended: npt.NDArray[np.float32] | None = None,
) -> tuple[Array, tuple[str, ...]]:
    """Return (C, H, W) planes without their noise, of the same dtype, and the models that ran.

    Nothing is checked: that is done where users' values come in.

    Parameters
    ----------
    planes : (C, H, W) array
        The image, in its own dtype and units.
    plan : Plan
        What to do, in the same units.
    network : Network
        What removes it, and how much of it.
    report : callable
        Called with the share of the work done; an exception it raises stops the work.
    part : Part, optional
        For camera noise of a part of an image, at one scale: which part it is.
    sigma_map : SigmaMap, optional
        The noise of every pixel; for white noise.
    unblended : (C, H, W) array, optional
        Takes the result before it is blended and rounded, unless the plan is idle.
    """
    if plan.idle:
        report(1.0)
        return planes.copy(), ()
    restored = np.empty_like(planes)
    network = dataclasses.replace(network, span=plan.span, black=plan.black, box=plan.box)
    if sigma_map is None and unblended is None:
        return restored, network.remove(planes, plan.noise, restored, report, part)
    used = used_shares(network, plan.noise)

    def write(first: int, rows: FloatArray) -> None:
        here = slice(first, first + rows.shape[1])
        if unblended is not None:
            unblended[:, here] = rows
        restored[:, here] = store(blend(planes[:, here], rows, used), restored.dtype)

    # More noise than there is may be removed, but nothing is blended yet.
    network = network.unblended()
    if sigma_map is not None:
        return restored, remove_varying(planes, write, sigma_map, network, report)
    sure = dataclasses.replace(plan.noise, certainty=1.0)
    return restored, network.remove(planes, sure, write, report, part)


def used_shares(network: Network, noise: Noise) -> Shares:
    """Return the shares of what networks remove that are taken from the image, up to 1."""
    return engine_noise(noise).shares(network.strength)


def blend(noisy: Array, denoised: FloatArray, shares: Shares) -> FloatArray:
    """Return (C, H, W) planes between the noisy and the denoised ones.

    Examples
    --------
    >>> noisy, denoised = np.full((1, 1, 1), 100.0), np.full((1, 1, 1), 104.0)
    >>> blend(noisy, denoised, (0.25, 0.25)).item()
    101.0
    """
    luma, chroma = (min(share, 1.0) for share in shares)
    return denoised if luma == chroma == 1 else planes.blend(noisy, denoised, (luma, chroma))
