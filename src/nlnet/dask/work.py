"""What is the same for all chunks of pages that are denoised."""

from __future__ import annotations

import dataclasses
import os

from nlnet.arrays import Array, Float32Array
from nlnet.dask.chunks import Layout
from nlnet.dask.masks import find_hidden, map_of_block
from nlnet.denoising.network import Network
from nlnet.denoising.page import PlannedPage
from nlnet.denoising.plan import Plan
from nlnet.engine.removal import Part, scales_of
from nlnet.inputs import check_finite, to_planes
from nlnet.masks import Mask, Planes, fill
from nlnet.model import loading
from nlnet.model.loading import ModelLike
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import check_size
from nlnet.noise.camera import Camera
from nlnet.noise.stabilisation import engine_noise


@dataclasses.dataclass(frozen=True)
class Work:
    """How to denoise the chunks of pages.

    Parameters
    ----------
    network : Network
        What removes noise, and how much of it.
    config : NetworkConfig
        How far it looks, and how many pixels along a side belong together for it.
    layout : Layout
        The axes of the array, and the shape of a page at the full size.
    """

    network: Network
    config: NetworkConfig
    layout: Layout

    @classmethod
    def of(cls, layout: Layout, network: Network) -> Work:
        """Return the work on pages with a network."""
        _, height, width = layout.shape
        # All models of a family reach equally far, so any sigma does.
        config = network.choose(25.0).config
        check_size(height, width, config)
        return cls(network, config, layout)

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
        original = to_planes(block[index], self.layout.channel_axis)
        left_out = find_hidden(original, None if hidden is None else hidden[index])
        if left_out is not None and left_out.all():
            return None
        planes = original if left_out is None else fill(original, left_out)
        check_finite(planes)
        sigma_map = None
        if maps is not None and plan.sigmas is not None:
            magnitude = max(map(abs, plan.values))
            sigma_map = map_of_block(maps[index], left_out, plan.sigmas, magnitude)
        page = Planes(planes, left_out, self.layout.channel_axis, block[index])
        return PlannedPage(page, plan, sigma_map)

    def scales(self, plan: Plan) -> int:
        """Return at how many scales noise is removed; 0 if it is not correlated."""
        if plan.idle or not isinstance(plan.noise, Camera):
            return 0
        return scales_of(engine_noise(plan.noise), self.layout.shape)

    def part(self, scale: int, rows: Array, columns: Array, change: Float32Array | None) -> Part:
        """Return where in the image, at some scale, these rows and columns are."""
        size = self.layout.shape[1] >> scale, self.layout.shape[2] >> scale
        return Part(scale, size, (int(rows[0]), int(columns[0])), change)


def sent_model(model: ModelLike) -> ModelLike:
    """Return what goes along with the chunks: a model of the user's, but of ours the name."""
    shipped = loading.shipped_models()
    named = model in (loading.AUTO, *shipped, *map(loading.family_of, shipped))
    if isinstance(model, (str, os.PathLike)) and not named and os.path.exists(model):
        return loading.load_model(model)
    return model
