"""The whole network: against the slow version, its gradients, its symmetries, its bits."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import slow
from cases import (
    SMALL,
    TILE_COLUMNS,
    assert_close,
    central_differences,
    denoise_planes,
    from_working_planes,
    noise,
    random_groups,
    random_stages,
    run_batch,
    run_stages,
    sweep,
)
from messages import refused

from nlnet.denoising.network import Network, least_memory
from nlnet.engine import tasks
from nlnet.engine.library import load
from nlnet.errors import InputError
from nlnet.model.model import Model
from nlnet.network.block import make_network, prepare
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters
from nlnet.noise.record import White
from nlnet.progress import ignore

pytestmark = pytest.mark.numerical

TILE_ROWS = load().tile_rows()


# --- Against the paper -----------------------------------------------------------------------


@pytest.mark.parametrize("project_every_stage", [True, False], ids=["every", "end"])
@pytest.mark.parametrize("patch_size", [5, 7])
@pytest.mark.parametrize("channels", [1, 3], ids=["gray", "color"])
def test_network_is_the_slow_version(channels, patch_size, project_every_stage):
    config = NetworkConfig(
        channels=channels,
        stages=2,
        patch_size=patch_size,
        group_size=4,
        window=9,
        rbf_count=21,
        odd=False,
        project_every_stage=project_every_stage,
    )
    stages = random_stages(config)
    image = noise(channels, 9, 10, std=80.0)
    wanted = slow.network(image, stages, config)
    free = slow.network(image, stages, config, clip=False)
    # The box matters; a color comes back from its opponent planes within rounding of a limit.
    assert 0.02 < np.mean((wanted < 1e-9) | (wanted > 255 - 1e-9)) < 0.8
    # The table's error is some 1e-5 of psi's range; a pixel sums a few hundred of its values.
    for run in (denoise_planes, run_batch):
        np.testing.assert_allclose(run(image, config, stages), wanted, rtol=0, atol=1e-3)
        np.testing.assert_allclose(run(image, config, stages, box=None), free, rtol=0, atol=1e-3)


def test_a_group_may_be_the_patch_alone():
    config = dataclasses.replace(SMALL, group_size=1)
    stages = random_stages(config)
    image = noise(1, 8, 9)
    wanted = slow.network(image, stages, config)
    np.testing.assert_allclose(denoise_planes(image, config, stages), wanted, rtol=0, atol=1e-3)


# --- Gradients through several stages and the projection -------------------------------------


STEPS = {"filters": 1e-6, "group_weights": 1e-6, "coefficients": 1e-5, "step_size": 1e-6}


@pytest.mark.parametrize("project_every_stage", [True, False], ids=["every", "end"])
@pytest.mark.parametrize("channels", [1, 3], ids=["gray", "color"])
def test_gradients_through_stages_and_box_are_central_differences(channels, project_every_stage):
    config = dataclasses.replace(SMALL, channels=channels, project_every_stage=project_every_stage)
    stages = list(random_stages(config))
    shape = (1, channels, 8, 7)
    estimate, noisy = noise(*shape, std=70.0), noise(*shape, std=70.0, seed=4)
    cotangent = np.random.default_rng(5).standard_normal(shape)
    groups = random_groups((1, 8, 7), config)

    def loss(x=estimate, y=noisy, parameters=stages) -> float:
        run = run_stages(config, parameters, x, y, groups)
        return np.vdot(cotangent, run.estimates[-1])

    def changed(number: int, **values) -> float:
        other = dataclasses.replace(stages[number], **values)
        return loss(parameters=[*stages[:number], other, *stages[number + 1 :]])

    run = run_stages(config, stages, estimate, noisy, groups)
    gradients = tasks.backward(run, cotangent)

    boxed = run.updates if project_every_stage else run.updates[-1:]
    for update in boxed:  # clipped here and there, but nowhere near a kink
        rgb = from_working_planes(update)
        assert 0.01 < np.mean((rgb < 0) | (rgb > 255)) < 0.7
        assert min(np.abs(rgb).min(), np.abs(rgb - 255).min()) > 1e-3

    wanted = central_differences(lambda x: loss(x=x), estimate, 1e-4)
    assert_close(gradients.estimate, wanted, 1e-6)
    assert_close(gradients.noisy, central_differences(lambda y: loss(y=y), noisy, 1e-4), 1e-6)
    for number in range(len(stages)):
        for name, step in STEPS.items():
            wanted = central_differences(
                lambda value, number=number, name=name: changed(number, **{name: value}),
                np.asarray(getattr(stages[number], name)),
                step,
            )
            of_all = gradients.step_sizes if name == "step_size" else getattr(gradients, name)
            assert_close(of_all[number], wanted, 1e-6)


# --- The sweep down the image ----------------------------------------------------------------


@pytest.mark.parametrize("project_every_stage", [True, False], ids=["every", "end"])
@pytest.mark.parametrize(
    ("channels", "shape"),
    [
        (1, (5, 40)),
        (1, (TILE_ROWS - 1, 20)),
        (3, (TILE_ROWS, 17)),
        (1, (TILE_ROWS + 1, TILE_COLUMNS + 1)),
        (3, (4 * TILE_ROWS + 9, 70)),
    ],
)
def test_denoising_in_a_sweep_is_the_whole_image_at_once(channels, shape, project_every_stage):
    config = NetworkConfig(
        channels=channels, stages=3, group_size=8, project_every_stage=project_every_stage
    )
    stages = random_stages(config)
    image = noise(channels, *shape)
    swept = denoise_planes(image, config, stages)
    np.testing.assert_allclose(swept, run_batch(image, config, stages), rtol=0, atol=1e-9)


@pytest.mark.parametrize("tile_rows", [8, 11, 16, 64])
@pytest.mark.parametrize(("window", "height"), [(3, 90), (31, 130), (31, 131)])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_height_of_tiles_moves_the_output_by_rounding_only(tile_rows, window, height, threads):
    config = NetworkConfig(stages=3, patch_size=3, group_size=4, window=window)
    stages = random_stages(config)
    image = noise(1, height, 70)
    swept = sweep(make_network(config, stages), image, threads=threads, tile_rows=tile_rows)
    np.testing.assert_allclose(swept, run_batch(image, config, stages), rtol=0, atol=1e-9)


@pytest.mark.parametrize("channels", [1, 3])
def test_float32_is_within_a_thousandth_of_a_gray_level(channels):
    # A network that denoises: a random one would magnify what rounding does in its first stage.
    config = NetworkConfig(channels=channels)
    stages = initial_parameters(config)
    if channels == 1:  # Rounding of a luminance may decide a near tie in matching otherwise.
        mean = np.full(config.group_size, 1 / config.group_size)
        stages = [dataclasses.replace(stage, group_weights=mean) for stage in stages]
    image = noise(channels, 70, 80).astype(np.float32)
    single = denoise_planes(image, config, stages)
    assert single.dtype == np.float32
    double = denoise_planes(image.astype(np.float64), config, stages)
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-3)


# --- Symmetries ------------------------------------------------------------------------------

PRECISION = {np.float64: 1e-9, np.float32: 1e-2}


@pytest.mark.parametrize("odd", [True, False])
@pytest.mark.parametrize(("channels", "dtype"), [(1, np.float32), (1, np.float64), (3, np.float64)])
def test_adding_a_constant_adds_it_to_the_output(channels, odd, dtype):
    config = NetworkConfig(channels=channels, stages=3, odd=odd)
    stages = random_stages(config)
    # In steps of 3/8 the luminance is exact, with the constant and without, and so are the groups.
    image = (np.round(noise(channels, 20, 70) * 8 / 3) * 3 / 8).astype(dtype)
    output = denoise_planes(image, config, stages, box=None)
    shifted = denoise_planes(image + dtype(64), config, stages, box=None)
    np.testing.assert_allclose(shifted, output + 64, rtol=0, atol=PRECISION[dtype])
    assert not np.allclose(output, image, atol=1)


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("value", [0.0, 93.7, 255.0])
def test_odd_psi_leaves_a_constant_image(channels, dtype, value):
    config = NetworkConfig(channels=channels, stages=3)
    image = np.full((channels, 18, 67), value, dtype)
    if channels == 3:
        image *= np.array([1.0, 0.5, 0.25], dtype)[:, None, None]
    output = denoise_planes(image, config, random_stages(config))
    np.testing.assert_allclose(output, image, rtol=0, atol=PRECISION[dtype])


def test_free_psi_moves_a_constant_image():
    config = NetworkConfig(odd=False, stages=1)
    image = np.full((1, 18, 20), 93.7)
    output = denoise_planes(image, config, random_stages(config))
    assert np.abs(output - image).max() > 0.1


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize("channels", [1, 3])
def test_odd_psi_makes_an_odd_network(channels, dtype):
    config = NetworkConfig(channels=channels, stages=3)
    stages = random_stages(config)
    image = noise(channels, 20, 70).astype(dtype)
    output = denoise_planes(image, config, stages, box=None)
    negative = denoise_planes(-image, config, stages, box=None)
    np.testing.assert_allclose(negative, -output, rtol=0, atol=PRECISION[dtype])


def test_planes_need_not_be_contiguous():
    config = NetworkConfig(channels=3, stages=2)
    stages = random_stages(config)
    image = noise(30, 70, 3)
    wanted = denoise_planes(np.ascontiguousarray(image.transpose(2, 0, 1)), config, stages)
    np.testing.assert_array_equal(denoise_planes(image.transpose(2, 0, 1), config, stages), wanted)


def test_output_is_in_the_box():
    config = NetworkConfig(stages=2, channels=3)
    image = noise(3, 20, 20, std=100.0)
    output = denoise_planes(image, config, random_stages(config), box=(50.0, 200.0))
    assert output.min() == pytest.approx(50)
    assert output.max() == pytest.approx(200)


# --- The same bits, and what a run takes -----------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_threads_and_runs_give_the_same_bits(channels):
    config = NetworkConfig(channels=channels, stages=3)
    stages = random_stages(config)
    image = noise(channels, 150, 140).astype(np.float32)
    first = denoise_planes(image, config, stages, threads=1)
    for threads in (1, 2, 3, 4):
        again = denoise_planes(image, config, stages, threads=threads)
        assert again.tobytes() == first.tobytes()


def test_several_threads_of_the_program_may_denoise_at_once():
    config = NetworkConfig(channels=3, stages=3)
    stages = random_stages(config)
    images = [noise(3, 70, 80, seed=seed).astype(np.float32) for seed in range(6)]
    alone = [denoise_planes(image, config, stages, threads=1).tobytes() for image in images]
    with ThreadPoolExecutor(4) as pool:
        together = pool.map(lambda image: denoise_planes(image, config, stages, threads=2), images)
    assert [output.tobytes() for output in together] == alone


def test_progress_goes_from_nothing_to_one_and_can_stop_the_work():
    config = NetworkConfig(stages=2, window=7)
    stages = initial_parameters(config)
    image = noise(1, 3 * TILE_ROWS, 40)
    shares: list[float] = []
    denoise_planes(image, config, stages, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[0] < 0.5
    assert shares[-1] == 1.0

    def stop(share: float) -> None:
        if share > 0.3:
            raise InterruptedError(share)

    with pytest.raises(InterruptedError):
        denoise_planes(image, config, stages, progress=stop)


IN_A_PROCESS_OF_ITS_OWN = """
import hashlib, json, sys
import numpy as np
from cases import denoise_planes, noise, random_stages
from nlnet.network.config import NetworkConfig

def peak_memory():
    try:  # On Linux getrusage has the peak of the process that started this one, too.
        with open("/proc/self/status") as status:
            return next(1024 * int(line.split()[1]) for line in status if "VmHWM" in line)
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak

config = NetworkConfig()
image = noise(1, 321, 481).astype(np.float32)
output = denoise_planes(image, config, random_stages(config), threads=2)
print(json.dumps({
    "peak": peak_memory(),
    "torch": "torch" in sys.modules,
    "digest": hashlib.sha256(output.tobytes()).hexdigest(),
}))
"""


@pytest.fixture(scope="module")
def own_process() -> dict[str, object]:
    """What a fresh process reports that denoises a 481x321 gray image."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,  # for `cases`
    )
    return json.loads(done.stdout)


def test_denoising_takes_less_than_600_megabytes(own_process):
    if own_process["peak"] is None:
        pytest.skip("this platform does not tell a process's peak memory")
    assert 50e6 < own_process["peak"] < 600e6


def test_denoising_does_not_import_torch(own_process):
    assert own_process["torch"] is False


def test_another_process_gives_the_same_bits(own_process):
    config = NetworkConfig()
    image = noise(1, 321, 481).astype(np.float32)
    output = denoise_planes(image, config, random_stages(config), threads=1)
    assert hashlib.sha256(output.tobytes()).hexdigest() == own_process["digest"]


def test_color_stays_in_the_box_to_the_bit():
    config = NetworkConfig(channels=3, stages=2)
    image = noise(3, 40, 50, std=120.0).astype(np.float32)
    output = denoise_planes(image, config, random_stages(config))
    assert output.min() == 0.0
    assert output.max() == 255.0


# --- Memory --------------------------------------------------------------------------------------


def test_the_least_memory_is_accepted_and_less_is_not():
    config = NetworkConfig(channels=3, stages=2, window=9)
    stages = tuple(stage.astype(np.float32) for stage in random_stages(config))
    model = Model(config, stages, 25.0, "random")
    image = noise(3, 100, 90).astype(np.float32)
    least = least_memory(image.shape, config, 2)
    whole, less = np.empty_like(image), np.empty_like(image)
    for target, max_memory in ((whole, None), (less, least)):
        network = Network(lambda sigma: model, threads=2, max_memory=max_memory)
        network.remove(image, White(25.0), target, ignore)
    np.testing.assert_allclose(less, whole, rtol=0, atol=0.05)
    with refused(InputError, f"max_memory is {least - 1} bytes", f"at least {least}"):
        Network(lambda sigma: model, threads=2, max_memory=least - 1).remove(
            image, White(25.0), less, ignore
        )


def test_memory_grows_with_the_width_and_not_with_the_height():
    config = NetworkConfig()
    one, tall, wide = (
        least_memory((1, height, width), config, 2)
        for height, width in ((2000, 1000), (200_000, 1000), (2000, 2000))
    )
    assert tall < 1.01 * one
    assert 1.5 * one < wide


def test_a_network_is_made_once_for_the_same_values():
    config = NetworkConfig(stages=2)
    stages = random_stages(config)
    network = prepare(config, stages)
    assert prepare(config, [dataclasses.replace(stage) for stage in stages]) is network
    assert prepare(config, [stage.astype(np.float32) for stage in stages]) is not network
    assert prepare(dataclasses.replace(config, project_every_stage=False), stages) is not network
