"""The refinement: engine and torch agree, memory and threads change nothing, and the reach."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest
from cases import denoise_planes, noise
from messages import refused
from refinements import (
    ALL_SIZES,
    SIZES,
    STAGES,
    by_engine,
    picture,
    random_refinement,
    refined_config,
    refined_family,
)
from test_family import SIGMAS

import nlnet
from nlnet.defaults import FAMILIES
from nlnet.errors import InputError, ModelError
from nlnet.model.family import REFERENCE_SIGMA
from nlnet.network.config import NetworkConfig
from nlnet.network.refinement import Refinement, RefinementConfig, blank

torch = pytest.importorskip("torch")
from nlnet.denoising import devices  # noqa: E402
from nlnet.torch import Denoiser, NLNet  # noqa: E402
from nlnet.torch.refinement import RefinementNet, initial_refinement  # noqa: E402

pytestmark = pytest.mark.numerical

SIDES = ((5, 7), (6, 8), (13, 16), (32, 9), (61, 83))


# --- The engine and torch ---------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sizes", ALL_SIZES, ids=lambda sizes: str(sizes.widths))
@pytest.mark.parametrize("box", [(0.0, 255.0), None])
def test_the_engine_computes_what_torch_does(sizes: RefinementConfig, channels: int, box) -> None:
    """For any number of levels, sizes that are no multiples of the unit, and any noise."""
    family = refined_family(sizes, channels)
    for side, sigma in zip(SIDES, itertools.cycle((2.0, 5.0, 31.0, 120.0)), strict=False):
        image = picture(channels, *side, sigma=min(sigma, 60))
        expected = by_engine(image, family, sigma, box=box)
        scale = REFERENCE_SIGMA / sigma
        fixed = NLNet.from_model(
            family.at(sigma), box=box and (scale * box[0], scale * box[1]), backend="plain"
        )
        learned = NLNet(
            family.config,
            *family.sets,
            sigmas=SIGMAS,
            refinement=family.refinement,
            box=box,
            threads=1,
        )
        batch = torch.from_numpy(image[np.newaxis])
        with torch.no_grad():
            results = fixed(scale * batch) / scale, learned(batch, sigma=sigma)
        for result in results:
            np.testing.assert_allclose(result[0].numpy(), expected, rtol=0, atol=1e-3)
        unrefined = dataclasses.replace(family.config, refinement=None)
        model = family.at(sigma)
        stages = denoise_planes(image * np.float32(scale), unrefined, model.stages, box=None)
        assert np.abs(stages / scale - expected).max() > 1  # there is something to compare


def test_a_batch_has_a_sigma_for_each_image() -> None:
    functions = random_refinement()
    network = RefinementNet(functions)
    estimate, noisy = (torch.from_numpy(picture(3, 1, 14, 10, seed=seed)) for seed in (1, 2))
    sigmas = (3.0, 25.0, 70.0)
    with torch.no_grad():
        together = network(estimate, noisy, torch.tensor(sigmas))
        for number, sigma in enumerate(sigmas):
            scale, one = REFERENCE_SIGMA / sigma, slice(number, number + 1)
            fixed = RefinementNet(functions, (sigma, sigma))
            alone = fixed(scale * estimate[one], scale * noisy[one]) / scale
            torch.testing.assert_close(together[one], alone, rtol=0, atol=1e-3)


def test_an_image_in_float64_is_computed_in_float64() -> None:
    family = refined_family()
    model = family.at(25.0)
    image = picture(1, 21, 30).astype(np.float64)
    options = {"refinement": model.refinement, "box": None}
    result = denoise_planes(image, family.config, model.stages, **options)
    network = NLNet.from_model(model, box=None, backend="plain").double()
    with torch.no_grad():
        expected = network(torch.from_numpy(image[np.newaxis]))[0].numpy()
    assert result.dtype == np.float64
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_one_that_has_learned_nothing_changes_nothing(channels: int) -> None:
    family = refined_family(channels=channels)
    unlearned = dataclasses.replace(family, refinement=blank(SIZES, channels))
    image = picture(channels, 18, 23)
    plain = dataclasses.replace(family.config, refinement=None)
    expected = denoise_planes(image, plain, family.at(25.0).stages)
    np.testing.assert_allclose(by_engine(image, unlearned, 25.0), expected, rtol=0, atol=1e-4)


# --- Gradients --------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_gradients_are_those_of_the_formula(channels: int) -> None:
    """In float64, by central differences, in x, y and all values that are learned."""
    sizes = RefinementConfig((8, 8), (1, 0), (0,))
    network = RefinementNet(random_refinement(sizes, channels)).double()
    images = [torch.from_numpy(picture(1, channels, 5, 6, seed=s)).double() for s in (1, 2)]
    inputs = [*(image.requires_grad_() for image in images), *network.parameters()]
    names = [name for name, _ in network.named_parameters()]

    def run(estimate: Any, noisy: Any, *values: Any) -> Any:
        given = dict(zip(names, values, strict=True))
        sigmas = torch.tensor([12.0], dtype=torch.float64)
        return torch.func.functional_call(network, given, (estimate, noisy, sigmas))

    assert torch.autograd.gradcheck(run, inputs, eps=1e-4, atol=1e-4, rtol=1e-3, fast_mode=True)


@pytest.mark.parametrize("channels", [1, 3])
def test_both_backends_have_the_same_gradients(channels: int) -> None:
    family = refined_family(channels=channels)
    batch = torch.from_numpy(picture(2, channels, 14, 17)).double().requires_grad_()
    weights = torch.from_numpy(noise(*batch.shape, std=1.0, seed=9)) - 128
    found = []
    for backend in ("engine", "plain"):
        network = NLNet(
            family.config,
            *family.sets,
            sigmas=SIGMAS,
            refinement=family.refinement,
            backend=backend,
            threads=1,
        ).double()
        loss = (network(batch, sigma=9.0) * weights).sum()
        moving = [batch, *network.parameters()]
        found.append(torch.autograd.grad(loss, moving))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6 * float(other.abs().max()))


def test_training_begins_with_half_of_the_noisy_image() -> None:
    begun = initial_refinement(SIZES, 3, seed=4)
    assert list(begun.tensors["step_size"]) == [0.5, 0.0]
    assert not begun.tensors["head.weights"][:, :12].any()
    assert begun.tensors["head.weights"][:, 12:].all()
    again, other = (initial_refinement(SIZES, 3, seed).tensors for seed in (4, 5))
    for name, values in begun.tensors.items():
        np.testing.assert_array_equal(values, again[name])
    assert not np.array_equal(begun.tensors["tail.weights"], other["tail.weights"])


# --- Reach and unit ---------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", ALL_SIZES, ids=lambda sizes: str(sizes.widths))
def test_a_pixel_further_away_than_the_reach_changes_nothing(sizes: RefinementConfig) -> None:
    """Of the refinement alone; at places all over the unit, and just about as far as it says."""
    network = RefinementNet(random_refinement(sizes))
    length = 2 * sizes.reach + 3 * sizes.unit + 5
    reached = 0
    with torch.no_grad():
        for offset in range(sizes.unit):
            place = sizes.reach + sizes.unit + offset
            before = torch.from_numpy(picture(1, 1, sizes.unit, length))
            after = before.clone()
            after[..., place] += 40
            differs = (network(after, after) != network(before, before)).any(dim=2).flatten()
            distances = (torch.nonzero(differs).flatten() - place).abs()
            reached = max(reached, int(distances.max()))
    assert sizes.reach - sizes.unit <= reached <= sizes.reach


def test_the_reach_of_a_network_has_both_parts() -> None:
    config = refined_config()
    assert (STAGES.reach, STAGES.unit, STAGES.margin) == (12, 1, 3)
    assert (config.reach, config.unit, config.margin) == (12 + SIZES.reach, 4, 3)
    # Head, tail and two blocks of two at half the size, a block of two at a quarter.
    assert SIZES.reach == 6 * 2 + 2 * 4 + 4


def test_in_the_whole_network_a_far_pixel_changes_nothing() -> None:
    family = refined_family()
    reach, image = family.config.reach, picture(1, 9, 2 * family.config.reach + 20)
    changed = image.copy()
    changed[..., reach + 9] = 255 - changed[..., reach + 9]
    differ = np.abs(by_engine(changed, family, 25.0) - by_engine(image, family, 25.0)) > 1e-4
    columns = np.flatnonzero(differ.any(axis=(0, 1)))
    assert reach / 3 < np.abs(columns - reach - 9).max() <= reach


@pytest.mark.parametrize("sizes", ALL_SIZES[:2] + ALL_SIZES[4:], ids=lambda s: str(s.widths))
def test_parts_that_begin_between_units_are_as_in_the_whole(sizes: RefinementConfig) -> None:
    family, config = refined_family(sizes), refined_config(sizes)
    image = picture(1, 9, 2 * config.reach + 30)
    whole = by_engine(image, family, 25.0)
    start = config.unit * 3
    part = by_engine(np.ascontiguousarray(image[..., start:]), family, 25.0)
    inside = start + config.reach
    np.testing.assert_allclose(part[..., config.reach :], whole[..., inside:], rtol=0, atol=1e-3)
    shifted = by_engine(np.ascontiguousarray(image[..., start + 1 :]), family, 25.0)
    assert np.abs(shifted[..., config.reach :] - whole[..., inside + 1 :]).max() > 0.1


# --- Denoising with it ------------------------------------------------------------------------


def test_denoise_takes_the_refinement_of_its_sigma() -> None:
    family, image = refined_family(), picture(1, 33, 26)[0]
    for sigma in (3.0, 17.0, 60.0, 90.0):
        expected = by_engine(image[np.newaxis], family, sigma)[0]
        result = nlnet.denoise(image, sigma, model=family, data_range=255, clip=True)
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("box", [(0.0, 255.0), None])
def test_other_devices_give_the_same(
    channels: int, box: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "_find_device", lambda name: torch.device("cpu"))
    family, image = refined_family(channels=channels), picture(channels, 23, 30)
    result = devices.denoise_on_device(image, family.at(25.0), "cuda", box)
    expected = by_engine(image, family, 25.0, box=box)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("clip", [True, False])
def test_the_torch_denoiser_with_and_without_gradients(channels: int, clip: bool) -> None:
    denoiser = Denoiser(refined_family(channels=channels), clip=clip, threads=1)
    batch = torch.from_numpy(picture(2, channels, 15, 22)) / 255
    expected = denoiser(batch, [0.04, 0.2])
    result = denoiser(batch.clone().requires_grad_(), [0.04, 0.2])
    assert result.requires_grad
    torch.testing.assert_close(result.detach(), expected, rtol=0, atol=1e-5)


def test_the_gradient_of_the_torch_denoiser_is_that_of_the_image() -> None:
    """Against a small step along it, in which the groups stay as they are."""
    denoiser = Denoiser(refined_family(), clip=False, threads=1)
    batch = (torch.from_numpy(picture(1, 1, 15, 22)) / 255).requires_grad_()
    weights = torch.from_numpy(picture(1, 1, 15, 22, seed=8)) / 255
    (gradient,) = torch.autograd.grad((denoiser(batch, 0.1) * weights).sum(), batch)
    with torch.no_grad():
        step = 2e-3 * gradient / gradient.norm()
        up, down = ((denoiser(batch + s, 0.1) * weights).sum() for s in (step, -step))
    assert float(up - down) / 2 == pytest.approx(float((gradient * step).sum()), rel=0.02)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_torch_denoiser_takes_a_quality(channels: int) -> None:
    batch = torch.from_numpy(picture(1, channels, 12, 14)) / 255
    images = {}
    for quality in ("fast", "best"):
        denoiser = Denoiser(quality=quality, threads=1)
        named = Denoiser(FAMILIES[quality][channels], threads=1)
        images[quality] = denoiser(batch, 0.1)
        assert torch.equal(images[quality], named(batch, 0.1))
        differentiable = denoiser(batch.clone().requires_grad_(), 0.1)
        torch.testing.assert_close(differentiable.detach(), images[quality], rtol=0, atol=1e-5)
    same = FAMILIES["fast"][channels] == FAMILIES["best"][channels]
    assert torch.equal(images["fast"], images["best"]) == same


def test_a_quality_beside_a_model_or_unknown_is_one_sentence() -> None:
    with refused(InputError, "quality"):
        Denoiser(refined_family(), quality="best")
    with refused(InputError, "quality"):
        Denoiser(quality="better")


# --- Sizes and values that cannot be ----------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        (((), (), ()), "widths are [], but must be 1 to 4 multiples of 8 up to 256"),
        (((12,), (1,), ()), "widths are [12]"),
        (((0,), (1,), ()), "widths are [0]"),
        (((264,), (1,), ()), "widths are [264]"),
        (((8,) * 5, (1,) * 5, (1,) * 4), "widths are [8, 8, 8, 8, 8]"),
        (((8, 8), (1,), (1,)), "down are [1], but must be as many as widths, each from 0 to 8"),
        (((8, 8), (1, 9), (1,)), "down are [1, 9]"),
        (((8, 8), (1, 1), (1, 1)), "up are [1, 1], but must be one fewer than widths"),
        (((8, 8), (1, 1), (-1,)), "up are [-1]"),
    ],
)
def test_sizes_that_cannot_be(sizes: Any, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        RefinementConfig(*sizes)
    assert sentence in str(caught.value)
    assert str(caught.value).count(".") == 1


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"width": [8]}, "'refinement.width'; the known ones are refinement.widths, r"),
        ({"widths": 8}, "widths' is 8, but must be an array"),
        ({"widths": [8.0, 8]}, "widths' is 8.0, but must be of type int"),
        ({"widths": [True, 8]}, "widths' is True, but must be of type int"),
        ([8, 8], "'refinement' is [8, 8], but must be a table"),
    ],
)
def test_settings_that_cannot_be(values: Any, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        NetworkConfig.from_mapping({"refinement": values})
    assert sentence in str(caught.value)


def test_a_config_survives_plain_values() -> None:
    config = refined_config(ALL_SIZES[4], 3)
    values = config.to_mapping()
    assert values["refinement"] == {"widths": (24, 8, 16), "down": (2, 0, 1), "up": (0, 1)}
    assert NetworkConfig.from_mapping(values) == config
    assert "refinement" not in STAGES.to_mapping()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.pop("tail.biases"), "not those of its layers: 'tail.biases'"),
        (lambda t: t.update(more=np.zeros(1, np.float32)), "not those of its layers: 'more'"),
        (lambda t: t.update(step_size=np.zeros(3, np.float32)), "(3,), but must be (2,)"),
        (lambda t: t["head.slopes"].fill(np.nan), "head.slopes has values that are not finite"),
    ],
)
def test_values_that_cannot_be(change: Any, sentence: str) -> None:
    tensors = {name: values.copy() for name, values in random_refinement().tensors.items()}
    change(tensors)
    with refused(ModelError, sentence):
        Refinement(SIZES, 1, tensors)
