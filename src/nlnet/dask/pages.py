"""Plans for the pages of dask arrays: known now, or when they are computed."""

import dataclasses
import math
import warnings
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.delayed import delayed

from nlnet.arrays import Array
from nlnet.dask.chunks import Layout, LazyPages
from nlnet.dask.estimation import lazy_scalar, sample_planes
from nlnet.dask.masks import extremes
from nlnet.denoising.image import unclipped_warning
from nlnet.denoising.pages import Sigma, find_axis, groups_of_pages, sigma_of_pages
from nlnet.denoising.plan import Plan, Request, make_plan
from nlnet.engine.estimates import sampled_pages
from nlnet.errors import InputError
from nlnet.inputs import DATA_RANGES, to_planes
from nlnet.noise.camera import Camera
from nlnet.noise.record import SCALES, Noise, NoNoise
from nlnet.noise.sample import Sample

_MISSING = Plan(NoNoise(), 1.0, 1.0, 0.0, None, 0.0, idle=True, unclipped=False, values=(0.0, 0.0))
"""For a page that is not there."""


@dataclasses.dataclass(frozen=True)
class PagesRequest:
    """What a user says about the pages of an array, as for `nlnet.dask.denoise`.

    A map of sigma is not a part of it, but `mapped` says that there is one. With `warns`, what is
    found is warned of when it is computed.
    """

    request: Request
    sigma: Sigma = None
    mapped: bool = False
    per_page: bool = False
    noise_axis: int | None = None
    along: int | None = None
    warns: bool = False

    @property
    def scales(self) -> int:
        """At how many scales noise may have to be removed."""
        noise = self.request.noise
        if isinstance(noise, Noise):
            return SCALES if isinstance(noise, Camera) else 1
        estimated = noise is None and self.sigma is None and not self.mapped
        return SCALES if estimated or noise == "camera" else 1

    @property
    def estimates(self) -> bool:
        """Whether the noise, or a part of it, has to be estimated."""
        noise = self.request.noise
        if isinstance(noise, Noise) or self.mapped:
            return False
        return self.sigma is None or noise == "camera"

    def looks(self, dtype: np.dtype[Any]) -> bool:
        """Tell whether the limits of a page depend on its values, even if its noise is known."""
        native, data_range = dtype.newbyteorder("="), self.request.data_range
        if data_range is None and DATA_RANGES[native] is None:
            return True
        if dtype.kind == "u" and (data_range or math.inf) >= np.iinfo(native).max:
            return False  # no value can lie outside
        # What is clipped must not be most of the image, because of a wrong range.
        clip = self.request.clip
        return clip is None or (clip and data_range is not None)


def plan_pages(pages: LazyPages, asked: PagesRequest, layout: Layout) -> da.Array:
    """Return a plan for each page, chunked as the first axes of the pages.

    Values are looked at when it is computed, and then once more for the denoising: otherwise all
    chunks would wait in memory until the last of them has been looked at. Pixels that are left out
    are counted for every page.

    Raises
    ------
    InputError
        If the array or the request cannot be used.
    """
    array, leading = pages.values, layout.pages
    sigmas = sigma_of_pages(asked.sigma, leading)
    for sigma in (*sigmas.ravel(), pages.maps):
        asked.request.check(sigma, array.dtype)
    if asked.along is not None:
        find_axis(asked.along, leading)
    groups = groups_of_pages(leading, asked.noise_axis, per_page=asked.per_page or asked.mapped)
    if 0 in leading:
        return from_known(np.empty(leading, object), array)
    copy, hidden, maps = pages.apart()

    def sample(index: tuple[int, ...], *, estimates: bool, count: int = 1) -> Any:
        left_out = None if hidden is None else hidden[index]
        planes = to_planes(copy[index], layout.channel_axis)
        missing = asked.along is not None
        return sample_planes(planes, left_out, estimates=estimates, pages=count, missing=missing)

    found = np.empty(leading, object)
    for group in np.unique(groups):
        members = [tuple(index) for index in np.argwhere(groups == group).tolist()]
        common: Any = None
        if len(members) > 1:
            chosen = [members[number] for number in sampled_pages(len(members))]
            samples = [
                sample(each, estimates=asked.estimates, count=len(chosen)) for each in chosen
            ]
            common = delayed(_plan_together)(samples, sigmas.item(members[0]), asked.request)
        for index in members:
            given = sigmas.item(index)
            if maps is not None:
                given = extremes(maps[index], None if hidden is None else hidden[index])
            own = None
            if common is None or hidden is not None or asked.looks(array.dtype):
                own = sample(index, estimates=asked.estimates and common is None)
            found[index] = lazy_scalar(delayed(_plan)(own, given, asked, common))
    lazy = da.stack(found.ravel().tolist()).reshape(leading) if leading else found.item()
    return cast(da.Array, lazy.rechunk(array.chunks[: len(leading)]))


def from_known(plans: Array, array: da.Array) -> da.Array:
    """Return plans that are known as a dask array, chunked as the first axes of `array`."""
    chunked = da.from_array(plans, chunks=array.chunks[: plans.ndim], name=False)
    return cast(da.Array, chunked)


def _plan_together(samples: list[Sample | None], sigma: float | None, request: Request) -> Plan:
    there = [sample for sample in samples if sample is not None]
    if not there:
        raise InputError(f"All of the {len(samples)} pages looked at are masked or NaN.")
    return make_plan(Sample.together(there), sigma, request)


def _plan(
    sample: Sample | None, sigma: float | Array | None, asked: PagesRequest, common: Plan | None
) -> Plan:
    """Decide how to denoise a page: by its own sample, or as all pages together."""
    if sample is None:
        # Nothing was to be found out about the page, or it is missing.
        return _MISSING if common is None else common.of_strength(cast("float | None", sigma))
    if isinstance(sigma, np.ndarray):
        low, high = map(float, sigma)
        plan = make_plan(sample, (low, high), asked.request)
    else:
        plan = make_plan(sample, sigma, asked.request, common)
    if asked.warns and plan.unclipped:
        warnings.warn(unclipped_warning(plan), stacklevel=2)
    return plan
