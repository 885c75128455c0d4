"""Maps of sigma: white noise that is not equally strong everywhere."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
import pytest
from test_denoising import as_color
from test_family import make_family

import nlnet
import nlnet.dask
from nlnet.denoising.network import Network
from nlnet.denoising.sigma_map import SigmaMap, memory_of, remove_varying
from nlnet.errors import Cancelled, InputError
from nlnet.model.family import Family
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.refinement import RefinementConfig

pytestmark = pytest.mark.numerical

FAMILIES = {
    channels: make_family(NetworkConfig(stages=2, channels=channels, window=9, rbf_count=21))
    for channels in (1, 3)
}
RAMP = np.broadcast_to(np.geomspace(8.0, 40.0, 31), (24, 31))


def denoise(image: np.ndarray, sigma: Any, **options: Any) -> np.ndarray:
    channels = 3 if image.ndim == 3 else 1
    given = {"model": FAMILIES[channels], "data_range": 255, "clip": True} | options
    return nlnet.denoise(image, sigma, **given)


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
def test_a_map_of_one_value_is_a_number(noisy_gray: np.ndarray, color: bool, dtype: type) -> None:
    image = as_color(noisy_gray) if color else noisy_gray
    constant = np.full(image.shape[:2], 20, dtype)
    np.testing.assert_array_equal(denoise(image, constant), denoise(image, 20.0))


def test_two_strengths_are_each_as_alone(noisy_gray: np.ndarray) -> None:
    halves = np.where(np.arange(31) < 15, 10.0, 30.0) * np.ones((24, 1))
    result = denoise(noisy_gray, halves)
    for there, sigma in ((halves == 10, 10.0), (halves == 30, 30.0)):
        np.testing.assert_allclose(result[there], denoise(noisy_gray, sigma)[there], atol=1e-4)


def test_between_levels_results_are_blended(noisy_gray: np.ndarray) -> None:
    """Straight from what the module says: every pixel from the two levels around its sigma."""
    low, high = 8.0, 40.0
    steps = math.ceil(math.log(high / low) / math.log(1.2))
    levels = np.geomspace(low, high, steps + 1)
    results = [denoise(noisy_gray, float(level)) for level in levels]
    expected = np.empty_like(noisy_gray)
    for place, sigma in np.ndenumerate(RAMP):
        where = math.log(sigma / low) / math.log(high / low) * steps
        below = min(int(where), steps - 1)
        share = where - below
        share += 0.5 * share * (1 - share)
        pair = results[below][place], results[below + 1][place]
        expected[place] = (1 - share) * pair[0] + share * pair[1]
    np.testing.assert_allclose(denoise(noisy_gray, RAMP), expected, atol=5e-3)


def test_levels() -> None:
    levels = SigmaMap(RAMP, 8.0, 40.0).levels
    assert levels[0] == 8.0
    assert levels[-1] == pytest.approx(40.0)
    ratios = np.divide(levels[1:], levels[:-1])
    assert ratios == pytest.approx(ratios[0])
    assert 1.15 < ratios[0] <= 1.2
    assert len(SigmaMap(RAMP, 8.0, 8.0).levels) == 1
    assert len(SigmaMap(RAMP, 10.0, 12.0).levels) == 2


@pytest.mark.parametrize(
    ("sizes", "reach", "begun"),
    [(None, 6, (36, 25)), (RefinementConfig((8, 8), (0, 0), (0,)), 14, (28, 16))],
)
def test_the_image_is_denoised_only_where_a_level_is_wanted(
    sizes: RefinementConfig | None, reach: int, begun: tuple[int, int]
) -> None:
    """Two strengths far apart: no level sees more than its part and the reach, in whole units."""
    config = NetworkConfig(stages=1, window=3, refinement=sizes)
    assert config.reach == reach
    values = np.full((110, 100), 20.0)
    values[42:50, 31:40] = 5.0
    values[94:, 90:] = 5.0
    seen: list[tuple[float, tuple[int, int, int]]] = []

    def identity(cut: Any, noise: Any, write: Any, report: Any) -> None:
        seen.append((noise.sigma, cut.shape))
        write(0, cut)
        report(1.0)

    planes = np.random.default_rng(0).normal(size=(1, 110, 100)).astype(np.float32)
    result, told = np.empty_like(planes), []

    def keep(first: int, rows: np.ndarray) -> None:
        result[:, first : first + rows.shape[1]] = rows

    network: Any = SimpleNamespace(remove=identity)
    network.beside = lambda *_: network
    network.model_for = lambda sigma: SimpleNamespace(config=config, name="none")
    remove_varying(planes, keep, SigmaMap(values, 5.0, 20.0), network, told.append)
    np.testing.assert_allclose(result, planes, rtol=1e-6)
    weak = sorted(shape for sigma, shape in seen if sigma == 5.0)
    corner = (110 - (94 - reach), 100 - (90 - reach))
    assert weak == sorted([(1, *corner), (1, 50 + reach - begun[0], 40 + reach - begun[1])])
    assert [shape for sigma, shape in seen if sigma != 5.0] == [(1, 110, 100)]
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)


def test_a_part_of_the_image_is_exact() -> None:
    """Far from where a level is wanted, the image need not be looked at; the result is the same."""
    config = NetworkConfig(stages=1, window=5, rbf_count=21)
    family = make_family(config)
    image = np.random.default_rng(1).normal(128, 20, (90, 80)).astype(np.float32)
    values = np.full(image.shape, 10.0)
    values[60:, 60:] = 20.0
    assert 2 * config.reach < 60
    result = denoise(image, values, model=family)
    for sigma in (10.0, 20.0):
        alone = denoise(image, sigma, model=family)
        np.testing.assert_allclose(result[values == sigma], alone[values == sigma], atol=1e-3)


@pytest.mark.parametrize("color", [False, True])
def test_threads_do_not_matter(noisy_gray: np.ndarray, color: bool) -> None:
    image = as_color(noisy_gray) if color else noisy_gray
    results = [denoise(image, RAMP, threads=threads) for threads in (1, 2, 3)]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], atol=1e-3)


def test_memory_is_bounded(noisy_gray: np.ndarray) -> None:
    enough = 50_000_000
    np.testing.assert_allclose(
        denoise(noisy_gray, RAMP, max_memory=enough), denoise(noisy_gray, RAMP), atol=1e-3
    )
    with pytest.raises(InputError, match=r"max_memory is 9000 .*of 31x24 pixels alone take \d+"):
        denoise(noisy_gray, RAMP, max_memory=9000)
    with pytest.raises(InputError, match="takes at least"):
        denoise(noisy_gray, RAMP, max_memory=memory_of((1, 24, 31)) + 9000)


def test_units_and_dtypes(noisy_gray: np.ndarray) -> None:
    unit = nlnet.denoise(noisy_gray / 255, RAMP / 255, model=FAMILIES[1])
    np.testing.assert_allclose(255 * unit, denoise(noisy_gray, RAMP), atol=1e-2)
    image = np.clip(np.rint(noisy_gray), 0, 255)
    expected = denoise(image, RAMP)
    whole = nlnet.denoise(image.astype(np.uint8), RAMP, model=FAMILIES[1])
    assert whole.dtype == np.uint8
    assert np.abs(whole - expected).max() <= 0.51
    listed = denoise(image, RAMP.tolist())
    np.testing.assert_allclose(listed, expected, atol=1e-6)


def test_with_strength_and_without_clipping(noisy_gray: np.ndarray) -> None:
    color = as_color(noisy_gray) - 90
    whole = denoise(color, RAMP, clip=False)
    assert whole.min() < 0
    assert denoise(color, RAMP, clip=True).min() == 0
    half = denoise(color, RAMP, clip=False, strength=0.5)
    np.testing.assert_allclose(half, (color + whole) / 2, atol=1e-3)
    luma = denoise(color, RAMP, clip=False, strength=(1.0, 0.0))
    removed = (color - luma).astype(np.float64)
    np.testing.assert_allclose(removed, removed[..., :1] * np.ones(3), atol=1e-3)


def test_where_pixels_are_left_out_the_map_may_be_nan(noisy_gray: np.ndarray) -> None:
    mask = np.zeros(noisy_gray.shape, bool)
    mask[3:6, 5:9] = True
    sigmas = np.where(mask, np.nan, RAMP)
    result = denoise(noisy_gray, sigmas, mask=mask)
    np.testing.assert_array_equal(result[mask], noisy_gray[mask])
    assert np.isfinite(result).all()
    holes = np.where(mask, np.nan, noisy_gray)
    np.testing.assert_allclose(denoise(holes, sigmas)[~mask], result[~mask], atol=1e-4)
    with pytest.raises(InputError, match="from nan to nan"):
        denoise(noisy_gray, sigmas)


def test_very_weak_noise_is_left(noisy_gray: np.ndarray) -> None:
    tiny = np.full(noisy_gray.shape, 1e-9)
    np.testing.assert_array_equal(denoise(noisy_gray, tiny), noisy_gray)
    tiny[:, 20:] = 30.0
    result = denoise(noisy_gray, tiny, clip=False)
    np.testing.assert_allclose(result[:, :20], noisy_gray[:, :20], atol=1e-2)


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        (np.full((31, 24), 5.0), r"^sigma has shape \(31, 24\), .* width, \(24, 31\)\.$"),
        (np.full((24, 31, 1), 5.0), r"sigma has shape \(24, 31, 1\)"),
        (np.full(31, 5.0), r"sigma has shape \(31,\)"),
        ([5.0, 6.0], r"sigma has shape \(2,\)"),
        (np.zeros((24, 31)), "values from 0 to 0, but they must be above 0"),
        (RAMP - 8, "values from 0 to 32"),
        (-RAMP, "values from -40 to -8"),
        (np.where(RAMP > 30, np.inf, RAMP), "values from 8 to inf"),
        (10 * RAMP, "at most the data range, 255"),
        (np.full((24, 31), "5"), "dtype of the sigma map is <U1"),
        (RAMP > 20, "dtype of the sigma map is bool"),
        (RAMP.astype(complex), "dtype of the sigma map is complex128"),
    ],
)
def test_maps_that_cannot_be_used(noisy_gray: np.ndarray, sigma: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        denoise(noisy_gray, sigma)


def test_progress_and_stopping(noisy_gray: np.ndarray) -> None:
    told: list[float] = []
    denoise(noisy_gray, RAMP, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == pytest.approx(1.0)
    with pytest.raises(Cancelled):
        denoise(noisy_gray, RAMP, progress=lambda share: share < 0.5)


def test_every_level_has_its_model(noisy_gray: np.ndarray) -> None:
    """Also of a family of single models, and of one single model."""
    for model in ("gray-5x5", "gray-5x5-s25"):
        result = denoise(noisy_gray, RAMP, model=model)
        assert np.abs(result - denoise(noisy_gray, float(RAMP.mean()), model=model)).max() > 1
    network = Network(FAMILIES[1].at, 1, None, "cpu")
    assert isinstance(network.model_for(20.0), Model)
    assert isinstance(FAMILIES[1], Family)


def test_a_map_is_better_than_one_number() -> None:
    clean = np.full((80, 120), 90.0)
    clean[20:60, 30:90] = 170.0
    sigmas = np.broadcast_to(np.linspace(3.0, 60.0, 120), clean.shape)
    noisy = clean + sigmas * np.random.default_rng(3).standard_normal(clean.shape)

    def error(sigma: Any) -> float:
        restored = nlnet.denoise(noisy, sigma, data_range=255, model="gray-5x5")
        return float(np.mean((restored - clean) ** 2))

    assert error(sigmas) < 0.7 * min(error(float(sigmas.mean())), error(25.0), error(40.0))


# --- Stacks and dask arrays --------------------------------------------------------------------


def noisy_pages(shape: tuple[int, ...] = (2, 24, 31)) -> np.ndarray:
    return np.random.default_rng(2).normal(128, 20, shape).astype(np.float32)


@pytest.mark.parametrize("color", [False, True])
def test_maps_for_stacks(color: bool) -> None:
    stack = noisy_pages((2, 24, 31, 3) if color else (2, 24, 31))
    model = FAMILIES[3 if color else 1]
    options: dict[str, Any] = {"model": model, "data_range": 255}
    each = np.stack([RAMP, RAMP[:, ::-1] / 2])
    for maps, first, second in ((RAMP, RAMP, RAMP), (each, each[0], each[1])):
        result = nlnet.denoise_stack(stack, maps, **options)
        for page, image, sigmas in zip(result, stack, (first, second), strict=True):
            np.testing.assert_array_equal(page, nlnet.denoise(image, sigmas, **options))
    for axes in (0, 1):
        with pytest.raises(InputError, match="poisson noise"):
            nlnet.denoise_stack(stack, each[axes], noise="poisson", **options)
    with pytest.raises(InputError, match=r"shape \(2,\), or a map, of shape \(24, 31\) or \(2, 24"):
        nlnet.denoise_stack(stack, RAMP.T, **options)


def lazy_result(
    image: np.ndarray, sigma: Any, chunks: Any, family: Family, **options: Any
) -> np.ndarray:
    array = da.from_array(image, chunks=chunks, name=False)
    given: dict[str, Any] = {"model": family, "data_range": 255} | options
    denoised = nlnet.dask.denoise(array, sigma, **given)
    assert denoised.chunks == array.chunks
    return denoised.compute(scheduler="synchronous")


@pytest.mark.parametrize("channels", [1, 3])
def test_maps_for_dask_arrays(channels: int) -> None:
    """With chunks smaller than the image, the result is that of the whole image."""
    config = NetworkConfig(stages=1, channels=channels, window=5, rbf_count=21)
    family = make_family(config)
    shape = (70, 90) if channels == 1 else (70, 90, 3)
    image = noisy_pages(shape)
    ramp = np.broadcast_to(np.geomspace(8.0, 40.0, 90), (70, 90))
    expected = nlnet.denoise(image, ramp, model=family, data_range=255)
    chunks = (35, 30) if channels == 1 else (35, 30, 3)
    for sigma in (ramp, da.from_array(ramp, chunks=(20, 41), name=False)):
        result = lazy_result(image, sigma, chunks, family)
        np.testing.assert_allclose(result, expected, atol=1e-3)
    mask = np.zeros((70, 90), bool)
    mask[30:40, 25:33] = True
    left_out = lazy_result(image, np.where(mask, np.nan, ramp), chunks, family, mask=mask)
    np.testing.assert_array_equal(left_out[mask], image[mask])
    far = np.ones_like(mask)
    far[: 40 + config.reach, : 33 + config.reach] = False
    np.testing.assert_allclose(left_out[far], expected[far], atol=1e-3)


def test_maps_for_pages_of_dask_arrays() -> None:
    stack, each = noisy_pages(), np.stack([RAMP, np.full_like(RAMP, 20.0)])
    for sigma in (RAMP, each):
        expected = nlnet.denoise_stack(stack, sigma, model=FAMILIES[1], data_range=255)
        result = lazy_result(stack, sigma, (1, 24, 31), FAMILIES[1], stacked=1)
        np.testing.assert_allclose(result, expected, atol=1e-3)
    whole = np.clip(stack, 0, 255).astype(np.uint8)  # whose values need not be looked at
    result = lazy_result(whole, each, (1, 24, 31), FAMILIES[1], stacked=1)
    expected = nlnet.denoise_stack(whole, each, model=FAMILIES[1])
    assert np.abs(result.astype(int) - expected).max() <= 1


def test_maps_of_dask_arrays_that_cannot_be_used() -> None:
    image = noisy_pages((24, 31))
    for sigma, options, message in (
        (RAMP.T, {}, r"sigma has shape \(31, 24\), but must be one number, or a map, of shape"),
        (RAMP, {"noise": "camera"}, "noise is given as 'camera'"),
        (RAMP > 9, {}, "dtype of the sigma map is bool"),
        (-RAMP, {}, "values from -40 to -8"),
        (np.where(RAMP > 30, np.nan, RAMP), {}, "NaN at pixels that are not left out"),
    ):
        with pytest.raises(InputError, match=message):
            lazy_result(image, sigma, (24, 31), FAMILIES[1], **options)


def test_a_family_of_ones_own_is_one_for_every_sigma_in_dask_too(noisy_gray: np.ndarray) -> None:
    expected = denoise(noisy_gray, 6.0)
    result = lazy_result(noisy_gray, 6.0, (24, 31), FAMILIES[1], clip=True)
    np.testing.assert_allclose(result, expected, atol=1e-3)
