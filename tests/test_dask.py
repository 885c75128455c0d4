"""Dask arrays: the result of the whole array at once, inside chunks and at their seams."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from cases import few_levels, noise, to_working_planes
from pictures import noisy_pixels, one_stage, small_model

import nlnet
from nlnet.errors import InputError, ModelError
from nlnet.model.loading import load_model
from nlnet.model.model import Model
from nlnet.network.matching import find_groups
from tests.messages import refused

pytestmark = [pytest.mark.numerical, pytest.mark.usefixtures("dask_in_this_thread")]

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
lazy = pytest.importorskip("nlnet.dask")

SHIPPED = ("gray-5x5-s25", "gray-7x7-s25", "color-5x5-s25")


def noisy_image(model: Model, height: int, width: int) -> np.ndarray:
    shape = (height, width) if model.config.channels == 1 else (height, width, 3)
    edges = np.add.outer(np.arange(height) // 29, np.arange(width) // 31) % 2
    return (noise(*shape) + 60 * edges.reshape(height, width, *[1] * (len(shape) - 2))).astype("f4")


def in_memory(noisy: np.ndarray, model: Model) -> np.ndarray:
    return nlnet.denoise(noisy, 25, model=model, data_range=255)


def assert_same(noisy: np.ndarray, model: Model, chunks: Any) -> None:
    array = da.from_array(noisy, chunks=chunks)
    denoised = lazy.denoise(array, 25, model=model, data_range=255)
    assert (denoised.chunks, denoised.dtype) == (array.chunks, array.dtype)
    np.testing.assert_allclose(denoised.compute(), in_memory(noisy, model), rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("chunks", [(37, 53), ((61, 1, 40, 29), (90, 53)), (5, 143)])
def test_one_stage_in_all_directions(name: str, chunks: Any) -> None:
    model = one_stage(name)
    chunks = chunks if model.config.channels == 1 else (*chunks, 2)
    assert_same(noisy_image(model, 131, 143), model, chunks)


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("upright", [False, True])
def test_whole_networks_across_a_seam(name: str, upright: bool) -> None:
    """Long and narrow: the reach of 170 or 180 pixels in one direction, in little time."""
    model = load_model(name)
    noisy = noisy_image(model, 17, 2 * model.config.reach + 31)
    chunks = (9, model.config.reach + 13, 3)
    if upright:
        noisy, chunks = noisy.swapaxes(0, 1), (chunks[1], chunks[0], 3)
    assert_same(noisy, model, chunks[: noisy.ndim])


@pytest.mark.parametrize("name", SHIPPED)
def test_a_halo_smaller_by_half_a_stage_is_not_enough(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above can fail: the reach is needed."""
    model = one_stage(name)
    noisy = noisy_image(model, 60, 143)
    less = model.config.reach // 2
    monkeypatch.setattr(type(model.config), "reach", property(lambda config: less))
    array = da.from_array(noisy, chunks=(60, 71, 3)[: noisy.ndim])
    denoised = lazy.denoise(array, 25, model=model, data_range=255).compute()
    assert np.abs(denoised - in_memory(noisy, model)).max() > 1e-3


@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("ties", [False, True])
def test_groups_to_the_bit(name: str, ties: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The very blocks that are denoised have, but for their halos, the groups of the whole."""
    model = one_stage(name)
    noisy = noisy_image(model, 131, 143)
    if ties:
        noisy = 50 * few_levels(*noisy.shape)
    weights = np.random.default_rng(0).integers(1, 2**40, (model.config.group_size, 2))

    def fingerprints(
        planes: np.ndarray, *_: object, **__: object
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        luminance = to_working_planes(planes.astype(np.float32))[:1]
        groups = find_groups(luminance, model.config, threads=1)[0]
        found = np.sum(groups * weights, axis=(-2, -1)).astype(np.float64)
        return np.broadcast_to(found, planes.shape), ()

    monkeypatch.setattr("nlnet.dask.blocks.denoise_planes", fingerprints)
    array = da.from_array(noisy.astype(np.float64), chunks=(37, 53, 3)[: noisy.ndim])
    blocks = lazy.denoise(array, 25, model=model, data_range=255).compute()
    whole, _ = fingerprints(noisy[np.newaxis] if noisy.ndim == 2 else np.moveaxis(noisy, -1, 0))
    np.testing.assert_array_equal(blocks.reshape(*blocks.shape[:2], -1)[..., 0], whole[0])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64, ">u2"])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_dtype(dtype: Any, channels: int) -> None:
    noisy = noisy_pixels(np.dtype(dtype).newbyteorder("="), channels).astype(dtype)
    model = small_model(channels)
    denoised = lazy.denoise(
        da.from_array(noisy, chunks=22), nlnet.estimate_sigma(noisy), model=model
    )
    assert denoised.dtype == noisy.dtype
    assert isinstance(denoised._meta, np.ndarray)
    wanted = nlnet.denoise(noisy, nlnet.estimate_sigma(noisy), model=model)
    step = 1 if noisy.dtype.kind == "u" else 1e-5
    assert np.abs(denoised.compute().astype(float) - wanted.astype(float)).max() <= step


def test_channels_first_and_unclipped(color_model: Model) -> None:
    noisy = np.moveaxis(2 * noisy_pixels(np.float32, 3), -1, 0)
    array = da.from_array(noisy, chunks=(1, 23, 30))
    options = {"model": color_model, "channel_axis": 0, "clip": False}
    denoised = lazy.denoise(array, 0.2, **options).compute()
    assert denoised.max() > 1
    np.testing.assert_allclose(denoised, nlnet.denoise(noisy, 0.2, **options), rtol=0, atol=4e-6)


@pytest.mark.parametrize("chunks", [(1, 1, 24, 32), (2, 3, 21, 32), (2, 2, 9, 11)])
def test_stacks_page_by_page(gray_model: Model, chunks: Any) -> None:
    pages = [[noisy_pixels(np.uint8, seed=3 * t + z) for z in range(3)] for t in range(2)]
    stack = da.from_array(np.array(pages), chunks=chunks)
    for sigma in (25, None):
        denoised = lazy.denoise(stack, sigma, model=gray_model, stacked=2)
        wanted = nlnet.denoise_stack(np.array(pages), sigma, model=gray_model)
        assert denoised.chunks == stack.chunks
        assert np.abs(denoised.compute().astype(int) - wanted).max() <= 1
    found = lazy.estimate_sigma(stack, stacked=2).compute()
    np.testing.assert_array_equal(
        found, [[nlnet.estimate_sigma(page) for page in row] for row in pages]
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
@pytest.mark.parametrize("shape", [(61, 83), (70, 64, 3), (900, 500)])
def test_the_estimate_is_that_of_the_whole(dtype: Any, shape: Any) -> None:
    # Some of it clipped, which counts as well.
    values = np.clip(noise(*shape, std=60), 0, 255).astype(dtype)
    found = lazy.estimate_sigma(da.from_array(values, chunks=(37, 41, 2)[: len(shape)]))
    assert found.shape == ()
    assert float(found.compute()) == nlnet.estimate_sigma(values)


def test_nothing_is_computed_before_it_is_asked_for(gray_model: Model) -> None:
    seen = []

    def look(block: np.ndarray) -> np.ndarray:
        seen.append(block.shape)
        return block

    array = da.from_array(noisy_pixels(np.uint8), chunks=(24, 16)).map_blocks(
        look, meta=np.empty((0, 0), np.uint8)
    )
    for sigma in (25, None):
        lazy.denoise(array, sigma, model=gray_model)
    assert seen == []
    lazy.denoise(array, None, model=gray_model).compute()
    assert seen == 4 * [(24, 16)]  # for the estimate and again, not held in between


def test_a_page_without_noise_comes_back(gray_model: Model) -> None:
    flat = np.full((64, 64), 7, np.uint8)
    flat[:, 30:] = 200
    denoised = lazy.denoise(da.from_array(flat, chunks=30), model=gray_model)
    np.testing.assert_array_equal(denoised.compute(), flat)


def test_a_model_of_the_users_goes_along(gray_model_file: Any, tmp_path: Any) -> None:
    copy = tmp_path / "model.safetensors"
    copy.write_bytes(gray_model_file.read_bytes())
    noisy = noisy_pixels(np.uint8)
    denoised = lazy.denoise(da.from_array(noisy, chunks=21), 25, model=copy)
    copy.unlink()  # a worker may not have it
    wanted = nlnet.denoise(noisy, 25, model=gray_model_file)
    np.testing.assert_array_equal(denoised.compute(), wanted)


def test_an_image_smaller_than_the_halo() -> None:
    noisy = noisy_pixels(np.uint8)
    denoised = lazy.denoise(da.from_array(noisy, chunks=10), 25)
    np.testing.assert_array_equal(denoised.compute(), nlnet.denoise(noisy, 25))


GRAY = da.zeros((40, 50), chunks=20, dtype=np.uint8)


@pytest.mark.parametrize(
    ("array", "options", "message"),
    [
        (np.zeros((40, 50)), {}, "type ndarray, but must be a dask array"),
        (GRAY.astype(np.int64), {}, "dtype is int64"),
        (GRAY[0], {}, "shape (50,)"),
        (GRAY[:, :, None], {}, "must be 3"),
        (GRAY[:4], {"sigma": 25}, "at least the patch size"),
        (GRAY[:6], {}, "estimating its noise takes at least"),
        (GRAY, {"sigma": 0}, "sigma is 0"),
        (GRAY, {"sigma": 300}, "sigma is 300"),
        (GRAY, {"sigma": 25, "threads": 0}, "threads is 0"),
        (GRAY, {"sigma": 25, "max_memory": 0}, "max_memory is 0"),
        (GRAY, {"data_range": -1}, "data_range is -1"),
        (GRAY, {"stacked": -1}, "stacked is -1"),
        (GRAY, {"stacked": 1}, "has shape"),
        (GRAY[GRAY > 0], {}, "unknown size"),
    ],
)
def test_what_cannot_be_used_is_said_at_once(array: Any, options: Any, message: str) -> None:
    with refused(InputError, message):
        lazy.denoise(array, **options)


def test_models_that_cannot_be_used() -> None:
    with refused(ModelError, "Unknown model"):
        lazy.denoise(GRAY, 25, model="gray-9x9")
    with refused(ModelError, "made for color images"):
        lazy.denoise(GRAY, 25, model="color-5x5")


@pytest.mark.parametrize("sigma", [0.1, None])
def test_bad_values_are_said_when_they_are_met(sigma: float | None, gray_model: Model) -> None:
    noisy = noisy_pixels(np.float32)
    noisy[20, 20] = np.inf
    denoised = lazy.denoise(da.from_array(noisy, chunks=(24, 16)), sigma, model=gray_model)
    with refused(InputError, "infinite"):
        denoised.compute()


def test_without_dask_one_sentence() -> None:
    code = "import sys; sys.modules['dask'] = None; import nlnet.dask"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (
        "nlnet.dask needs dask, which is not installed: pip install 'nlnet[dask]'." in ended.stderr
    )


def test_nlnet_does_not_load_dask() -> None:
    code = "import sys, nlnet, nlnet.cli; nlnet.denoise; assert 'dask' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
