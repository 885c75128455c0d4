"""The projection onto the box, a box of RGB values, and its backward pass."""

from __future__ import annotations

import numpy as np
import pytest
import slow
from cases import assert_close, central_differences, noise

from nlnet.network.color import OPPONENT, RGB, transform
from nlnet.network.projection import project, project_backward

pytestmark = pytest.mark.numerical

BOX = (0.0, 255.0)


def planes(channels: int, *shape: int) -> np.ndarray:
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
    outside = planes(channels, 6, 7)
    projected = project(outside.astype(dtype), BOX)
    assert projected.dtype == dtype
    precision = 1e-6 if dtype == np.float32 else 1e-14
    assert_close(projected, slow.project(outside), precision)
    assert not np.allclose(projected, outside)
    assert_close(project(projected, BOX), projected, precision)


@pytest.mark.parametrize("channels", [1, 3])
def test_pixels_inside_the_box_stay(channels):
    inside = slow.to_opponent(noise(channels, 6, 7, std=5.0))
    assert_close(project(inside, BOX), inside, 1e-14)
    assert_close(project_backward(inside, inside, BOX), inside, 1e-14)


@pytest.mark.parametrize("channels", [1, 3])
def test_batches_are_projected_image_by_image(channels):
    images = [planes(channels, 4, 5), planes(channels, 4, 5) - 30]
    batch = project(np.stack(images), BOX)
    for image, projected in zip(images, batch, strict=True):
        assert_close(projected, project(image, BOX), 1e-14)


@pytest.mark.parametrize("channels", [1, 3])
def test_backward_is_the_central_difference(channels):
    at = planes(channels, 5, 6)
    cotangent = np.random.default_rng(2).standard_normal(at.shape)
    rgb = slow.from_opponent(at)
    assert 0.1 < np.mean((rgb < 0) | (rgb > 255)) < 0.9
    assert min(np.abs(rgb).min(), np.abs(rgb - 255).min()) > 0.01  # no pixel near a kink
    wanted = central_differences(lambda x: np.vdot(cotangent, project(x, BOX)), at, 1e-4)
    assert_close(project_backward(cotangent, at, BOX), wanted, 1e-9)


def test_the_box_includes_its_border():
    # The paper's derivative is 1 for a <= u <= b.
    at = np.array([[[-1e-9, 0.0, 255.0, 255.0 + 1e-9]]])
    assert project_backward(np.ones_like(at), at, BOX).tolist() == [[[0.0, 1.0, 1.0, 0.0]]]
