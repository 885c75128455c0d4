"""Images in parts, with a refinement: chunks of dask, and maps of sigma."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refinements import SIZES, STAGES, refined_config, refined_family
from test_dask_noise import CAMERA, PHOTONS, largest_within_reach, noisy_image

import nlnet
from nlnet.denoising.network import Network
from nlnet.network.refinement import RefinementConfig

da = pytest.importorskip("dask.array")
lazy = pytest.importorskip("nlnet.dask")
from nlnet.dask.chunks import block_sides, whole_chunks  # noqa: E402

pytestmark = [pytest.mark.numerical, pytest.mark.usefixtures("dask_in_this_thread")]

DEEP = RefinementConfig((8, 8, 8), (0, 0, 0), (0, 0))
CHUNKS: tuple[Any, ...] = ((41, 53), ((61, 1, 40, 29), (90, 53)), (5, 143))


def difference(noisy: np.ndarray, chunks: Any, sigma: Any = 12.0, **options: Any) -> float:
    """How far the result by chunks is from that of the whole array."""
    given = {"data_range": 255, "clip": True, **options}
    whole = nlnet.denoise(noisy, sigma, **given)
    array = da.from_array(noisy, chunks=chunks)
    denoised = lazy.denoise(array, sigma, **given)
    assert (denoised.chunks, denoised.dtype) == (array.chunks, array.dtype)
    return float(np.abs(denoised.compute() - whole).max())


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sizes", [SIZES, DEEP], ids=["4", "8"])
@pytest.mark.parametrize("chunks", CHUNKS)
def test_chunks_are_as_the_whole(channels: int, sizes: RefinementConfig, chunks: Any) -> None:
    """Whatever their seams: they are moved to whole units of the network."""
    shape = (131, 143) if channels == 1 else (131, 143, 3)
    noisy, family = noisy_image("white", *shape), refined_family(sizes, channels)
    assert difference(noisy, (*chunks, 3)[: len(shape)], model=family) < 1e-3


@pytest.mark.parametrize("name", ["unit", "reach"])
def test_seams_between_units_and_the_whole_halo_are_needed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail."""
    noisy, family = noisy_image("white", 131, 143), refined_family()
    less = {"unit": 1, "reach": STAGES.reach}[name]
    monkeypatch.setattr(type(family.config), name, property(lambda config: less))
    assert difference(noisy, (41, 53), model=family) > 1e-2


@pytest.mark.parametrize("chunks", [(91, 83), ((37, 174, 51), 263), (11, 40)])
def test_scales_have_seams_between_units(chunks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Correlated noise, from coarse to fine: the network sees whole units at all scales."""
    family, noisy = refined_family(DEEP), noisy_image("camera", 262, 263)
    unit, reach = family.config.unit, 30
    look = largest_within_reach(reach - unit)

    def in_units(scale: int, planes: np.ndarray, box: object) -> np.ndarray:
        """The largest value around, but the same in all of a unit."""
        shape = planes.shape
        squares = np.zeros((1, *(-(-side // unit) * unit for side in shape[1:])), np.float32)
        squares[:, : shape[1], : shape[2]] = planes
        parts = squares.reshape(1, squares.shape[1] // unit, unit, -1, unit)
        most = np.broadcast_to(parts.max(axis=(2, 4), keepdims=True), parts.shape)
        wide = most.reshape(squares.shape)[:, : shape[1], : shape[2]]
        return np.asarray(look(scale, wide, box))

    monkeypatch.setattr(Network, "_elsewhere", lambda *_: in_units)
    options = {"model": family, "noise": CAMERA, "clip": False, "sigma": None}
    monkeypatch.setattr(type(family.config), "reach", property(lambda config: reach))
    assert difference(noisy, chunks, **options) == 0
    monkeypatch.setattr(type(family.config), "unit", property(lambda config: 1))
    assert difference(noisy, chunks, **options) > 0


def test_correlated_noise_and_photons_across_seams() -> None:
    noisy, family = noisy_image("camera", 150, 163), refined_family()
    for noise, near in ((CAMERA, 0.3), (PHOTONS, 2e-3)):
        assert difference(noisy, (61, 83), sigma=None, noise=noise, model=family) < near


@pytest.mark.engineless
def test_whole_chunks_begin_between_units() -> None:
    assert whole_chunks((5, 4, 1, 3), 4) == (4, 4, 5)
    assert whole_chunks((3, 3), 8) == (6,)
    assert whole_chunks((8, 16, 1), 8) == (8, 16, 1)


@pytest.mark.engineless
@pytest.mark.parametrize(
    ("units", "whole"),
    [((1, 1), (True, True)), ((100, 64), (True, True)), ((333, 1), (False, True))],
)
def test_blocks_of_files_have_whole_units(units: Any, whole: Any) -> None:
    """Where that is possible: otherwise a block needs its neighbours to be written."""
    config = refined_config(DEEP)
    sides = block_sides(units, (1, 1, 9000, 9000), config, threads=1, itemsize=4)
    assert all(side % unit == 0 for side, unit in zip(sides, units, strict=True))
    assert tuple(side % config.unit == 0 for side in sides) == whole


# --- Maps of sigma ----------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_a_map_of_one_value_is_a_number(channels: int) -> None:
    noisy = noisy_image("white", *(37, 45, 3)[: 2 if channels == 1 else 3])
    family = refined_family(channels=channels)
    results = [
        nlnet.denoise(noisy, sigma, model=family, data_range=255, clip=True)
        for sigma in (13.0, np.full((37, 45), 13.0))
    ]
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("sizes", [SIZES, DEEP], ids=["4", "8"])
def test_two_strengths_far_apart_are_each_as_alone(sizes: RefinementConfig) -> None:
    """Each is denoised in a part of its own, which begins between units."""
    family, noisy = refined_family(sizes), noisy_image("white", 131, 143)
    values = np.full(noisy.shape, 10.0)
    values[101:, 107:] = 30.0
    options: dict[str, Any] = {"model": family, "data_range": 255, "clip": True}
    result = nlnet.denoise(noisy, values, **options)
    for sigma in (10.0, 30.0):
        there = values == sigma
        alone = nlnet.denoise(noisy, sigma, **options)
        np.testing.assert_allclose(result[there], alone[there], rtol=0, atol=1e-3)
    weak, strong = (nlnet.denoise(noisy, sigma, **options) for sigma in (10.0, 30.0))
    assert np.abs(weak - strong).max() > 5


def test_a_map_that_varies_whole_and_in_chunks() -> None:
    family, noisy = refined_family(), noisy_image("white", 90, 143)
    ramp = np.broadcast_to(np.geomspace(4.0, 40.0, 143), noisy.shape)
    result = nlnet.denoise(noisy, ramp, model=family, data_range=255, clip=True)
    for column in (0, 142):
        alone = nlnet.denoise(noisy, ramp[0, column], model=family, data_range=255, clip=True)
        np.testing.assert_allclose(result[:, column], alone[:, column], rtol=0, atol=1e-3)
    assert difference(noisy, (90, 61), sigma=ramp, model=family) < 1e-3
