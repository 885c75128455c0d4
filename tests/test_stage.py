"""One stage: L and its adjoint against the paper's matrices, and every gradient of Appendix A."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import slow
from cases import (
    SMALL,
    TILE_COLUMNS,
    assert_close,
    central_differences,
    noise,
    random_groups,
    random_stages,
    run_stages,
    tabulated_psi,
)
from messages import refused

from nlnet.engine import tasks
from nlnet.engine.memory import aligned_memory
from nlnet.errors import InputError
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import find_groups

pytestmark = pytest.mark.numerical

ARRAYS = ("filters", "group_weights", "coefficients")
IMAGES = ("estimate", "noisy")


def forward(parameters, config, estimate, noisy, groups, threads=1) -> np.ndarray:
    """u of one stage."""
    return run_stages(config, [parameters], estimate, noisy, groups, threads=threads).updates[0]


def backward(parameters, config, cotangent, estimate, noisy, groups, threads=1) -> tasks.Gradients:
    """The gradients of one stage that is not projected."""
    run = run_stages(config, [parameters], estimate, noisy, groups, box=None, threads=threads)
    return tasks.backward(run, cotangent)


def stage_case(config, batch=1, shape=(8, 9), std=25.0):
    """Parameters, and an estimate, noisy images, groups and a cotangent that all differ."""
    size = (batch, config.channels, *shape)
    parameters = random_stages(config)[0]
    groups = random_groups((batch, *shape), config)
    cotangent = np.random.default_rng(5).standard_normal(size)
    return parameters, noise(*size, std=std), noise(*size, std=std, seed=4), groups, cotangent


# --- Forward -----------------------------------------------------------------------------------


def paper_stage(parameters, config, estimate, noisy, groups) -> np.ndarray:
    """Eq. (24) of (C, H, W) planes, with the matrices L_r that the paper writes down."""
    L = slow.operator(parameters.filters, parameters.group_weights, groups.astype(np.int64))
    step = parameters.step_size
    return np.stack(
        [
            (1 - step) * x
            + step * y
            - slow.synthesis(L, tabulated_psi(slow.analysis(L, x), pi, config), x.shape)
            for x, y, pi in zip(estimate, noisy, parameters.coefficients, strict=True)
        ]
    )


@pytest.mark.parametrize(
    ("patch_size", "group_size"), [(3, 1), (3, 4), (5, 8), (5, 5), (7, 8), (7, 3), (9, 4)]
)
@pytest.mark.parametrize(("shape", "window"), [((9, 11), 5), ((12, 9), 31)])
@pytest.mark.parametrize("channels", [1, 3], ids=["gray", "color"])
def test_a_stage_is_the_matrices_of_the_paper(patch_size, group_size, shape, window, channels):
    config = NetworkConfig(
        channels=channels, stages=1, patch_size=patch_size, window=window, group_size=group_size
    )
    parameters, estimate, noisy, groups, _ = stage_case(config, shape=shape, std=60.0)
    u = forward(parameters, config, estimate, noisy, groups)
    wanted = paper_stage(parameters, config, estimate[0], noisy[0], groups[0])
    np.testing.assert_allclose(u[0], wanted, rtol=0, atol=1e-10)


@pytest.mark.parametrize("patch_size", [3, 5, 7])
def test_a_stage_with_the_groups_of_the_image(patch_size):
    config = NetworkConfig(patch_size=patch_size, stages=1)
    parameters, estimate, noisy, _, _ = stage_case(config, shape=(8, 10))
    groups = find_groups(noisy[:, 0], config)
    u = forward(parameters, config, estimate, noisy, groups)
    wanted = paper_stage(parameters, config, estimate[0], noisy[0], groups[0])
    np.testing.assert_allclose(u[0], wanted, rtol=0, atol=1e-10)


# --- Backward ----------------------------------------------------------------------------------

GRADIENT_CASES = {
    "gray": (dataclasses.replace(SMALL, stages=1), 2),
    "gray-5x5": (dataclasses.replace(SMALL, stages=1, patch_size=5, window=31), 1),
    "gray-5x5-8": (dataclasses.replace(SMALL, stages=1, patch_size=5, group_size=8, window=9), 1),
    "color": (dataclasses.replace(SMALL, stages=1, channels=3), 1),
}


@pytest.mark.parametrize("case", GRADIENT_CASES)
def test_every_gradient_is_the_central_difference(case):
    config, batch = GRADIENT_CASES[case]
    parameters, estimate, noisy, groups, cotangent = stage_case(config, batch, std=60.0)
    # Some arguments of psi are clipped, but none so near to that kink that a difference crosses it.
    L = slow.operator(parameters.filters, parameters.group_weights, groups[0].astype(np.int64))
    features = np.abs([slow.analysis(L, plane) for plane in estimate[0]])
    assert 0.01 < np.mean(features > config.rbf_range) < 0.5
    assert np.abs(features - config.rbf_range).min() > 2e-3

    def loss(x=estimate, y=noisy, **changed) -> float:
        stage = dataclasses.replace(parameters, **changed)
        return np.vdot(cotangent, forward(stage, config, x, y, groups))

    gradient = backward(parameters, config, cotangent, estimate, noisy, groups)
    for name in ARRAYS:
        wanted = central_differences(
            lambda value, name=name: loss(**{name: value}), getattr(parameters, name), 1e-5
        )
        assert_close(getattr(gradient, name)[0], wanted, 1e-6)
    assert_close(gradient.estimate, central_differences(lambda x: loss(x=x), estimate, 1e-3), 1e-6)
    assert_close(gradient.noisy, central_differences(lambda y: loss(y=y), noisy, 1.0), 1e-6)
    step = central_differences(
        lambda value: loss(step_size=float(value)), np.array(parameters.step_size), 1.0
    )
    assert gradient.step_sizes[0] == pytest.approx(float(step), rel=1e-6)


@pytest.mark.parametrize(
    ("shape", "patch_size", "group_size"),
    [((8, 8), 5, 4), ((9, 12), 7, 4), ((70, 67), 3, 4), ((66, 130), 5, 8), ((150, 75), 7, 8)],
)
def test_jacobian_of_a_stage_is_symmetric(shape, patch_size, group_size):
    # It is (1 - gamma) I - L^T diag(psi') L, so <J a, b> = <a, J b> if L^T is the adjoint of L.
    config = NetworkConfig(patch_size=patch_size, group_size=group_size, window=15, stages=1)
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
    assert backward(parameters, config, cotangent, noisy, noisy, groups).step_sizes[0] == 0


def test_gradient_of_the_step_size_survives_rounding():
    # y and x differ by little: their scalar products with the cotangent must not be subtracted.
    config = dataclasses.replace(SMALL, stages=1)
    parameters, noisy, _, groups, cotangent = stage_case(config, shape=(60, 60))
    noisy, cotangent = noisy.astype(np.float32), (cotangent + 1).astype(np.float32)
    estimate = noisy + np.float32(0.125)
    gradient = backward(parameters, config, cotangent, estimate, noisy, groups)
    wanted = np.vdot(cotangent.astype(np.float64), noisy.astype(np.float64) - estimate)
    assert gradient.step_sizes[0] == pytest.approx(wanted, rel=1e-6)


# --- Precision, threads, batches ---------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(("patch_size", "group_size"), [(3, 8), (5, 8), (7, 8), (5, 3)])
def test_float32_agrees_with_float64(channels, patch_size, group_size):
    config = NetworkConfig(
        channels=channels, patch_size=patch_size, group_size=group_size, window=15, stages=1
    )
    parameters, *arrays = stage_case(config, batch=2, shape=(70, 50))
    estimate, noisy, groups, cotangent = arrays
    single = [array.astype(np.float32) for array in (estimate, noisy, cotangent)]
    u = forward(parameters, config, estimate, noisy, groups)
    u32 = forward(parameters, config, single[0], single[1], groups)
    assert u32.dtype == np.float32
    np.testing.assert_allclose(u32, u, rtol=0, atol=1e-3)  # gray levels
    wanted = backward(parameters, config, cotangent, estimate, noisy, groups)
    got = backward(parameters, config, single[2], single[0], single[1], groups)
    for name in IMAGES:
        assert getattr(got, name).dtype == np.float32
    for name in (*ARRAYS, *IMAGES):
        assert_close(getattr(got, name), getattr(wanted, name), 2e-5)
    assert got.step_sizes[0] == pytest.approx(wanted.step_sizes[0], rel=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_number_of_threads_gives_the_same_bits(dtype):
    config = NetworkConfig(window=15, group_size=4, stages=1)
    parameters, *arrays = stage_case(config, batch=2, shape=(150, TILE_COLUMNS + 6))
    estimate, noisy, groups, cotangent = arrays
    estimate, noisy, cotangent = (array.astype(dtype) for array in (estimate, noisy, cotangent))
    outputs, gradients = [], []
    for threads in (1, 2, 3, 5):
        outputs.append(forward(parameters, config, estimate, noisy, groups, threads))
        gradients.append(backward(parameters, config, cotangent, estimate, noisy, groups, threads))
    for output, gradient in zip(outputs[1:], gradients[1:], strict=True):
        np.testing.assert_array_equal(output, outputs[0])
        for one, other in zip(gradient, gradients[0], strict=True):
            np.testing.assert_array_equal(one, other)


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
def test_what_is_in_memory_before_does_not_count(patch_size, monkeypatch):
    # Rows of patches are read by whole vectors: what lies beyond must not count, NaN or not.
    config = NetworkConfig(window=7, group_size=3, stages=1, patch_size=patch_size)
    parameters, estimate, noisy, groups, cotangent = stage_case(config, shape=(11, 10))
    wanted = backward(parameters, config, cotangent, estimate, noisy, groups)
    run = run_stages(config, [parameters], estimate, noisy, groups, box=None)
    for value in (0x00, 0xFF):  # the latter are NaNs

        def filled(size: int, value: int = value) -> np.ndarray:
            memory = aligned_memory(size)
            memory[:] = value
            return memory

        monkeypatch.setattr("nlnet.engine.memory.aligned_memory", filled)
        again = tasks.backward(run, cotangent)
        for one, other in zip(again, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


# --- What the engine is not given --------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"noisy": np.zeros((1, 3, 8, 9))}, "must be (B, 1, H, W)"),
        ({"estimate": np.zeros((1, 1, 8, 8))}, "The estimate is float64 of shape"),
        ({"estimate": np.zeros((1, 1, 8, 9), np.float32)}, "The estimate is float32"),
        ({"estimate": np.zeros((1, 1, 9, 8)).transpose(0, 1, 3, 2)}, "must be contiguous"),
        ({"groups": np.zeros((1, 8, 9, 4, 2), np.int8)}, "The array of groups is int8 of shape"),
        ({"groups": np.zeros((8, 9, 3, 2), np.int8)}, "must be (B, H, W, K, 2)"),
    ],
)
def test_arrays_that_do_not_fit_are_errors(change, told):
    config = dataclasses.replace(SMALL, stages=1)
    parameters, estimate, noisy, groups, _ = stage_case(config)
    arrays = {"estimate": estimate, "noisy": noisy, "groups": groups, **change}
    with refused(InputError, told):
        run_stages(config, [parameters], **arrays)


@pytest.mark.parametrize(
    ("place", "offset"),
    [((0, 0), (-1, 0)), ((0, 0), (0, -1)), ((7, 8), (1, 0)), ((7, 8), (0, 1)), ((4, 4), (3, 0))],
)
def test_groups_that_leave_the_image_or_the_window_are_errors(place, offset):
    config = dataclasses.replace(SMALL, stages=1)
    parameters, estimate, noisy, groups, _ = stage_case(config)
    run_stages(config, [parameters], estimate, noisy, groups)
    groups[0, place[0], place[1], 1] = offset
    with refused(InputError, "members"):
        run_stages(config, [parameters], estimate, noisy, groups)
