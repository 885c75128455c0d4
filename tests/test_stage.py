"""One stage: the kernels' L and its adjoint, and every gradient of Appendix A."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import slow
from cases import (
    SMALL,
    assert_close,
    central_differences,
    noise,
    random_groups,
    random_stages,
)

from nlnet.network.config import NetworkConfig
from nlnet.network.kernels import folding, grouping
from nlnet.network.kernels.simd.vectors import row_lanes
from nlnet.network.matching import find_groups
from nlnet.network.parallel import Workers
from nlnet.network.stage import Stage, StageGradient
from nlnet.network.tiles import TILE

pytestmark = pytest.mark.numerical

ARRAYS = ("filters", "group_weights", "coefficients")


class Operator:
    """L and its adjoint, put together from the kernels as a stage does, but for any tile size."""

    def __init__(self, filters, weights, groups, window, tile=TILE):
        self.filters, self.weights, self.tile = filters, weights, tile
        self.shape = groups.shape[:2]
        self.taps = (0,) * round(filters.shape[1] ** 0.5)
        self.reach, self.radius = window // 2, len(self.taps) // 2
        margin = self.reach + self.radius
        self.side = tile + 2 * margin
        self.stride = self.side + row_lanes(len(self.taps))
        height, width = self.shape
        self.tiles = [
            (top, left, groups[top : top + tile], min(tile, height - top), min(tile, width - left))
            for top in range(0, height, tile)
            for left in range(0, width, tile)
        ]

    def place(self, groups, left, rows, columns):
        return self.reach, groups, left, (0, rows), columns, self.weights

    def analysis(self, plane):
        """Features of all pixels, tile after tile: (n, F)."""
        margin = self.reach + self.radius
        features = []
        for top, left, groups, rows, columns in self.tiles:
            window = np.full((self.side, self.stride), np.nan)  # what is not copied is not used
            view = window[: rows + 2 * margin, : self.side]
            grouping.copy_window(plane, 0, len(plane), top - margin, left - margin, view)
            patches = np.empty(rows * columns * len(self.taps) ** 2 + row_lanes(len(self.taps)))
            place = self.place(groups, left, rows, columns)
            grouping.sum_groups(window, *place, patches, self.taps)
            patches = patches[: rows * columns * len(self.taps) ** 2]
            features.append(patches.reshape(rows * columns, -1) @ self.filters.T)
        return np.concatenate(features)

    def synthesis(self, features):
        """The image that the adjoint makes of such features."""
        height, width = self.shape
        tile_rows, tile_columns = -(-height // self.tile), -(-width // self.tile)
        parts = np.zeros((tile_rows, tile_columns, self.side, self.stride))
        begin = 0
        for top, left, groups, rows, columns in self.tiles:
            part = parts[top // self.tile, left // self.tile]
            patches = features[begin : begin + rows * columns] @ self.filters
            begin += rows * columns
            patches = np.append(patches.ravel(), np.full(row_lanes(len(self.taps)), np.nan))
            place = self.place(groups, left, rows, columns)
            windows = np.zeros(2 * (part.size + 8))
            grouping.spread_groups(patches, *place, windows, self.stride, self.taps)
            grouping.add_windows(windows, part)
        image = np.empty(self.shape)
        folding.fold_rows(
            parts,
            0,
            tile_rows,
            self.tile,
            self.tile,
            self.reach,
            self.radius,
            height,
            0,
            image,
        )
        return image


def operator_case(shape, patch_size, window, tile=TILE, group_size=4):
    config = NetworkConfig(patch_size=patch_size, window=window, group_size=group_size, stages=1)
    stage = random_stages(config)[0]
    groups = random_groups(shape, config)
    return Operator(stage.filters, stage.group_weights, groups, window, tile), stage, groups


@pytest.mark.parametrize("patch_size", [3, 5, 7, 9])
@pytest.mark.parametrize(
    ("shape", "window", "tile"),
    [
        ((9, 9), 31, TILE),
        ((12, 9), 3, TILE),
        ((17, 22), 7, 8),
        ((64, 65), 31, TILE),
        ((70, 131), 31, TILE),
    ],
)
def test_synthesis_is_the_adjoint_of_analysis(shape, window, tile, patch_size):
    L, _, _ = operator_case(shape, patch_size, window, tile)
    rng = np.random.default_rng(3)
    x = rng.standard_normal(shape)
    Lx = L.analysis(x)
    z = rng.standard_normal(Lx.shape)
    assert np.isfinite(Lx).all()
    # Relative to the size of the summands: the scalar product itself may be near zero.
    difference = np.vdot(Lx, z) - np.vdot(x, L.synthesis(z))
    assert abs(difference) < 1e-12 * np.linalg.norm(Lx) * np.linalg.norm(z)


@pytest.mark.parametrize("patch_size", [3, 5, 7])
@pytest.mark.parametrize("shape", [(8, 8), (7, 11), (10, 7)])
def test_adjoint_with_the_groups_of_the_image(shape, patch_size):
    config = NetworkConfig(patch_size=patch_size, stages=1)
    stage = random_stages(config)[0]
    x = noise(*shape)
    with Workers(1) as workers:
        groups = find_groups(x, config, workers)
    L = Operator(stage.filters, stage.group_weights, groups, config.window)
    z = np.random.default_rng(3).standard_normal((x.size, config.filter_count))
    left, right = np.vdot(L.analysis(x), z), np.vdot(x, L.synthesis(z))
    assert left == pytest.approx(right, rel=1e-10)


@pytest.mark.parametrize("patch_size", [3, 5, 7, 9])
def test_kernels_are_the_matrices_of_the_paper(patch_size):
    shape = (9, 11)
    fast, stage, groups = operator_case(shape, patch_size, window=5)
    L = slow.operator(stage.filters, stage.group_weights, groups.astype(np.int64))
    x = noise(*shape)
    features = slow.analysis(L, x)
    assert_close(fast.analysis(x), features, 1e-13)
    assert_close(fast.synthesis(features), slow.synthesis(L, features, shape), 1e-13)


def forward(parameters, config, planes, noisy, groups, **options):
    with Workers(1) as workers:
        return Stage(parameters, config, **options).forward(planes, noisy, groups, workers)


def backward(parameters, config, cotangent, planes, noisy, groups, **options) -> StageGradient:
    with Workers(1) as workers:
        stage = Stage(parameters, config, **options)
        return stage.backward(cotangent, planes, noisy, groups, workers)


def stage_case(config, batch=1, shape=(8, 9), std=25.0):
    """Parameters, and an estimate, noisy images, groups and a cotangent that all differ."""
    size = (batch, config.channels, *shape)
    parameters = random_stages(config)[0]
    groups = random_groups((batch, *shape), config)
    cotangent = np.random.default_rng(5).standard_normal(size)
    return parameters, noise(*size, std=std), noise(*size, std=std, seed=4), groups, cotangent


GRADIENT_CASES = {
    "gray": (dataclasses.replace(SMALL, stages=1), 2),
    "gray-5x5": (dataclasses.replace(SMALL, stages=1, patch_size=5, window=31), 1),
    "color": (dataclasses.replace(SMALL, stages=1, channels=3), 1),
}


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "table"])
@pytest.mark.parametrize("case", GRADIENT_CASES)
def test_every_gradient_is_the_central_difference(case, exact):
    config, batch = GRADIENT_CASES[case]
    parameters, estimate, noisy, groups, cotangent = stage_case(config, batch, std=60.0)
    # Some arguments of psi are clipped, but none so near to that kink that a difference crosses it.
    L = Operator(parameters.filters, parameters.group_weights, groups[0], config.window)
    features = np.abs([L.analysis(plane) for plane in estimate[0]])
    assert 0.01 < np.mean(features > config.rbf_range) < 0.5
    assert np.abs(features - config.rbf_range).min() > 0.01

    def loss(x=estimate, y=noisy, **changed) -> float:
        stage = dataclasses.replace(parameters, **changed)
        return np.vdot(cotangent, forward(stage, config, x, y, groups, exact=exact))

    gradient = backward(parameters, config, cotangent, estimate, noisy, groups, exact=exact)
    for name in ARRAYS:
        wanted = central_differences(
            lambda value, name=name: loss(**{name: value}), getattr(parameters, name), 1e-5
        )
        assert_close(getattr(gradient, name), wanted, 1e-6)
    assert_close(gradient.estimate, central_differences(lambda x: loss(x=x), estimate, 1e-3), 1e-6)
    assert_close(gradient.noisy, central_differences(lambda y: loss(y=y), noisy, 1.0), 1e-6)
    step = central_differences(
        lambda value: loss(step_size=float(value)), np.array(parameters.step_size), 1.0
    )
    assert gradient.step_size == pytest.approx(float(step), rel=1e-6)


@pytest.mark.parametrize(
    ("shape", "patch_size"), [((8, 8), 5), ((9, 12), 7), ((70, 67), 3), ((66, 130), 5)]
)
def test_jacobian_of_a_stage_is_symmetric(shape, patch_size):
    # It is (1 - gamma) I - L^T diag(psi') L: <J a, b> = <a, J b>.
    config = NetworkConfig(patch_size=patch_size, group_size=4, window=15, stages=1)
    parameters, estimate, noisy, groups, a = stage_case(config, shape=shape)
    b = noise(*a.shape, seed=9)
    J_a, J_b = (
        backward(parameters, config, cotangent, estimate, noisy, groups).estimate
        for cotangent in (a, b)
    )
    scale = np.linalg.norm(J_a) * np.linalg.norm(b)
    assert abs(np.vdot(J_a, b) - np.vdot(a, J_b)) < 1e-12 * scale


def test_first_stage_has_no_gradient_of_its_step_size():
    config = dataclasses.replace(SMALL, stages=1)
    parameters, noisy, _, groups, cotangent = stage_case(config)
    assert backward(parameters, config, cotangent, noisy, noisy, groups).step_size == 0


def test_gradient_of_the_step_size_survives_rounding():
    # y and x differ by little: their scalar products with the cotangent must not be subtracted.
    config = dataclasses.replace(SMALL, stages=1)
    parameters, noisy, _, groups, cotangent = stage_case(config, shape=(60, 60))
    noisy, cotangent = noisy.astype(np.float32), (cotangent + 1).astype(np.float32)
    estimate = noisy + np.float32(0.125)
    gradient = backward(parameters.astype(np.float32), config, cotangent, estimate, noisy, groups)
    wanted = np.vdot(cotangent.astype(np.float64), noisy.astype(np.float64) - estimate)
    assert gradient.step_size == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("patch_size", [3, 5])
def test_float32_agrees_with_float64(channels, patch_size):
    config = NetworkConfig(channels=channels, patch_size=patch_size, window=15, stages=1)
    case = stage_case(config, batch=2, shape=(70, 50))
    parameters, *arrays = case
    estimate, noisy, groups, cotangent = arrays
    single = [array.astype(np.float32) for array in (estimate, noisy, cotangent)]
    parameters32 = parameters.astype(np.float32)
    u = forward(parameters, config, estimate, noisy, groups)
    u32 = forward(parameters32, config, single[0], single[1], groups)
    assert u32.dtype == np.float32
    np.testing.assert_allclose(u32, u, rtol=0, atol=1e-3)  # gray levels
    wanted = backward(parameters, config, cotangent, estimate, noisy, groups)
    got = backward(parameters32, config, single[2], single[0], single[1], groups)
    for name in (*ARRAYS, "estimate", "noisy"):
        assert getattr(got, name).dtype == np.float32
        assert_close(getattr(got, name), getattr(wanted, name), 2e-5)
    assert got.step_size == pytest.approx(wanted.step_size, rel=1e-4)


@pytest.mark.parametrize("tile_rows", [8, 24, TILE])
def test_tiles_and_threads(tile_rows):
    # The height of tiles moves the result by rounding only, the number of threads not at all.
    config = NetworkConfig(window=15, group_size=4, stages=1)
    parameters, estimate, noisy, groups, cotangent = stage_case(config, shape=(75, 70))
    whole = forward(parameters, config, estimate, noisy, groups)
    stage = Stage(parameters, config, tile_rows=tile_rows)
    outputs, gradients = [], []
    for threads in (1, 2, 3):
        with Workers(threads) as workers:
            outputs.append(stage.forward(estimate, noisy, groups, workers))
            gradients.append(stage.backward(cotangent, estimate, noisy, groups, workers))
    np.testing.assert_allclose(outputs[0], whole, rtol=0, atol=1e-10)
    for output, gradient in zip(outputs[1:], gradients[1:], strict=True):
        np.testing.assert_array_equal(output, outputs[0])
        for field in dataclasses.fields(StageGradient):
            np.testing.assert_array_equal(
                getattr(gradient, field.name), getattr(gradients[0], field.name)
            )


def test_images_of_a_batch_do_not_mix():
    config = NetworkConfig(window=15, group_size=4, stages=1, channels=3)
    parameters, estimate, noisy, groups, cotangent = stage_case(config, batch=3, shape=(20, 70))
    together = forward(parameters, config, estimate, noisy, groups)
    gradient = backward(parameters, config, cotangent, estimate, noisy, groups)
    parts = []
    for i in range(3):
        one = slice(i, i + 1)
        case = estimate[one], noisy[one], groups[one]
        np.testing.assert_array_equal(forward(parameters, config, *case), together[one])
        parts.append(backward(parameters, config, cotangent[one], *case))
        np.testing.assert_array_equal(parts[-1].estimate, gradient.estimate[one])
    for name in ARRAYS:
        assert_close(sum(getattr(part, name) for part in parts), getattr(gradient, name), 1e-12)


@pytest.mark.parametrize("patch_size", [3, 5, 9])
def test_nothing_is_left_over_in_scratch_memory(patch_size):
    # Rows of patches are read by whole vectors: what lies beyond must not count, NaN or not.
    config = NetworkConfig(window=7, group_size=3, stages=1, patch_size=patch_size)
    parameters, estimate, noisy, groups, cotangent = stage_case(config)
    parameters = parameters.astype(np.float32)
    small = [array.astype(np.float32) for array in (cotangent, estimate, noisy)]
    wanted = backward(parameters, config, *small, groups)
    bad = np.full((1, 1, 80, 80), np.nan, np.float32)
    with Workers(1) as workers:
        stage = Stage(parameters, config)
        stage.backward(bad, bad, bad, random_groups((1, 80, 80), config), workers)
        got = stage.backward(*small, groups, workers)
    for field in dataclasses.fields(StageGradient):
        np.testing.assert_array_equal(getattr(got, field.name), getattr(wanted, field.name))


def test_progress_ends_with_the_last_row_of_tiles():
    config = dataclasses.replace(SMALL, stages=1)
    parameters, estimate, noisy, groups, _ = stage_case(config, shape=(2 * TILE, 8))
    shares: list[float] = []
    with Workers(1) as workers:
        Stage(parameters, config).forward(estimate, noisy, groups, workers, shares.append)
    assert shares == [0.5, 1.0]
