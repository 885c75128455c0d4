"""The torch module: its plain path against the engine, autograd against Appendix A."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from cases import (
    SMALL,
    TILE_COLUMNS,
    assert_close,
    denoise_planes,
    few_levels,
    from_working_planes,
    noise,
    random_groups,
    random_stages,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from messages import refused

from nlnet.errors import InputError, ModelError
from nlnet.model.model import Model
from nlnet.network.config import BOX, NetworkConfig
from nlnet.network.matching import find_groups
from nlnet.network.parameters import dct_basis, initial_parameters

torch = pytest.importorskip("torch")
from nlnet.torch import NLNet, engine, plain  # noqa: E402

pytestmark = pytest.mark.numerical


def tensors_of(stages) -> list[plain.StageTensors]:
    """Leaves of the graph, in float64."""
    return [
        plain.StageTensors(
            *(
                torch.tensor(value, dtype=torch.float64, requires_grad=True)
                for value in (s.filters, s.group_weights, s.coefficients, s.step_size)
            )
        )
        for s in stages
    ]


# --- Plain path against the engine -----------------------------------------------------------


def assert_paths_agree(config: NetworkConfig, shape: tuple[int, int]) -> None:
    """Outputs and all gradients, for a batch of two, with a box that many pixels leave."""
    box = (70.0, 190.0)
    size = (2, config.channels, *shape)
    groups = torch.from_numpy(random_groups((2, *shape), config))
    cotangent = torch.from_numpy(noise(*size, seed=7) - 128)
    results = []
    for run in (plain.run_stages, engine.run_stages):
        stages = tensors_of(random_stages(config))
        estimate = torch.tensor(noise(*size, std=60.0), requires_grad=True)
        noisy = torch.tensor(noise(*size, std=60.0, seed=3), requires_grad=True)
        output = run(estimate, noisy, groups, plain.Stages(stages, config, box))
        leaves = [estimate, noisy, *(tensor for stage in stages for tensor in stage)]
        gradients = torch.autograd.grad(output, leaves, cotangent)
        results.append([array.detach().numpy() for array in (output, *gradients)])
    plain_results, engine_results = results
    for ours, autograds in zip(engine_results, plain_results, strict=True):
        assert ours.dtype == np.float64
        assert_close(ours, autograds, 1e-10)
    images = from_working_planes(plain_results[0])
    assert 0.02 < np.mean(np.isclose(images, 70) | np.isclose(images, 190)) < 0.9


@pytest.mark.parametrize("project_every_stage", [True, False], ids=["every", "end"])
@pytest.mark.parametrize("odd", [True, False], ids=["odd", "free"])
@pytest.mark.parametrize(("channels", "patch_size", "shape"), [(1, 5, (12, 11)), (3, 3, (9, 14))])
def test_outputs_and_all_gradients_agree(channels, patch_size, shape, odd, project_every_stage):
    config = NetworkConfig(
        channels=channels,
        stages=3,
        patch_size=patch_size,
        group_size=4,
        window=9,
        rbf_count=21,
        odd=odd,
        project_every_stage=project_every_stage,
    )
    assert_paths_agree(config, shape)


@pytest.mark.parametrize("patch_size", [3, 7])
def test_outputs_and_all_gradients_agree_beyond_a_tile(patch_size):
    config = NetworkConfig(stages=1, patch_size=patch_size, group_size=3, window=31)
    assert_paths_agree(config, (TILE_COLUMNS + 6, TILE_COLUMNS + 2))


@pytest.mark.parametrize("patch_size", [3, 5, 7, 9])
@pytest.mark.parametrize("shape", [(9, 9), (10, 13), (70, 66)])
def test_plain_synthesis_is_the_adjoint_of_analysis(shape, patch_size):
    config = NetworkConfig(patch_size=patch_size, group_size=4, window=9, stages=1)
    filters, weights, _, _ = tensors_of(random_stages(config))[0]
    members = plain.flat_members(torch.from_numpy(random_groups((2, *shape), config)))
    x = torch.from_numpy(noise(2, 3, *shape) - 128)
    Lx = plain.analysis(x, filters, weights, members)
    z = torch.from_numpy(noise(*Lx.shape, seed=3) - 128)
    difference = (Lx * z).sum() - (x * plain.synthesis(z, filters, weights, members, x.shape)).sum()
    assert abs(difference) < 1e-12 * Lx.norm() * z.norm()


def test_numerical_gradients():
    config = dataclasses.replace(SMALL, patch_size=3, rbf_count=5)
    groups = torch.from_numpy(random_groups((1, 5, 6), config))
    stages = tensors_of(random_stages(config))
    flat = [tensor for stage in stages for tensor in stage]
    planes = [torch.tensor(noise(1, 1, 5, 6, seed=s), requires_grad=True) for s in (1, 2)]

    def run(estimate, noisy, *values):
        given = [plain.StageTensors(*values[i : i + 4]) for i in range(0, len(values), 4)]
        return engine.run_stages(estimate, noisy, groups, plain.Stages(given, config, BOX), 1)

    assert torch.autograd.gradcheck(run, (*planes, *flat), eps=1e-6, atol=1e-4, rtol=1e-5)


# --- Matching ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patch_size", "group_size", "window", "shape"),
    [
        (5, 8, 31, (20, 40)),
        (5, 8, 31, (6, 5)),
        (3, 2, 3, (9, 12)),
        (3, 16, 7, (12, 9)),
        (7, 3, 9, (8, 21)),
    ],
)
@pytest.mark.parametrize("levels", [1, 3, 256])
def test_plain_matching_gives_the_groups_of_the_engine(
    patch_size, group_size, window, shape, levels
):
    # Of integers all sums are exact, whatever their order; ties are many.
    config = NetworkConfig(patch_size=patch_size, group_size=group_size, window=window)
    images = few_levels(2, *shape, levels=levels)
    found = plain.find_groups(torch.from_numpy(images), config)
    assert found.dtype == torch.int8
    np.testing.assert_array_equal(found.numpy(), find_groups(images, config))


@settings(max_examples=25, deadline=None)
@given(
    image=hnp.arrays(
        np.float32,
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=5, max_side=11),
        elements=st.integers(-2, 2).map(float),
    )
)
def test_plain_matching_of_any_small_image(image):
    config = NetworkConfig(patch_size=3, group_size=8, window=7)
    found = plain.find_groups(torch.from_numpy(image[np.newaxis]), config)
    np.testing.assert_array_equal(found.numpy(), find_groups(image[np.newaxis], config))


def test_plain_matching_of_a_group_of_one():
    config = NetworkConfig(patch_size=3, group_size=1, window=7)
    images = few_levels(2, 9, 10)
    found = plain.find_groups(torch.from_numpy(images), config)
    np.testing.assert_array_equal(found.numpy(), find_groups(images, config))


@pytest.mark.parametrize("value", [1e19, 3e38])
def test_plain_matching_of_distances_beyond_float32(value):
    images = np.where(few_levels(1, 20, 30, levels=2) > 0, value, -value).astype(np.float32)
    config = NetworkConfig(window=9)
    found = plain.find_groups(torch.from_numpy(images), config)
    np.testing.assert_array_equal(found.numpy(), find_groups(images, config))


def test_plain_matching_of_an_image_too_small_is_an_error():
    with refused(InputError, "4x9 pixels"):
        plain.find_groups(torch.zeros(1, 9, 4), NetworkConfig())


# --- The module ------------------------------------------------------------------------------


def module(config: NetworkConfig, dtype: type = np.float64, **options) -> NLNet:
    stages = [stage.astype(dtype) for stage in random_stages(config)]
    return NLNet(config, stages, **options)


@pytest.mark.parametrize("project_every_stage", [True, False], ids=["every", "end"])
@pytest.mark.parametrize("channels", [1, 3])
def test_backends_agree_end_to_end(channels, project_every_stage):
    config = NetworkConfig(
        channels=channels, stages=2, window=9, project_every_stage=project_every_stage
    )
    # Many pixels leave the box; the luminance is exact, and so are the groups.
    images = np.round(noise(2, channels, 13, 15, std=80.0) / 3) * 3
    outputs, gradients = [], []
    for backend in ("engine", "plain"):
        network = module(config, backend=backend)
        noisy = torch.tensor(images, requires_grad=True)
        output = network(noisy)
        output.square().sum().backward()
        outputs.append(output.detach().numpy())
        gradients.append([noisy.grad, *(value.grad for value in network.parameters())])
    assert_close(outputs[0], outputs[1], 1e-11)
    for ours, autograds in zip(*gradients, strict=True):
        if autograds.any():
            assert_close(ours, autograds, 1e-9)
        else:
            assert not ours.any()


@pytest.mark.parametrize("backend", ["auto", "engine", "plain"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_batch_is_denoised_as_its_images_are(channels, backend):
    config = NetworkConfig(channels=channels, stages=2, window=9)
    images = np.round(noise(2, channels, 13, 15) / 3) * 3
    with torch.no_grad():
        output = module(config, backend=backend)(torch.from_numpy(images))
    assert output.shape == images.shape
    assert output.dtype == torch.float64
    for image, denoised in zip(images, output.numpy(), strict=True):
        assert_close(denoised, denoise_planes(image, config, random_stages(config)), 1e-11)


def test_known_groups_and_parts_of_the_network():
    config = NetworkConfig(stages=3, window=9, project_every_stage=False)
    for backend in ("engine", "plain"):
        network = module(config, backend=backend)
        planes = torch.from_numpy(noise(1, 1, 12, 13, std=80.0))
        groups = network.find_groups(planes)
        with torch.no_grad():
            whole = network(planes)
            assert torch.equal(network(planes, groups), whole)
            # Without the projection in between, two runs are one.
            middle = network.run(planes, planes, groups, 0, 2, project_last=False)
            parts = network.run(middle, planes, groups, 2)
            boxed = network.run(planes, planes, groups, 0, 2)
        assert torch.equal(parts, whole)
        assert middle.min() < 0
        assert boxed.min() == 0


@pytest.mark.parametrize("shape", [(1, 20, 20), (20, 20), (2, 3, 20, 20), (1, 1, 1, 20, 20)])
def test_a_batch_of_the_wrong_shape_is_an_error(shape):
    network = NLNet(NetworkConfig(stages=1))
    with refused(InputError, "must be (B, 1, H, W)"):
        network(torch.zeros(shape))


@pytest.mark.parametrize("backend", ["engine", "plain"])
def test_an_image_too_small_is_an_error(backend):
    network = NLNet(NetworkConfig(stages=1), backend=backend)
    with refused(InputError, "20x4 pixels"):
        network(torch.zeros(1, 1, 4, 20))


def test_stages_that_do_not_fit_the_config_are_an_error():
    config = NetworkConfig(stages=2)
    with refused(ModelError, "2 stages"):
        NLNet(config, random_stages(config)[:1])


@pytest.mark.parametrize("odd", [True, False], ids=["odd", "free"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_model_goes_in_and_comes_out(channels, odd):
    config = NetworkConfig(channels=channels, stages=2, odd=odd, rbf_count=62 if odd else 51)
    stages = tuple(stage.astype(np.float32) for stage in random_stages(config))
    model = Model(config, stages, sigma=25.0, name="random")
    (exported,) = NLNet.from_model(model).export()
    assert len(exported) == 2
    for out, into in zip(exported, stages, strict=True):
        assert out.filters.dtype == np.float32
        np.testing.assert_allclose(out.filters, into.filters, atol=1e-6)
        np.testing.assert_array_equal(out.group_weights, into.group_weights)
        np.testing.assert_array_equal(out.coefficients, into.coefficients)
        assert out.step_size == pytest.approx(into.step_size, rel=1e-6)
    Model(config, exported, sigma=25.0, name="again")  # passes the checks of a model


def test_a_state_dict_carries_all_that_is_learned():
    config = NetworkConfig(stages=2)
    one, other = module(config, np.float32), NLNet(config)
    assert sum(value.numel() for value in one.parameters()) == config.parameter_count
    other.load_state_dict(one.state_dict())
    noisy = torch.from_numpy(noise(1, 1, 16, 16).astype(np.float32))
    with torch.no_grad():
        assert torch.equal(one(noisy), other(noisy))


@pytest.mark.parametrize("rbf_count", [62, 63])
def test_odd_mixtures_have_half_the_coefficients(rbf_count):
    config = NetworkConfig(stages=1, rbf_count=rbf_count)
    stage = module(config).stages[0]
    assert stage.coefficients.shape == (1, 1, 24, rbf_count // 2)  # one set, one channel
    coefficients = stage.tensors().coefficients
    assert coefficients.shape == (1, 24, rbf_count)
    assert torch.equal(coefficients, -coefficients.flip(-1))
    free = module(dataclasses.replace(config, odd=False)).stages[0]
    assert free.coefficients.shape == (1, 1, 24, rbf_count)


def test_filters_keep_zero_mean_and_unit_norm_whatever_the_mix():
    stage = module(NetworkConfig(stages=1)).stages[0]
    with torch.no_grad():
        stage.mix.mul_(torch.linspace(0.1, 30, 24, dtype=torch.float64))
        stage.mix.add_(0.3)
        filters = stage.tensors().filters.numpy()
    np.testing.assert_allclose(filters.sum(axis=1), 0, atol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(filters, axis=1), 1, rtol=1e-14)
    assert not np.allclose(filters, dct_basis(5), atol=0.1)


@pytest.mark.parametrize("backend", ["engine", "plain"])
@pytest.mark.parametrize("channels", [1, 3])
def test_gradients_reach_all_parameters_but_the_first_step_size(channels, backend):
    config = NetworkConfig(channels=channels, stages=2, window=9)
    network = NLNet(config, initial_parameters(config), backend=backend)
    noisy = torch.from_numpy(noise(2, channels, 16, 15))
    clean = torch.full_like(noisy, 100.0)
    (network(noisy) - clean).square().mean().backward()
    for name, value in network.named_parameters():
        reached = value.grad is not None and bool(value.grad.any())
        assert reached == (name != "stages.0.step_size"), name


@pytest.mark.parametrize("backend", ["engine", "plain"])
def test_a_step_down_the_gradient_lowers_the_loss(backend):
    config = NetworkConfig(stages=2, window=9)
    network = NLNet(config, initial_parameters(config), backend=backend)
    noisy, clean = torch.from_numpy(noise(1, 1, 16, 15)), torch.full((1, 1, 16, 15), 128.0)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-4)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (network(noisy) - clean).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > losses[1] > losses[2]


def test_tensors_that_are_not_contiguous():
    network = module(NetworkConfig(stages=2, window=9))
    noisy = torch.from_numpy(noise(1, 1, 14, 20))
    sideways = noisy.transpose(2, 3).contiguous().transpose(2, 3)
    assert not sideways.is_contiguous()
    outputs = []
    for images in (noisy, sideways):
        images.requires_grad_()
        output = network(images)
        (gradient,) = torch.autograd.grad(output.transpose(2, 3).square().sum(), images)
        outputs.append((output, gradient))
    assert torch.equal(outputs[0][0], outputs[1][0])
    assert torch.equal(outputs[0][1], outputs[1][1])


def test_an_input_changed_before_the_backward_pass_is_an_error():
    network = NLNet(NetworkConfig(stages=1))
    noisy = 128 + 20 * torch.randn(1, 1, 16, 16)
    loss = network(noisy).sum()
    noisy += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
