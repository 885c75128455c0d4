"""Block matching against brute force: the same groups, ties included, to the last offset."""

from __future__ import annotations

import numpy as np
import pytest
import slow
from cases import brute_force, few_levels, noise
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from messages import refused

from nlnet.errors import InputError
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import find_groups

pytestmark = pytest.mark.numerical

DEFAULT = NetworkConfig(window=9)
BAND_ROWS, TILE_COLUMNS = 32, 128  # of a tile, at most
LANES = 16  # of the widest vectors


def match(image: np.ndarray, config: NetworkConfig, threads: int = 1) -> np.ndarray:
    return find_groups(image[np.newaxis], config, threads)[0]


def group_distances(image: np.ndarray, groups: np.ndarray, config: NetworkConfig) -> np.ndarray:
    """Squared distance of each member's patch to the pixel's own, in float64."""
    size = config.patch_size
    patches = np.lib.stride_tricks.sliding_window_view(
        np.pad(image.astype(np.float64), size // 2, mode="symmetric"), (size, size)
    )
    y, x = np.indices(image.shape)[..., None]
    members = patches[y + groups[..., 0], x + groups[..., 1]]
    return np.sum((members - patches[:, :, None]) ** 2, axis=(-2, -1))


@pytest.mark.parametrize(
    ("patch_size", "group_size", "window", "shape"),
    [
        (3, 8, 7, (9, 14)),
        (5, 8, 31, (11, 12)),
        (7, 3, 9, (10, 9)),
        (3, 16, 31, (8, 13)),
    ],
)
@pytest.mark.parametrize("levels", [1, 2, 256])
def test_groups_are_those_of_the_slow_version(patch_size, group_size, window, shape, levels):
    config = NetworkConfig(patch_size=patch_size, group_size=group_size, window=window)
    image = few_levels(*shape, levels=levels)
    wanted = slow.match(image.astype(np.float64), config)
    np.testing.assert_array_equal(match(image, config), wanted)
    np.testing.assert_array_equal(brute_force(image, config), wanted)


@pytest.mark.parametrize(
    ("patch_size", "group_size", "window"),
    [
        *[(3, 1, 3), (3, 2, 3), (9, 4, 3)],
        *[(5, 8, 5), (7, 3, 5), (3, 16, 7)],
        *[(5, 8, 15), (9, 4, 15), (3, 16, 21)],
        *[(3, 1, 31), (3, 2, 31), (5, 8, 31), (7, 3, 31), (9, 4, 31), (3, 16, 31)],
    ],
)
@pytest.mark.parametrize("shape", [(9, 9), (20, 41)])
def test_any_patch_group_and_window(patch_size, group_size, window, shape):
    config = NetworkConfig(patch_size=patch_size, group_size=group_size, window=window)
    image = few_levels(*shape, levels=3)
    np.testing.assert_array_equal(match(image, config), brute_force(image, config))


def test_the_largest_window():
    image = few_levels(12, 15)
    wanted = match(image, NetworkConfig(window=31))
    np.testing.assert_array_equal(match(image, NetworkConfig(window=255)), wanted)


@pytest.mark.parametrize("height", [BAND_ROWS - 1, BAND_ROWS, BAND_ROWS + 1])
@pytest.mark.parametrize("width", [LANES - 1, LANES, LANES + 1, 2 * LANES + 1])
def test_heights_around_a_tile_and_widths_around_a_vector(height, width):
    image = few_levels(height, width)
    np.testing.assert_array_equal(match(image, DEFAULT), brute_force(image, DEFAULT))


@pytest.mark.parametrize("height", [5, BAND_ROWS + 2, 2 * BAND_ROWS])
@pytest.mark.parametrize("width", [TILE_COLUMNS - 1, TILE_COLUMNS, TILE_COLUMNS + 1, 261])
def test_widths_around_a_tile(height, width):
    image = few_levels(height, width)
    np.testing.assert_array_equal(match(image, DEFAULT), brute_force(image, DEFAULT))


@pytest.mark.parametrize("window", [33, 35, 41, 51])
@pytest.mark.parametrize("width", [TILE_COLUMNS, 2 * TILE_COLUMNS + 7])
def test_large_windows_on_wide_images(window, width):
    image = few_levels(20, width)
    config = NetworkConfig(window=window, patch_size=3)
    np.testing.assert_array_equal(match(image, config), brute_force(image, config))


@pytest.mark.parametrize("patch_size", [11, 17, 19, 35, 63])
def test_patches_wider_than_a_vector(patch_size):
    image = few_levels(64, 75)
    config = NetworkConfig(window=5, patch_size=patch_size)
    np.testing.assert_array_equal(match(image, config), brute_force(image, config))


@pytest.mark.parametrize("period", [1, 2, 5])
def test_ties_of_a_repeated_pattern(period):
    tile = few_levels(period, period + 1, levels=200)
    image = np.tile(tile, (40 // period, 60 // period))
    config = NetworkConfig(window=13)
    groups = match(image, config)
    np.testing.assert_array_equal(groups, brute_force(image, config))
    # In the middle all of them are repetitions.
    assert not group_distances(image, groups, config)[20, 30].any()


def test_ties_of_a_constant_image_go_to_the_nearest_offset_then_row_major():
    groups = match(np.full((40, 140), 7.0, np.float32), DEFAULT)
    wanted = [[0, 0], [-1, 0], [0, -1], [0, 1], [1, 0], [-1, -1], [-1, 1], [1, -1]]
    assert (groups[1:-2, 1:-2] == wanted).all()


@settings(max_examples=60, deadline=None)
@given(
    image=hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=5, max_side=13),
        elements=st.integers(-2, 2).map(float),
    ),
    window=st.sampled_from([7, 9, 31]),
    sizes=st.sampled_from([(3, 2), (3, 8), (5, 8)]),
)
def test_any_small_image(image, window, sizes):
    config = NetworkConfig(patch_size=sizes[0], group_size=sizes[1], window=window)
    np.testing.assert_array_equal(match(image, config), brute_force(image, config))


@pytest.mark.parametrize("scale", [2.0**-40, 1.0, 2.0**52])
def test_scale_of_the_image_does_not_matter(scale):
    image = few_levels(20, 30, levels=256)
    wanted = brute_force(image, DEFAULT)
    np.testing.assert_array_equal(match(image * np.float32(scale), DEFAULT), wanted)


@pytest.mark.parametrize("value", [1e19, 1e30, 3e38])
def test_distances_beyond_float32_stay_in_the_image(value):
    image = np.where(few_levels(20, 30, levels=2) > 0, value, -value).astype(np.float32)
    groups = match(image, DEFAULT)
    y, x = np.indices(image.shape)[..., None]
    assert (groups[:, :, 0] == 0).all()
    assert (y + groups[..., 0] >= 0).all()
    assert (y + groups[..., 0] < 20).all()
    assert (x + groups[..., 1] >= 0).all()
    assert (x + groups[..., 1] < 30).all()


def test_noise_is_matched_by_its_distances():
    # Real values: rounding may swap near ties, but the distances must be the smallest there are.
    image = noise(40, 150)
    config = NetworkConfig()
    found = group_distances(image, match(image, config), config)
    wanted = group_distances(image, brute_force(image, config), config)
    assert (found[:, :, 0] == 0).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_threads_and_runs_give_equal_groups():
    image = noise(3 * BAND_ROWS + 5, 2 * TILE_COLUMNS + 7).astype(np.float32)
    wanted = match(image, NetworkConfig(), threads=1)
    for threads in (1, 2, 3, 4):
        np.testing.assert_array_equal(match(image, NetworkConfig(), threads), wanted)


def test_groups_of_a_crop_are_those_of_the_image():
    # Far from the borders a group does not depend on where tiles and vectors begin.
    image = noise(64, 160).astype(np.float32)
    margin = DEFAULT.margin
    whole, part = match(image, DEFAULT), match(image[5:, 3:], DEFAULT)
    np.testing.assert_array_equal(
        whole[5 + margin : -margin, 3 + margin : -margin], part[margin:-margin, margin:-margin]
    )


def test_float64_gives_the_groups_of_float32():
    image = noise(40, 50)
    np.testing.assert_array_equal(match(image, DEFAULT), match(image.astype(np.float32), DEFAULT))


def test_images_that_are_not_contiguous():
    image = few_levels(40, 60)
    np.testing.assert_array_equal(
        match(image[::2, ::-1].T, DEFAULT), brute_force(image[::2, ::-1].T, DEFAULT)
    )


@pytest.mark.parametrize("shape", [(4, 50), (50, 4), (1, 1)])
def test_an_image_smaller_than_the_patch_is_an_error(shape):
    with refused(InputError, f"{shape[1]}x{shape[0]} pixels", "patch size, 5"):
        match(np.zeros(shape, np.float32), NetworkConfig())


@pytest.mark.parametrize(
    ("window", "group_size", "shape"), [(3, 5, (40, 40)), (31, 16, (5, 3)), (5, 10, (9, 9))]
)
def test_too_few_patches_at_a_corner_is_an_error(window, group_size, shape):
    config = NetworkConfig(patch_size=3, group_size=group_size, window=window)
    with refused(InputError, f"too few to find {group_size} patches"):
        match(np.zeros(shape, np.float32), config)


def test_images_of_a_batch_do_not_mix():
    images = few_levels(5, 40, 30)
    found = find_groups(images, DEFAULT, threads=3)
    for image, groups in zip(images, found, strict=True):
        np.testing.assert_array_equal(groups, brute_force(image, DEFAULT))
