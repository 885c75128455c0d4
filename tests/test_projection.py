"""The projection onto the box, a box of RGB values, and its backward pass, in the engine.

A stage whose psi and step size are 0 only projects.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import slow
from cases import SMALL, assert_close, central_differences, noise, random_groups, run_stages

from nlnet.engine import tasks
from nlnet.network.color import OPPONENT, RGB, transform
from nlnet.network.parameters import initial_parameters

pytestmark = pytest.mark.numerical

BOX = (0.0, 255.0)


def run(planes: np.ndarray) -> tasks.Run:
    """One image, (C, H, W) working planes, through a stage that does nothing but project."""
    config = dataclasses.replace(SMALL, stages=1, channels=len(planes))
    (stage,) = initial_parameters(config)
    idle = dataclasses.replace(stage, coefficients=0 * stage.coefficients, step_size=0.0)
    batch = np.ascontiguousarray(planes[np.newaxis])
    groups = random_groups((1, *planes.shape[1:]), config)
    return run_stages(config, [idle], batch, batch, groups, box=BOX)


def project(planes: np.ndarray) -> np.ndarray:
    return run(planes).estimates[0, 0]


def project_backward(cotangent: np.ndarray, planes: np.ndarray) -> np.ndarray:
    return tasks.backward(run(planes), cotangent[np.newaxis]).estimate[0]


def outside(channels: int, *shape: int) -> np.ndarray:
    """Working planes of an image of which many pixels are outside the box, on both sides."""
    return slow.to_opponent(noise(channels, *shape, std=150.0))


def test_opponent_transform_is_the_papers():
    np.testing.assert_array_equal(OPPONENT, slow.OPPONENT)
    image = noise(3, 5, 6)
    assert_close(transform(image, OPPONENT), slow.to_opponent(image), 1e-15)
    assert_close(transform(transform(image, OPPONENT), RGB), image, 1e-14)
    batch = np.stack([image, 2 * image])
    assert_close(transform(batch, OPPONENT)[1], 2 * slow.to_opponent(image), 1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("channels", [1, 3])
def test_projection_is_a_box_in_rgb(channels, dtype):
    planes = outside(channels, 6, 7)
    projected = project(planes.astype(dtype))
    assert projected.dtype == dtype
    precision = 1e-6 if dtype == np.float32 else 1e-14
    assert_close(projected, slow.project(planes), precision)
    assert not np.allclose(projected, planes)
    assert_close(project(projected), projected, precision)


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_inside_the_box_stay(channels):
    inside = slow.to_opponent(noise(channels, 6, 7, std=5.0))
    assert_close(project(inside), inside, 1e-14)
    assert_close(project_backward(inside, inside), inside, 1e-14)


@pytest.mark.parametrize("channels", [1, 3])
def test_backward_is_the_central_difference(channels):
    at = outside(channels, 5, 6)
    cotangent = np.random.default_rng(2).standard_normal(at.shape)
    rgb = slow.from_opponent(at)
    assert 0.1 < np.mean((rgb < 0) | (rgb > 255)) < 0.9
    assert min(np.abs(rgb).min(), np.abs(rgb - 255).min()) > 0.01  # no pixel near a kink
    wanted = central_differences(lambda x: np.vdot(cotangent, project(x)), at, 1e-4)
    assert_close(project_backward(cotangent, at), wanted, 1e-9)


def test_the_box_includes_its_border():
    # The paper's derivative is 1 for a <= u <= b.
    at = np.tile(np.array([-1e-9, 0.0, 255.0, 255.0 + 1e-9]), (1, 4, 1))
    slope = project_backward(np.ones_like(at), at)
    np.testing.assert_array_equal(slope[0], np.tile([0.0, 1.0, 1.0, 0.0], (4, 1)))
