"""The refinement in the engine: threads, memory and progress."""

from __future__ import annotations

import dataclasses
import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cases import sweep
from messages import refused
from refinements import (
    ALL_SIZES,
    SIZES,
    by_engine,
    picture,
    random_refinement,
    refined_config,
    refined_family,
)

from nlnet.denoising.network import Network, least_memory
from nlnet.engine.memory import aligned_memory
from nlnet.errors import Cancelled, InputError
from nlnet.network.block import prepare
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, initial_parameters
from nlnet.network.refinement import RefinementConfig
from nlnet.noise.record import White
from nlnet.progress import ignore

pytestmark = pytest.mark.numerical


def idle_stages(config: NetworkConfig) -> list[StageParameters]:
    """Stages that hand on what they get, to the bit."""
    stages = refined_family(config.refinement or SIZES, config.channels).sets[0]
    return [
        dataclasses.replace(stage, coefficients=0 * stage.coefficients, step_size=0.0)
        for stage in stages
    ]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sizes", ALL_SIZES, ids=lambda sizes: str(sizes.widths))
def test_threads_and_the_height_of_tiles_change_no_bit(
    sizes: RefinementConfig, channels: int
) -> None:
    config = refined_config(sizes, channels)
    refinement = random_refinement(sizes, channels).at(25.0)
    network = prepare(config, idle_stages(config), refinement)
    for height in (11, 75, 150):
        image = picture(channels, height, 37)
        results = []
        for threads, tile_rows in itertools.product((1, 2, 5), (8, 16, 0)):
            results.append(sweep(network, image, threads=threads, tile_rows=tile_rows))
        assert np.isfinite(results[0]).all()
        for result in results[1:]:
            np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize("channels", [1, 3])
def test_nothing_is_written_behind_the_memory_of_a_job(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Low images and low tiles: a task of the refinement has more rows than one of the stages."""
    config = dataclasses.replace(refined_config(channels=channels), window=3)
    stages = [stage.astype(np.float32) for stage in initial_parameters(config)]
    network = prepare(config, stages, random_refinement(channels=channels).at(25.0))
    behind: list[np.ndarray] = []

    def guarded(size: int) -> np.ndarray:
        memory = aligned_memory(size + 4096)
        memory[size:] = 0xAB
        behind.append(memory[size:])
        return memory[:size]

    monkeypatch.setattr("nlnet.engine.memory.aligned_memory", guarded)
    for height, tile_rows in itertools.product((7, 9, 10, 11, 17, 18), (8, 16)):
        image = picture(channels, height, 70)
        sweep(network, image, box=None, threads=1, tile_rows=tile_rows)
    assert len(behind) == 12
    assert all(bool((guard == 0xAB).all()) for guard in behind)


def test_threads_change_no_bit_behind_stages_that_work() -> None:
    family, image = refined_family(), picture(1, 130, 90)
    one, *others = (by_engine(image, family, 25.0, threads=threads) for threads in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("channels", [1, 3])
def test_max_memory_lowers_the_tiles_and_is_kept(channels: int) -> None:
    family, image = refined_family(channels=channels), picture(channels, 160, 300)
    least = least_memory(image.shape, family.config, 1)
    roomy = by_engine(image, family, 25.0, threads=1)
    tight = np.empty_like(image)
    network = Network(family.at, threads=1, max_memory=least, box=(0.0, 255.0))
    network.remove(image, White(25.0), tight, ignore)
    np.testing.assert_allclose(tight, roomy, rtol=0, atol=1e-3)
    with refused(InputError, f"at least {least}"):
        dataclasses.replace(network, max_memory=least - 1).remove(image, White(25.0), tight, ignore)
    # The refinement has its own share, which grows with the width and not with the height.
    unrefined = dataclasses.replace(family.config, refinement=None)
    assert least > least_memory(image.shape, unrefined, 1)
    tall, wide = (channels, 1600, 300), (channels, 160, 3000)
    assert least_memory(tall, family.config, 1) < 1.1 * least
    assert least_memory(wide, family.config, 1) > 1.5 * least


def test_weights_count_as_memory() -> None:
    heavy, light = (RefinementConfig((8, width), (0, 4), (0,)) for width in (256, 8))
    needed = [least_memory((1, 16, 16), refined_config(sizes), 1) for sizes in (heavy, light)]
    # In the block that goes to the engine, and as the engine has them.
    values = heavy.parameter_count(1) - light.parameter_count(1)
    assert needed[0] - needed[1] > 2 * 4 * values


def in_a_thread(progress: Any) -> None:
    """There, one that works itself, progress is reported after every task."""
    image, family = picture(1, 300, 64), refined_family()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(by_engine, image, family, 25.0, threads=1, progress=progress).result()


def test_progress_goes_from_0_to_1() -> None:
    shares: list[float] = []
    in_a_thread(shares.append)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert shares == sorted(set(shares))
    assert max(np.diff(shares)) < 0.3


def test_progress_can_stop_it() -> None:
    def stop(share: float) -> None:
        if share > 0.5:
            raise Cancelled("enough")

    with pytest.raises(Cancelled, match="enough"):
        in_a_thread(stop)
