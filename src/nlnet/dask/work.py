"""What is the same for all chunks of pages that are denoised."""

from __future__ import annotations

import dataclasses

from nlnet.arrays import Array
from nlnet.dask.masks import find_hidden
from nlnet.dask.sigma_maps import map_of_block
from nlnet.denoising.camera import Place, scales_of
from nlnet.denoising.network import Network
from nlnet.denoising.plan import Plan
from nlnet.denoising.series_pages import PlannedPage
from nlnet.denoising.strength import Shares
from nlnet.inputs import check_finite, to_planes
from nlnet.masks import Mask, Planes, fill
from nlnet.model.loading import ModelLike
from nlnet.noise.record import Camera


@dataclasses.dataclass(frozen=True)
class Work:
    """How to denoise the chunks of pages.

    Parameters
    ----------
    model, quality
        As for `nlnet.denoise`.
    reach : int
        How far the network looks.
    unit : int
        Pixels along a side that belong together for it.
    shape : (C, H, W)
        Shape of a page at the full size.
    image_axes : (int, int)
        The axes of rows and columns, counted from the end.
    channel_axis : int or None
        That of the channels, counted from the end.
    shares : (luma, chroma)
        How much of the noise is removed.
    threads, max_memory, device
        As for `nlnet.denoise`, for the work on one chunk.
    """

    model: ModelLike
    quality: str | None
    reach: int
    unit: int
    shape: tuple[int, int, int]
    image_axes: tuple[int, int]
    channel_axis: int | None
    shares: Shares
    threads: int
    max_memory: int | None
    device: str

    def mask_axes(self, ndim: int) -> tuple[int, ...]:
        """Return the axes of an array that a mask has as well: all but that of the channels."""
        channels = None if self.channel_axis is None else self.channel_axis % ndim
        return tuple(axis for axis in range(ndim) if axis != channels)

    def read_page(
        self,
        block: Array,
        hidden: Mask | None,
        maps: Array | None,
        index: tuple[int, ...],
        plan: Plan,
    ) -> PlannedPage | None:
        """Return a page of a block, checked, with what is left out filled; None if that is all.

        `hidden` and `maps` are blocks of the mask and of maps of sigma, if there are such.
        """
        original = to_planes(block[index], self.channel_axis)
        left_out = find_hidden(original, None if hidden is None else hidden[index])
        if left_out is not None and left_out.all():
            return None
        planes = original if left_out is None else fill(original, left_out)
        check_finite(planes)
        sigma_map = None
        if maps is not None and plan.sigmas is not None:
            magnitude = max(map(abs, plan.values))
            sigma_map = map_of_block(maps[index], left_out, plan.sigmas, magnitude)
        page = Planes(planes, left_out, self.channel_axis, block[index])
        return PlannedPage(page, plan, sigma_map)

    def network(self) -> Network:
        """Return what removes noise."""
        machine = self.threads, self.max_memory, self.device
        return Network.of(self.model, self.shape[0], self.quality, *machine)

    def scales(self, plan: Plan) -> int:
        """Return at how many scales noise is removed; 0 if it is not correlated."""
        if plan.idle or not isinstance(plan.noise, Camera):
            return 0
        return scales_of(plan.noise, self.shape)

    def place(self, scale: int, rows: Array, columns: Array) -> Place:
        """Return where in the image, at some scale, these rows and columns are."""
        size = self.shape[1] >> scale, self.shape[2] >> scale
        return Place(scale, size, (int(rows[0]), int(columns[0])))

    def shares_at(self, scale: int) -> Shares:
        """Return how much is removed at a scale: blending is for the full size only."""
        luma, chroma = self.shares
        return self.shares if scale == 0 else (max(luma, 1.0), max(chroma, 1.0))
