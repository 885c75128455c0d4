"""Merging pages of a series: motion, weights, brightness, and what is left of the noise."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from nlnet.denoising.series import (
    REACH,
    Page,
    merge_page,
    merge_pages,
    near_enough,
    strength_of_noise,
)
from nlnet.denoising.series_motion import Motion, find_motion, moves
from nlnet.engine.library import SET_VARIABLE, available_sets
from nlnet.engine.series import align

pytestmark = pytest.mark.numerical


def moved(dy: float, dx: float, seed: int = 0) -> np.ndarray:
    """A picture after it has moved, exactly: a sum of waves; in units of the noise."""
    y, x = np.mgrid[:96, :104]
    picture = np.zeros(y.shape)
    for down, right, phase in np.random.default_rng(seed).normal(size=(40, 3)) / 6:
        picture += 3 * np.sin(down * (y - dy) + right * (x - dx) + 50 * phase)
    return picture.astype(np.float32)


def page(clean: np.ndarray, seed: int, hidden: np.ndarray | None = None) -> Page:
    """A page with noise, whose guide errs a little."""
    noise = np.random.default_rng(seed).standard_normal((2, *clean.shape), np.float32)
    return Page((clean + noise[0])[None], (clean + 0.1 * noise[1])[None], hidden)


def series(clean: Iterable[np.ndarray]) -> dict[int, Page]:
    return {number: page(each, number) for number, each in enumerate(clean)}


@pytest.mark.parametrize(
    "motion", [(0, 0), (0.4, -0.3), (2.5, 1.25), (-7, 4), (12.3, -9.6), (20, 0)]
)
def test_motion_is_found_to_a_tenth_of_a_pixel(motion):
    pages = moved(0, 0), moved(*motion)
    field, fits = align(*pages, pages)
    inner = fits[3:-3, 3:-3]
    assert np.abs(field[3:-3, 3:-3] - motion).max() < 0.1
    assert np.abs(inner[..., 0] - inner[..., 2]).max() < 0.2
    assert np.median(inner[..., 3] / inner[..., 1]) < 0.05


def test_motion_is_found_whatever_the_brightness():
    here, there = moved(0, 0), 0.7 * moved(1.5, -2.25) + 30
    found = find_motion((here, here), (there, there))
    assert np.abs(found.field[3:-3, 3:-3] - (1.5, -2.25)).max() < 0.15
    assert (found.gain, found.offset) == pytest.approx((1 / 0.7, -30 / 0.7), rel=0.02)


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (5, 5), (47, 24), (97, 33)])
def test_pages_of_any_size_are_merged(shape):
    pages = series(np.full(shape, 40, np.float32) for _ in range(3))
    merged, left = merge_page(pages, 0, None)
    assert np.isfinite(merged).all()
    assert (left > 0.5).all()
    assert (left <= 1).all()


def test_the_noise_that_is_left_is_what_the_map_says():
    pages = series(moved(0.0, 0.0) for _ in range(2 * REACH + 1))
    merged, left = merge_page(pages, REACH, None)
    assert left.max() < 0.4  # of nine pages: 1 / 3
    error = merged[0] - moved(0, 0)
    assert np.sqrt(np.mean(error**2)) == pytest.approx(left.mean(), rel=0.15)


def test_a_page_of_other_things_changes_nothing():
    pages = series([moved(0, 0), 3 * moved(0, 0, seed=9) + 50])
    merged, left = merge_page(pages, 0, None)
    assert np.mean(left) > 0.97
    assert np.sqrt(np.mean((merged - pages[0].noisy) ** 2)) < 0.2


@pytest.mark.parametrize(
    ("moved", "still", "expected"), [(0.1, -0.1, True), (0.1, 0.09, False), (0.001, -0.001, False)]
)
def test_pages_move_if_noisy_ones_covary_more_for_it_than_by_chance(moved, still, expected):
    fits = np.zeros((24, 24, 8), np.float32)
    fits[..., [1, 3, 5]] = 2, 0.5, 1
    fits[..., 6], fits[..., 7] = moved, still
    assert moves([Motion(np.zeros((24, 24, 2), np.float32), fits)]) == expected


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        ({1: 0.5, 2: 0.51, 3: 0.49, 4: 0.52}, {1, 2, 3, 4}),  # the first page of what stays
        ({1: 0.06, 2: 0.16, 3: 0.25, 4: 0.92}, {1}),  # of what grows or fades
        ({2: 0.16, 3: 0.06, 5: 0.07, 6: 0.17}, {2, 3, 5, 6}),  # within it, balanced
        ({2: 0.19, 3: 0.08, 5: 0.04, 6: 0.1}, {3, 5, 6}),
        ({3: 0.06, 5: 0.07, 6: 0.17}, {3, 5}),  # what would balance the last is missing
        ({}, set()),
    ],
)
def test_neighbours_that_differ_much_more_than_the_nearest_are_left_out(left, expected):
    fits = np.zeros((2, 2, 8), np.float32)
    found = {other: Motion(fits[..., :2], fits + np.float32(each)) for other, each in left.items()}
    assert near_enough(found, 0 if 1 in left else 4).keys() == expected


def test_a_point_that_one_page_shows_is_left_as_it_is():
    clean = moved(0.0, 0.0)
    lit = clean.copy()
    lit[40:43, 50:53] += 6
    pages = series([clean, clean, lit, clean, clean])
    merged, left = merge_page(pages, 2, None)
    assert np.array_equal(merged[0, 38:45, 48:55], pages[2].noisy[0, 38:45, 48:55])
    assert (left[38:45, 48:55] == 1).all()
    assert np.median(left) < 0.6


def test_hidden_pixels_of_a_neighbour_are_not_used():
    hidden = np.zeros((96, 104), bool)
    hidden[40:60, 30:50] = True
    clean = moved(0, 0)
    wrong = page(np.where(hidden, clean + 1, clean), 1, hidden)
    merged, left = merge_page({0: page(clean, 0), 1: wrong}, 0, None)
    assert (left[40:60, 30:50] > 0.999).all()
    assert left[:20].max() < 0.8
    assert np.allclose(merged[0][45:55, 35:45], page(clean, 0).noisy[0][45:55, 35:45], atol=1e-3)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_any_number_of_threads_gives_the_same_bits(threads):
    pages = series(moved(0.7 * t, -1.3 * t) for t in range(5))
    one, many = merge_page(pages, 2, 1), merge_page(pages, 2, threads)
    assert all(np.array_equal(a, b) for a, b in zip(one, many, strict=True))


def test_every_instruction_set_gives_the_same_bits(monkeypatch):
    pages = series(moved(0.7 * t, -1.3 * t) for t in range(3))
    results = []
    for name in available_sets():
        monkeypatch.setenv(SET_VARIABLE, name)
        results.append(merge_page(pages, 1, 1))
    for other in results[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_a_few_pages_are_in_memory_and_each_is_read_once():
    count, asked, alive = 14, [], set()

    def read(number: int) -> Page | None:
        asked.append(number)
        return None if number == 6 else page(np.full((16, 16), 9, np.float32), number)

    for number, merged in merge_pages(count, read, 1):
        alive.add(max(asked) - number)
        assert (merged is None) == (number == 6)
    assert asked == list(range(count))
    assert max(alive) == REACH


def test_what_averaging_removes_tells_how_strong_the_noise_is():
    removed = np.full((90, 100), 0.9, np.float32)
    lost = 0.9 * np.random.default_rng(0).standard_normal((1, 90, 100), np.float32)
    lost[0, :30] *= 5  # neighbours that show something else
    assert strength_of_noise(0.8 * lost, removed) == pytest.approx(0.83, abs=0.03)
    assert strength_of_noise(1.5 * lost, removed) == 1
    assert strength_of_noise(0.5 * lost, removed / 2) == 1  # hardly anything was averaged
