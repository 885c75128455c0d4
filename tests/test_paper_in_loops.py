"""The slow version is the yardstick, so it is held against what can be worked out by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import slow
from cases import filters_from_mix

from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, initial_parameters, odd_from_half

pytestmark = pytest.mark.numerical

SMALL = NetworkConfig(stages=2, patch_size=3, group_size=3, window=5, rbf_count=11)


def random_stages(config: NetworkConfig, seed: int = 0) -> tuple[StageParameters, ...]:
    rng = np.random.default_rng(seed)
    count = config.filter_count
    return tuple(
        StageParameters(
            filters_from_mix(rng.standard_normal((count, count))),
            rng.standard_normal(config.group_size) / config.group_size,
            odd_from_half(
                rng.standard_normal((config.channels, count, config.rbf_count // 2)),
                config.rbf_count,
            ),
            0.1 * number,
        )
        for number in range(config.stages)
    )


def noise(*shape: int, seed: int = 1) -> np.ndarray:
    return 128 + 25 * np.random.default_rng(seed).standard_normal(shape)


def test_reflection_is_numpys_symmetric_padding():
    padded = np.pad(np.arange(3), 7, mode="symmetric")
    assert [slow.reflect(index, 3) for index in range(-7, 10)] == padded.tolist()


@pytest.mark.parametrize("shape", [(8, 8), (5, 9)])
def test_patches_are_windows_of_the_padded_image(shape):
    plane = noise(*shape)
    padded = np.pad(plane, 2, mode="symmetric")
    for row, column in [(0, 0), (shape[0] - 1, 3), (2, shape[1] - 1)]:
        window = padded[row : row + 5, column : column + 5]
        np.testing.assert_array_equal(slow.patch(plane, 5, row, column), window.ravel())


def test_ties_go_to_the_nearest_offset_then_row_major():
    # All patches of a constant image are equal, so the tie rule alone decides.
    groups = slow.match(np.full((5, 5), 7.0), dataclasses.replace(SMALL, group_size=8))
    assert groups[2, 2].tolist() == [
        [0, 0],
        *[[-1, 0], [0, -1], [0, 1], [1, 0]],
        *[[-1, -1], [-1, 1], [1, -1]],
    ]
    # In the corner the window is cut at the border.
    assert groups[0, 0].tolist() == [
        *[[0, 0], [0, 1], [1, 0], [1, 1]],
        *[[0, 2], [2, 0], [1, 2], [2, 1]],
    ]


def test_distance_decides_before_the_offset():
    # Columns 0 3 0 3 ...: the nearest patches with no difference are two columns away.
    plane = np.tile([0.0, 3.0], (7, 5))
    groups = slow.match(plane, dataclasses.replace(SMALL, group_size=9))
    assert groups[3, 4].tolist() == [
        *[[0, 0], [-1, 0], [1, 0]],
        *[[-2, 0], [0, -2], [0, 2], [2, 0]],
        *[[-1, -2], [-1, 2]],
    ]


@pytest.mark.parametrize("shape", [(8, 8), (7, 10)])
def test_synthesis_is_the_adjoint_of_analysis(shape):
    rng = np.random.default_rng(2)
    parameters = random_stages(SMALL)[0]
    groups = slow.match(noise(*shape), SMALL)
    L = slow.operator(parameters.filters, parameters.group_weights, groups)
    x, z = rng.standard_normal(shape), rng.standard_normal(L.shape[:2])
    left = np.vdot(slow.analysis(L, x), z)
    right = np.vdot(x, slow.synthesis(L, z, shape))
    assert left == pytest.approx(right, rel=1e-12)


def test_analysis_is_the_weighted_sum_of_transformed_patches():
    plane = noise(6, 7)
    parameters = random_stages(SMALL)[0]
    groups = slow.match(plane, SMALL)
    L = slow.operator(parameters.filters, parameters.group_weights, groups)
    members = [slow.patch(plane, 3, 4 + dy, 2 + dx) for dy, dx in groups[4, 2]]
    wanted = parameters.filters @ (parameters.group_weights @ np.array(members))
    np.testing.assert_allclose(slow.analysis(L, plane)[4 * 7 + 2], wanted, atol=1e-10)


def test_psi_derivative_matches_central_differences_and_vanishes_in_the_clip():
    mixture = np.random.default_rng(3).standard_normal(SMALL.rbf_count)
    for x in (-99.0, -31.4, 0.0, 2.5, 80.0):
        difference = slow.psi(x + 1e-5, mixture, SMALL) - slow.psi(x - 1e-5, mixture, SMALL)
        assert slow.psi_derivative(x, mixture, SMALL) == pytest.approx(difference / 2e-5, rel=1e-6)
    assert slow.psi(150.0, mixture, SMALL) == slow.psi(100.0, mixture, SMALL)
    assert slow.psi_derivative(150.0, mixture, SMALL) == 0


def test_psi_of_one_gaussian_is_that_gaussian():
    mixture = np.eye(SMALL.rbf_count)[5]  # the one at zero, of standard deviation 20
    assert slow.psi(20.0, mixture, SMALL) == pytest.approx(np.exp(-0.5))


@pytest.mark.parametrize("channels", [1, 3])
def test_opponent_transform_is_undone(channels):
    image = noise(channels, 4, 5)
    np.testing.assert_allclose(slow.from_opponent(slow.to_opponent(image)), image, atol=1e-10)


@pytest.mark.parametrize("channels", [1, 3])
def test_projection_is_a_box_in_rgb(channels):
    image = noise(channels, 4, 5) * 3 - 200
    projected = slow.from_opponent(slow.project(slow.to_opponent(image)))
    np.testing.assert_allclose(projected, image.clip(0, 255), atol=1e-10)


@pytest.mark.parametrize("channels", [1, 3])
def test_network_has_the_symmetries_of_the_paper(channels):
    config = dataclasses.replace(SMALL, channels=channels)
    stages = random_stages(config)
    image = noise(channels, 8, 9)
    output = slow.network(image, stages, config, clip=False)
    shifted = slow.network(image + 10, stages, config, clip=False)
    np.testing.assert_allclose(shifted, output + 10, atol=1e-9)
    np.testing.assert_allclose(slow.network(-image, stages, config, clip=False), -output, atol=1e-9)
    constant = np.full((channels, 8, 9), 93.0)
    np.testing.assert_allclose(slow.network(constant, stages, config), constant, atol=1e-9)


def test_projection_in_every_stage_and_at_the_end_differ_inside_only():
    image = 20 + 10 * noise(1, 8, 8, seed=4) - 1280
    stages = random_stages(SMALL)
    every = slow.network(image, stages, SMALL)
    at_end = slow.network(image, stages, dataclasses.replace(SMALL, project_every_stage=False))
    unclipped = slow.network(image, stages, SMALL, clip=False)
    assert not np.allclose(every, at_end)
    np.testing.assert_allclose(at_end, unclipped.clip(0, 255), atol=1e-9)


def test_untrained_network_already_denoises():
    config = NetworkConfig(stages=2, window=7)
    clean = np.full((1, 10, 10), 100.0)
    noisy = clean + 25 * np.random.default_rng(5).standard_normal(clean.shape)
    output = slow.network(noisy, initial_parameters(config), config)
    assert np.mean((output - clean) ** 2) < 0.5 * np.mean((noisy - clean) ** 2)
