"""Plans for pages: their noise, data range and limits, known now or when they are computed."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any, cast

import dask.array as da
import numpy as np
from dask.delayed import delayed

from nlnet.arrays import Array, Box
from nlnet.dask.chunks import computed_apart, image_axes, stand_in
from nlnet.dask.samples import SampledPlanes
from nlnet.dask.sampling import lazy_object, sample_planes
from nlnet.dask.sigma_maps import extremes
from nlnet.denoising.image import FAR_ABOVE, find_box, nothing_to_remove
from nlnet.denoising.pages import Sigma, check_pages, sigma_of_pages
from nlnet.denoising.sigma_map import check_extremes
from nlnet.inputs import DATA_RANGES, check_dtype, find_data_range, to_planes
from nlnet.noise.correlation import SCALES
from nlnet.noise.deciding import decide_noise, pyramid_sigmas
from nlnet.noise.record import Noise


@dataclasses.dataclass(frozen=True)
class PagePlan:
    """How to denoise a page.

    Parameters
    ----------
    noise : Noise
        The noise to remove.
    span : float
        The data range.
    box : (low, high) or None
        Values that the result is kept in.
    average : float
        Standard deviation of the noise on average over the page.
    sigmas : (low, high) or None
        The least and the largest value of a map of sigma, if there is one.
    """

    noise: Noise
    span: float
    box: Box | None
    average: float
    sigmas: tuple[float, float] | None = None

    @property
    def idle(self) -> bool:
        """Whether the page stays as it is."""
        return nothing_to_remove(self.noise, self.span)

    def to_json(self) -> str:
        """Return the plan as a line of JSON."""
        values = dataclasses.asdict(self) | {"noise": self.noise.to_json()}
        return json.dumps(values, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> PagePlan:
        """Read what :meth:`to_json` wrote."""
        values = json.loads(text)
        pairs = {name: values[name] and tuple(values[name]) for name in ("box", "sigmas")}
        return cls(**values | pairs | {"noise": Noise.from_json(values["noise"])})


@dataclasses.dataclass(frozen=True)
class Request:
    """What a user says about the noise and the values of an array, as for `nlnet.dask.denoise`.

    A map of sigma is not a part of it, but `mapped` says that there is one.
    """

    sigma: Sigma = None
    noise: str | Noise | None = None
    data_range: float | None = None
    clip: bool | None = None
    mapped: bool = False

    @property
    def scales(self) -> int:
        """At how many scales noise may have to be removed."""
        if isinstance(self.noise, Noise):
            return len(pyramid_sigmas(self.noise)) if self.noise.correlated else 1
        estimated = self.noise is None and self.sigma is None and not self.mapped
        return SCALES if estimated or self.noise == "camera" else 1

    @property
    def estimates(self) -> bool:
        """Whether the noise, or a part of it, has to be estimated."""
        if isinstance(self.noise, Noise) or self.mapped:
            return False
        return self.sigma is None or self.noise == "camera"

    def looks(self, dtype: np.dtype[Any]) -> bool:
        """Tell whether the values have to be looked at before a page can be denoised."""
        native = dtype.newbyteorder("=")
        if self.estimates or (self.data_range is None and DATA_RANGES[native] is None):
            return True
        if dtype.kind == "u" and (self.data_range or math.inf) >= np.iinfo(native).max:
            return False  # no value can lie outside
        if self.clip is None:
            return True
        # What is clipped must not be most of the image, because of a wrong range.
        return self.clip and self.data_range is not None

    def plan(self, planes: Array, sigma: float | None) -> PagePlan:
        """Decide how to denoise (C, H, W) planes, given them or a sample of them."""
        span = find_data_range(planes, self.data_range)
        noise = decide_noise(planes, span, sigma, self.noise)
        box = None
        if noise.kind != "none":
            box = find_box(planes, span, noise, self.clip, self.data_range)
        return PagePlan(noise, span, box, noise.average_sigma(float(planes.mean())))

    def plan_map(self, planes: Array, low: float, high: float) -> PagePlan:
        """Decide how to denoise planes that have a map of sigma between these extremes."""
        check_extremes(low, high, find_data_range(planes, self.data_range))
        return dataclasses.replace(self.plan(planes, high), sigmas=(low, high))


def plan_pages(
    array: da.Array,
    request: Request,
    *,
    channel_axis: int | None,
    stacked: int,
    hidden: da.Array | None = None,
    maps: da.Array | None = None,
) -> da.Array:
    """Return a plan for each page, chunked as the first axes of the array.

    Where values have to be looked at, that is done when it is computed, and then once more for the
    denoising: otherwise all chunks would wait in memory until the last of them has been looked at.
    `hidden` are pixels that are left out, of the shape of the pages and (H, W); those of every page
    are counted. `maps` are maps of sigma, of the same shape.

    Raises
    ------
    InputError
        If the array or the request cannot be used.
    """
    page = stand_in(array, stacked)
    check_dtype(page)
    _, channels = image_axes(page, channel_axis)
    leading = array.shape[:stacked]
    sigmas = sigma_of_pages(request.sigma, leading)
    check_pages(sigmas, request.noise, array.dtype, request.data_range)
    looks = hidden is not None or request.looks(array.dtype)
    gray = _gray_planes(1 if channels is None else page.shape[channels], array.dtype, request)
    if 0 in leading or (not looks and maps is None):
        plans = np.empty(leading, object)
        for index in np.ndindex(leading):
            plans[index] = request.plan(gray, sigmas.item(index))
        return from_known(plans, array)
    copy = computed_apart(array)
    hidden, maps = (each if each is None else computed_apart(each) for each in (hidden, maps))
    limit = math.inf if request.data_range is None else FAR_ABOVE * request.data_range
    found = []
    for index in np.ndindex(leading):
        left_out = None if hidden is None else hidden[index]
        sample: Any = gray
        if looks:
            sample = sample_planes(
                to_planes(copy[index], channels),
                left_out,
                tiles=request.estimates and request.noise != "white",
                patches=request.estimates,
                limit=limit,
            )
        sigma = sigmas.item(index) if maps is None else extremes(maps[index], left_out)
        found.append(lazy_object(delayed(_plan)(sample, request, sigma)))
    lazy = da.stack(found).reshape(leading) if stacked else found[0]
    return cast(da.Array, lazy.rechunk(array.chunks[:stacked]))


def _gray_planes(channels: int, dtype: np.dtype[Any], request: Request) -> Array:
    """Return an image of middle gray, which stands for pages that need not be looked at."""
    span = request.data_range or DATA_RANGES[dtype.newbyteorder("=")] or 1.0
    return np.full((channels, 1, 1), span / 2).astype(dtype)


def from_known(plans: Array, array: da.Array) -> da.Array:
    """Return plans that are known as a dask array, chunked as the first axes of `array`."""
    chunked = da.from_array(plans, chunks=array.chunks[: plans.ndim], name=False)
    return cast(da.Array, chunked)


def _plan(sample: Array | SampledPlanes, request: Request, sigma: float | Array | None) -> PagePlan:
    planes = cast(Array, sample)
    if isinstance(sigma, np.ndarray):
        return request.plan_map(planes, *map(float, sigma))
    return request.plan(planes, sigma)
