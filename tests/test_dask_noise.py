"""Every kind of noise in dask arrays: found and removed as in the whole array at once."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from pictures import one_stage

import nlnet
from nlnet.denoising.network import Network
from nlnet.errors import InputError
from nlnet.noise.camera import Camera
from nlnet.noise.levels import Nodes
from nlnet.noise.record import Curve, Noise
from tests.messages import refused

pytestmark = [pytest.mark.numerical, pytest.mark.usefixtures("dask_in_this_thread")]

maximum_filter = pytest.importorskip("scipy.ndimage").maximum_filter
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
lazy = pytest.importorskip("nlnet.dask")
from nlnet.dask.work import Work  # noqa: E402

CAMERA = Camera.even(12.0, (1.0, 1.7, 2.4))
CURVE = Curve((Nodes(((0.0, 4.0), (120.0, 15.0), (255.0, 9.0))),))
PHOTONS = Noise.poisson(2.0, 3.0)


def clean_image(*shape: int) -> np.ndarray:
    rows, columns = np.indices(shape[:2])
    image = 120 + 60 * np.sin(columns / 37) * np.cos(rows / 29) + 15 * (rows // 40 % 2)
    return image if len(shape) == 2 else np.stack([image, image * 0.8, 250 - image], axis=-1)


def blotches(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Noise whose neighbors are alike, of standard deviation 1."""
    noise = rng.standard_normal(shape)
    for axis in (0, 1, 0, 1):
        noise = noise + np.roll(noise, 1, axis)
    return noise / noise.std()


def noisy_image(kind: str, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    rng = np.random.default_rng(5)
    clean = clean_image(*shape)
    noisy = {
        "white": lambda: clean + 12 * rng.standard_normal(shape),
        "poisson": lambda: 3.0 * rng.poisson(clean / 3) + rng.standard_normal(shape),
        "camera": lambda: clean + 12 * blotches(rng, *shape),
    }[kind]()
    return np.clip(noisy, 0, 255).astype(dtype)


NEAR = 1e-3
"""Gray levels by which results differ, because sums are rounded otherwise."""

NEAR_WITH_SCALES = 1e-3 * 255
"""The same where such a difference, made at half the size, decides between patches at the full size
that are as good as each other: then a few pixels differ by more."""


def difference(noisy: np.ndarray, chunks: Any, **options: Any) -> float:
    """How far the result by chunks is from that of the whole array."""
    whole = nlnet.denoise(noisy, data_range=255, **options)
    assert np.abs(whole.astype(float) - noisy).mean() > 1  # something was removed
    array = da.from_array(noisy, chunks=chunks)
    denoised = lazy.denoise(array, data_range=255, **options)
    assert (denoised.chunks, denoised.dtype) == (array.chunks, array.dtype)
    return float(np.abs(denoised.compute().astype(float) - whole).max())


def largest_within_reach(reach: int) -> Any:
    """What stands for the network here: all pixels within reach count, and nothing is rounded."""

    def run(scale: int, planes: np.ndarray, box: object) -> np.ndarray:
        largest = maximum_filter(planes, (0, 2 * reach + 1, 2 * reach + 1), mode="nearest")
        return np.asarray(np.float32(0.5) * planes + np.float32(0.3) * largest)

    return run


@pytest.mark.parametrize("shape", [(262, 263), (211, 180, 3)])
@pytest.mark.parametrize("chunks", [(91, 83, 2), ((37, 174, 51), 180, 3), (11, 40, 3)])
def test_scales_to_the_bit(shape: Any, chunks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seams, halos and smaller scales of chunks of any size are just those of the whole array."""
    if chunks[0] == (37, 174, 51):
        chunks = ((37, 174, 51)[: 3 if shape[0] == 262 else 2], *chunks[1:])
    model = one_stage("gray-5x5-s25" if len(shape) == 2 else "color-5x5-s25")
    noisy = noisy_image("camera", *shape)
    options = {"noise": CAMERA, "model": model, "clip": False}
    reach = model.config.reach
    monkeypatch.setattr(Network, "_elsewhere", lambda *_: largest_within_reach(reach))
    assert difference(noisy, chunks[: len(shape)], **options) == 0
    monkeypatch.setattr(Network, "_elsewhere", lambda *_: largest_within_reach(reach + 3))
    assert difference(noisy, chunks[: len(shape)], **options) > 0


@pytest.mark.parametrize(
    ("noise", "near"), [(CAMERA, NEAR_WITH_SCALES), (CURVE, NEAR), (PHOTONS, NEAR)]
)
@pytest.mark.parametrize("chunks", [(91, 83), ((37, 100, 1, 124), (150, 113)), (11, 263)])
def test_given_noise_across_seams(noise: Noise, near: float, chunks: Any) -> None:
    noisy = noisy_image("camera", 262, 263)
    assert difference(noisy, chunks, noise=noise, model=one_stage("gray-5x5-s25")) < near


@pytest.mark.parametrize(
    ("kind", "near"), [("white", NEAR), ("poisson", NEAR), ("camera", NEAR_WITH_SCALES)]
)
def test_noise_that_is_found_across_seams(kind: str, near: float) -> None:
    noisy = noisy_image(kind, 260, 251)
    assert nlnet.estimate_noise(noisy, data_range=255).kind == kind
    assert difference(noisy, (100, 97), model=one_stage("gray-5x5-s25")) < near
    assert difference(noisy, (100, 97), model=one_stage("gray-5x5-s25"), noise=kind) < near


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float64])
def test_colors_strengths_and_dtypes(dtype: Any) -> None:
    noisy = noisy_image("camera", 170, 181, 3, dtype=dtype)
    options = {"model": one_stage("color-5x5-s25"), "noise": CAMERA, "strength": (0.4, 0.9)}
    near = NEAR_WITH_SCALES if np.dtype(dtype).kind == "f" else 1
    assert difference(noisy, (90, 95, 2), **options) <= near


@pytest.mark.parametrize("quality", ["fast", "best"])
def test_the_whole_network_for_camera_noise(quality: str) -> None:
    """Three scales of the full reach, in one direction."""
    noisy = noisy_image("camera", 64, 1500)
    assert difference(noisy, (64, 401), noise=CAMERA, quality=quality) < NEAR_WITH_SCALES


def test_without_the_smaller_scales_it_is_another_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above can fail."""
    noisy = noisy_image("camera", 262, 263)
    model = one_stage("gray-5x5-s25")
    whole = nlnet.denoise(noisy, data_range=255, noise=CAMERA, model=model)
    honest = Work.part
    monkeypatch.setattr(Work, "part", lambda *given: honest(*given[:-1], None))
    lazily = lazy.denoise(da.from_array(noisy, (91, 83)), data_range=255, noise=CAMERA, model=model)
    assert np.abs(lazily.compute() - whole).max() > 1


def test_sigma_of_camera_noise() -> None:
    noisy = noisy_image("camera", 190, 200)
    options = {"sigma": 10, "noise": "camera", "model": one_stage("gray-5x5-s25")}
    assert difference(noisy, (100, 97), **options) < NEAR_WITH_SCALES


@pytest.mark.parametrize("kind", ["white", "poisson", "camera"])
@pytest.mark.parametrize("asked", [None, "white", "poisson", "camera"])
@pytest.mark.parametrize("shape", [(900, 811), (320, 290, 3), (30, 21_000)])
def test_what_is_found_is_what_the_whole_array_says(kind: str, asked: Any, shape: Any) -> None:
    noisy = noisy_image(kind, *shape, dtype=np.uint8)
    array = da.from_array(noisy, chunks=(333, 410, 2)[: len(shape)]).rechunk({0: 200})
    found = lazy.estimate_noise(array, kind=asked, data_range=255)
    assert found.shape == ()
    assert found.compute().item() == nlnet.estimate_noise(noisy, kind=asked, data_range=255)


def test_pages_of_several_kinds() -> None:
    kinds = ("white", "camera", "poisson")
    pages = np.stack([noisy_image(kind, 150, 160) for kind in kinds])
    stack = da.from_array(pages, chunks=(2, 80, 160))
    found = lazy.estimate_noise(stack, data_range=255, stacked=1).compute()
    assert [noise.kind for noise in found] == list(kinds)
    model = one_stage("gray-5x5-s25")
    denoised = lazy.denoise(stack, stacked=1, per_page=True, data_range=255, model=model).compute()
    for page, result in zip(pages, denoised, strict=True):
        whole = nlnet.denoise(page, data_range=255, model=model)
        np.testing.assert_allclose(result, whole, rtol=0, atol=NEAR_WITH_SCALES)


def test_a_sigma_for_each_page() -> None:
    pages = np.stack([noisy_image("white", 60, 70)] * 2)
    stack = da.from_array(pages, chunks=(1, 60, 70))
    denoised = lazy.denoise(stack, [5, 30], stacked=1, data_range=255).compute()
    for page, sigma, result in zip(pages, (5, 30), denoised, strict=True):
        np.testing.assert_array_equal(result, nlnet.denoise(page, sigma, data_range=255))
    with refused(InputError, "sigma has shape (3,), but must be one number, or"):
        lazy.denoise(stack, [5, 30, 9], stacked=1, data_range=255)


def test_an_array_that_was_rechunked_is_computed_apart() -> None:
    seen = []

    def look(block: np.ndarray) -> np.ndarray:
        seen.append(block.shape)
        return block

    noisy = np.stack([noisy_image("white", 60, 60)] * 2)
    source = da.from_array(noisy, chunks=(1, 30, 60)).map_blocks(
        look, meta=np.empty((0, 0, 0), noisy.dtype)
    )
    rechunked = source.rechunk((2, 60, 25))
    denoised = lazy.denoise(rechunked, stacked=1, data_range=255).compute()
    assert len(seen) == 3 * 4  # for the estimate, the smaller scales and the result
    np.testing.assert_allclose(
        denoised, nlnet.denoise_stack(noisy, data_range=255), rtol=0, atol=NEAR
    )


@pytest.mark.parametrize("clip", [None, True, False])
@pytest.mark.parametrize("top", [240, 1900])
def test_values_beyond_white_are_judged_by_the_whole_page(clip: Any, top: float) -> None:
    noisy = noisy_image("white", 80, 120)
    noisy[:3, :2] = top  # too few for a wrong range, but all of them in one chunk
    array = da.from_array(noisy, chunks=(40, 30))
    options = {"sigma": 12, "clip": clip, "model": one_stage("gray-5x5-s25"), "data_range": 255}
    beyond = clip is None and top > 255
    with (
        pytest.warns(UserWarning, match="nothing is clipped")
        if beyond
        else warnings.catch_warnings()
    ):
        whole = nlnet.denoise(noisy, **options)
    with (
        pytest.warns(UserWarning, match="nothing is clipped")
        if beyond
        else warnings.catch_warnings()
    ):
        denoised = lazy.denoise(array, **options).compute()
    np.testing.assert_allclose(denoised, whole, rtol=0, atol=1e-3)
    assert (denoised.max() < 255.01) == (clip is True or top < 255)


def test_a_wrong_range_is_said_when_it_is_met() -> None:
    array = da.from_array(noisy_image("white", 80, 120), chunks=(40, 30))
    with refused(InputError, "The data range is given as 1, but"):
        lazy.denoise(array, 0.1, data_range=1).compute()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "pink"}, "noise is 'pink', but must be one of white, poisson, camera"),
        ({"noise": PHOTONS, "sigma": 5}, "Both sigma and a noise record are given"),
        ({"noise": "poisson", "sigma": 5}, "sigma is given for poisson noise"),
        ({"strength": 3}, "strength is 3, but must be from 0 to 2"),
        ({"strength": (1, 0.5)}, "strength is a pair for luma and chroma, but"),
    ],
)
def test_what_cannot_be_asked_for_is_said_at_once(options: Any, message: str) -> None:
    with refused(InputError, message):
        lazy.denoise(da.zeros((40, 50), chunks=20, dtype=np.uint8), **options)
