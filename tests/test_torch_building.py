"""The module as something to build on: derivatives, modes, weights, memory, precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import noise, random_stages
from messages import refused
from refinements import refined_family

import nlnet
from nlnet.errors import InputError
from nlnet.model.loading import shipped_models
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig

torch = pytest.importorskip("torch")
from nlnet.torch import Denoiser, NLNet, plain, tiles  # noqa: E402

pytestmark = pytest.mark.numerical

SMALL = NetworkConfig(stages=2, patch_size=3, group_size=3, window=7, rbf_count=21)


def network_of(config: NetworkConfig = SMALL, **options: Any) -> NLNet:
    return NLNet(config, random_stages(config), **options)


# --- Second derivatives -------------------------------------------------------------------------


def loss(network: NLNet, noisy: Any, groups: Any) -> Any:
    return 0.5 * (noisy - network(noisy, groups)).pow(2).sum()


def gradient(network: NLNet, noisy: Any, groups: Any, **options: Any) -> Any:
    return torch.autograd.grad(loss(network, noisy, groups), noisy, **options)[0]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("box", [(70.0, 190.0), None])
def test_second_derivatives_are_those_of_difference_quotients(channels: int, box: Any) -> None:
    config = NetworkConfig(
        channels=channels, stages=2, patch_size=3, group_size=3, window=7, rbf_count=21
    )
    network = network_of(config, box=box)
    noisy = torch.tensor(noise(1, channels, 9, 10, std=40.0), requires_grad=True)
    groups = network.find_groups(network.to_working_planes(noisy))
    direction = torch.tensor(noise(1, channels, 9, 10, seed=5) - 128)
    first = gradient(network, noisy, groups, create_graph=True)
    (second,) = torch.autograd.grad((first * direction).sum(), noisy)
    step = 1e-5 * direction / direction.norm()
    up, down = (gradient(network, noisy + s, groups) for s in (step, -step))
    quotient = (up - down) / (2e-5 / direction.norm())
    assert second.norm() > 1
    assert (second - quotient).norm() < 1e-4 * quotient.norm()


def test_a_gradient_of_a_gradient_reaches_the_parameters() -> None:
    results = []
    for backend in ("engine", "plain"):
        network = network_of(backend=backend)
        noisy = torch.tensor(noise(1, 1, 9, 10, std=40.0), requires_grad=True)
        groups = network.find_groups(noisy)
        gradient(network, noisy, groups, create_graph=True).square().sum().backward()
        results.append([value.grad for value in network.parameters()])
    for ours, autograds in zip(*results, strict=True):
        torch.testing.assert_close(ours, autograds, rtol=1e-7, atol=1e-9)


def test_the_denoiser_can_be_differentiated_twice(gray_model: Model) -> None:
    denoiser = Denoiser(gray_model, clip=False)
    x = torch.tensor(noise(1, 1, 12, 12) / 255, dtype=torch.float32)
    direction = torch.tensor(noise(1, 1, 12, 12, seed=5) - 128, dtype=torch.float32)

    def first(x: Any, **options: Any) -> Any:
        return torch.autograd.grad(0.5 * (x - denoiser(x, 0.1)).pow(2).sum(), x, **options)[0]

    x.requires_grad_()
    (second,) = torch.autograd.grad((first(x, create_graph=True) * direction).sum(), x)
    step = 3e-4 * direction / direction.norm()  # in which the groups stay as they are
    quotient = (first(x + step) - first(x - step)) / (6e-4 / direction.norm())
    assert float((second - quotient).norm() / quotient.norm()) < 0.05


# --- Modes --------------------------------------------------------------------------------------


def test_training_works_after_inference_mode() -> None:
    network = network_of(backend="plain")
    noisy = torch.tensor(noise(1, 1, 9, 10))
    with torch.inference_mode():
        network(noisy)
    network(noisy).sum().backward()
    assert network.stages[0].mix.grad.any()


def test_an_export_leaves_eager_calls_as_they_were() -> None:
    # Settings that no other test has cached.
    config = NetworkConfig(stages=1, patch_size=3, group_size=2, window=5, rbf_count=19)
    network = network_of(config, backend="plain").requires_grad_(False)
    noisy = torch.tensor(noise(1, 1, 9, 10))
    torch.export.export(network, (noisy,))
    result = network(noisy)
    assert type(result) is torch.Tensor
    assert bool(result.isfinite().all())


# --- Weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", shipped_models())
def test_every_shipped_model_becomes_a_module(name: str) -> None:
    model = nlnet.load_model(name)
    network = NLNet.from_model(model)
    count = sum(value.numel() for value in network.parameters())
    assert count == model.parameter_count
    assert {key for key, _ in network.named_parameters()} == set(network.state_dict())
    channels = model.config.channels
    noisy = torch.tensor(noise(1, channels, 40, 36), dtype=torch.float32)
    with torch.no_grad():
        denoised = network(noisy, sigma=20.0)[0].numpy()
    scale = getattr(model, "sigma", 20.0) / 20.0
    image = noisy[0].numpy() / scale
    expected = nlnet.denoise(image, 20.0, model=model, channel_axis=0, data_range=255 / scale)
    np.testing.assert_allclose(denoised, scale * expected, atol=0.02)


def test_all_of_a_family_is_trained() -> None:
    network = NLNet.from_model(refined_family())
    noisy = torch.tensor(noise(1, 1, 24, 24), dtype=torch.float32)
    (network(noisy, sigma=20.0) - 100).square().mean().backward()
    still = {name for name, value in network.named_parameters() if value.grad is None}
    assert not still


def test_a_model_at_one_sigma_can_be_trained_with_its_refinement() -> None:
    family = refined_family()
    network = NLNet.from_model(family.at(20.0))
    noisy = torch.tensor(noise(1, 1, 24, 24), dtype=torch.float32)
    (network(noisy) - 100).square().mean().backward()
    moved = [name for name, value in network.named_parameters() if value.grad is not None]
    assert any(name.startswith("refinement.") for name in moved)
    assert "refinement.values.step_size" in network.state_dict()


# --- Memory -------------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("shape", [(150, 97), (33, 200)])
def test_tiles_give_what_the_whole_image_gives(
    channels: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    network = NLNet.from_model(refined_family(channels=channels), backend="plain")
    # Integers, so that the luminance, and with it the groups, are exact.
    noisy = torch.tensor(np.round(noise(1, channels, *shape) / 3) * 3, dtype=torch.float32)
    whole = network(noisy, sigma=20.0).detach()
    network.max_memory = 1  # the smallest tiles
    largest = 0
    plain_stage = plain.stage

    def watched(estimate: Any, *rest: Any) -> Any:
        nonlocal largest
        largest = max(largest, estimate[0, 0].numel())
        return plain_stage(estimate, *rest)

    monkeypatch.setattr(plain, "stage", watched)
    with torch.no_grad():
        tiled = network(noisy, sigma=20.0)
    assert 0 < largest < noisy[0, 0].numel()
    assert float((tiled - whole).abs().max()) < 1e-3


def test_tiles_are_as_large_as_the_memory_allows() -> None:
    for memory in (1 << 26, 1 << 30):
        side = tiles.tile_side(memory, 3000, 34, unit=8)
        assert side % 8 == 0
        assert 0.9 * memory < 3000 * (side + 68) ** 2 <= memory


# --- Precision ----------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["engine", "plain"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_refused_in_a_sentence(backend: str, dtype: Any) -> None:
    network = network_of(backend=backend)
    noisy = torch.tensor(noise(1, 1, 9, 10))
    with refused(InputError, "float32 or float64"):
        network(noisy.to(dtype))
    with refused(InputError, "float32 or float64"):
        network.to(dtype)(noisy.to(dtype))
