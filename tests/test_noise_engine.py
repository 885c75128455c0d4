"""The engine's estimate of noise, as Python calls it."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from noise_cases import clean, correlated_noise, photon_noise

import nlnet
from nlnet.engine.estimates import KINDS, Extremes, sampled_pages, tile_places
from nlnet.engine.library import SET_VARIABLE, available_sets
from nlnet.network.block import prepare_eye
from nlnet.noise import add_noise
from nlnet.noise.estimation import find_noise, shipped_eye
from nlnet.noise.sample import Sample

pytestmark = pytest.mark.numerical

NOISY = {
    "white": lambda: add_noise(clean("scene"), 12),
    "poisson": lambda: photon_noise(clean("scene"), 4, 2),
    "camera": lambda: clean("cat") + correlated_noise(clean("cat").shape, [1, 2, 1], 12),
}


@pytest.mark.parametrize("kind", NOISY)
def test_threads_change_no_bit(kind: str) -> None:
    sample = Sample.of(NOISY[kind]()[np.newaxis])
    found = [
        sample.for_engine().estimate_noise(
            prepare_eye(shipped_eye()), sample.measures, None, threads
        )
        for threads in (1, 2, 5)
    ]
    assert {KINDS[each.kind] for each, _ in found} == {kind}
    first, strengths = found[0]
    for other, maps in found[1:]:
        np.testing.assert_array_equal(maps, strengths)
        assert list(other.odds) == list(first.odds)
        assert other.sigma == first.sigma
        assert other.photons[0].gain == first.photons[0].gain


@pytest.mark.parametrize("kind", NOISY)
def test_instruction_sets_agree(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = NOISY[kind]()
    sigmas = []
    for name in available_sets():
        monkeypatch.setenv(SET_VARIABLE, name)
        found = nlnet.estimate_noise(noisy)
        assert found.kind == kind
        sigmas.append(found.sigma_at(100))
    np.testing.assert_allclose(sigmas, sigmas[0], rtol=1e-3)


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int16, np.int32, np.uint32, np.float16, ">u2", ">f4"]
)
def test_types_and_strides_of_values(dtype: Any) -> None:
    """The same values are the same sample, however they lie in memory."""
    values = np.rint(np.clip(add_noise(clean("scene", 3), 12), 0, 255)) // 2
    planes = np.moveaxis(values, -1, 0)
    expected = Sample.of(np.ascontiguousarray(planes))
    for given in (planes.astype(dtype), np.moveaxis(values.astype(dtype), -1, 0)):
        sample = Sample.of(given)
        assert sample.extremes == expected.extremes
        assert sample.measures == pytest.approx(expected.measures, rel=1e-12)
        assert find_noise(sample, None) == find_noise(expected, None)
        mirrored = Sample.of(given[:, ::-1, ::2])
        assert mirrored.extremes == Extremes.of(planes[:, :, ::2])


def test_extremes_of_parts() -> None:
    image = np.random.default_rng(0).integers(0, 9, (3, 50, 60)).astype(np.uint16)
    parts = [
        Extremes.of(image[:, :20]),
        Extremes.of(image[:, 20:, :1]),
        Extremes.of(image[:, 20:, 1:]),
    ]
    whole = Extremes.of(image)
    assert Extremes.merge(parts) == whole
    assert whole == Extremes(0, 8, int((image == 0).sum()), int((image == 8).sum()), image.size)
    assert Extremes.of(image[:, image[0] > 4]).count == 3 * (image[0] > 4).sum()


def test_a_sample_can_be_sent_to_another_process() -> None:
    sample = Sample.of(NOISY["white"]()[np.newaxis]).kept()
    expected = find_noise(sample, None)
    assert find_noise(pickle.loads(pickle.dumps(sample)), None) == expected


@pytest.mark.parametrize("pages", [1, 3, 8])
@pytest.mark.parametrize("shape", [(1, 700, 900), (1, 120, 6000), (3, 9000, 50), (1, 3000, 4000)])
def test_tiles_are_apart_from_each_other_and_reach_the_borders(
    shape: tuple[int, int, int], pages: int
) -> None:
    seen = np.zeros(shape[1:], np.uint8)
    for row in tile_places(shape, pages):
        for _, *place in row:
            seen[tuple(place)] += 1
    assert seen.max() == 1
    assert seen[[0, 0, -1, -1], [0, -1, 0, -1]].any()
    assert seen.sum() <= 400_000 / pages + 192**2


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 15, 100, 12_345])
def test_pages_are_spread_evenly(count: int) -> None:
    expected = np.linspace(0, count - 1, min(count, 8)).round().astype(int).tolist()
    assert sampled_pages(count) == expected
