"""What is the same for all chunks of pages that are denoised."""

from __future__ import annotations

import dataclasses

from nlnet.dask.pages import PagePlan
from nlnet.denoising.coarse_to_fine import scales_for
from nlnet.denoising.removal import Network
from nlnet.denoising.strength import Shares
from nlnet.model.loading import ModelLike, choose_model
from nlnet.noise.deciding import pyramid_sigmas


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

    def network(self) -> Network:
        """Return what removes noise."""
        return Network(
            choose=lambda sigma: choose_model(self.model, self.shape[0], sigma, self.quality),
            threads=self.threads,
            max_memory=self.max_memory,
            device=self.device,
        )

    def sigmas(self, plan: PagePlan) -> tuple[float, ...]:
        """Return the sigma to remove at each scale; empty if the noise is not correlated."""
        if plan.idle or not plan.noise.correlated:
            return ()
        return pyramid_sigmas(plan.noise)[: scales_for(self.shape, len(plan.noise.octaves))]
