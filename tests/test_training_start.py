"""A network that starts from another model does, at first, what that model does."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cases import run_stages
from messages import refused

from nlnet.arrays import Array
from nlnet.errors import ModelError
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters
from nlnet.training.start import adapt_model, enlarge_filters

CONFIG = NetworkConfig(stages=2, window=9)
MODEL = Model(
    CONFIG, tuple(s.astype(np.float32) for s in initial_parameters(CONFIG)), sigma=25, name="start"
)


def run(planes: Array, groups: Array, stages: tuple, config: NetworkConfig) -> Array:
    images = planes[np.newaxis]
    return run_stages(config, stages, images, images, groups[np.newaxis], box=None).estimates[-1, 0]


def random_groups(rng: np.random.Generator, height: int, width: int) -> Array:
    """Groups whose members stay inside the image."""
    groups = rng.integers(-4, 5, size=(height, width, CONFIG.group_size, 2))
    y, x = np.mgrid[:height, :width]
    places = np.stack([y, x], axis=-1)[:, :, np.newaxis]
    kept = np.clip(places + groups, 0, [height - 1, width - 1])
    return (kept - places).astype(np.int8)


def test_larger_patches_do_the_same_inside_the_image() -> None:
    rng = np.random.default_rng(0)
    planes = rng.uniform(0, 255, size=(1, 48, 48))
    groups = random_groups(rng, 48, 48)
    larger = dataclasses.replace(CONFIG, patch_size=7)
    before = run(planes, groups, MODEL.stages, CONFIG)
    after = run(planes, groups, adapt_model(MODEL, larger, 25), larger)
    # The symmetric border is wider for larger patches, and every stage carries it inwards.
    inside = (0, slice(19, -19), slice(19, -19))
    np.testing.assert_allclose(after[inside], before[inside], atol=1e-4)


def test_added_filters_complete_the_old_ones() -> None:
    filters = enlarge_filters(MODEL.stages[0].filters, 7)
    assert filters.shape == (48, 49)
    assert np.linalg.matrix_rank(filters) == 48
    np.testing.assert_allclose(filters.sum(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(filters, axis=1), 1, atol=1e-6)


def test_color_channels_are_scaled_to_their_noise() -> None:
    rng = np.random.default_rng(1)
    plane = rng.uniform(0, 255, size=(1, 24, 24))
    groups = random_groups(rng, 24, 24)
    stages = adapt_model(MODEL, dataclasses.replace(CONFIG, channels=3), 25)
    for channel, gain in enumerate(np.sqrt([1 / 3, 1 / 2, 3 / 8])):
        one = tuple(
            dataclasses.replace(stage, coefficients=stage.coefficients[channel : channel + 1])
            for stage in stages
        )
        scaled = run(gain * plane, groups, one, CONFIG) / gain
        np.testing.assert_allclose(scaled, run(plane, groups, MODEL.stages, CONFIG), atol=0.5)


@pytest.mark.parametrize("change", [{"window": 11}, {"stages": 3}, {"patch_size": 3}])
def test_a_network_that_does_not_grow_from_the_model_is_refused(change: dict[str, int]) -> None:
    with refused(ModelError, "another network"):
        adapt_model(MODEL, dataclasses.replace(CONFIG, **change), 25)
