"""Models with a refinement: what they say of themselves, their files, and their blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from cases import denoise_planes, noise, sweep
from messages import refused
from refinements import (
    SIZES,
    STAGES,
    random_refinement,
    refined_family,
)
from test_family import SIGMAS, make_family
from test_model import rewrite

import nlnet
from nlnet.cli import main
from nlnet.engine.library import instruction_set
from nlnet.engine.network import EngineNetwork
from nlnet.errors import ModelError
from nlnet.model.family import REFERENCE_SIGMA, Family
from nlnet.model.loading import load_model
from nlnet.network.block import pack
from nlnet.network.refinement import CENTER, CHANGE_SCALE, RefinementConfig, image_scale

pytestmark = pytest.mark.numerical

TENSOR = "refinement.down.1.0.first.weights"


@pytest.fixture(scope="module")
def family() -> Family:
    return refined_family()


@pytest.fixture
def saved(family: Family, tmp_path: Path) -> Path:
    path = tmp_path / "refined.safetensors"
    family.save(path)
    return path


# --- A family ---------------------------------------------------------------------------------


def test_it_says_that_it_has_a_refinement_and_counts_its_values(family: Family) -> None:
    # Weights of head, first level twice, halving, second level, doubling and tail; biases of each,
    # and slopes of the head and of the first layers; two for the step size.
    weights = 8 * 72 + 4 * 8 * 72 + 8 * 16 * 4 + 2 * 16 * 144 + 16 * 32 + 8 * 4 * 9
    biases, slopes = 8 + 4 * 8 + 16 + 2 * 16 + 32 + 4, 8 + 2 * 8 + 16
    count = len(SIGMAS) * STAGES.parameter_count + weights + biases + slopes + 2
    assert family.parameter_count == count
    assert str(family) == (
        f"refined: gray, sigma 5-80, 2 stages, 3x3 patches, a refinement, {count:,} parameters"
    )
    assert "refinement" not in str(make_family())


def test_values_at_a_sigma_are_linear_in_log_sigma(family: Family) -> None:
    functions = family.refinement
    assert functions is not None
    for sigma, place in ((REFERENCE_SIGMA, 0.0), (10.0, np.log(10 / 25)), (60.0, np.log(60 / 25))):
        there = functions.at(sigma)
        plain = there.layers(np.dtype(np.float32))
        layers = dict(zip((s.name for s in SIZES.layers(1)), plain, strict=True))
        assert there.step_size == pytest.approx(0.3 + 0.1 * place, abs=1e-6)
        assert there.center == pytest.approx(CENTER * REFERENCE_SIGMA / sigma)
        tensors = functions.tensors
        for name in ("head", "up.0.0.first"):
            biases = tensors[f"{name}.biases"] + place * tensors[f"{name}.slopes"]
            np.testing.assert_allclose(layers[name].biases, biases, atol=1e-6)
        np.testing.assert_allclose(
            layers["head"].weights, image_scale(sigma) * tensors["head.weights"], rtol=1e-6
        )
        np.testing.assert_allclose(
            layers["tail"].biases, CHANGE_SCALE * tensors["tail.biases"], rtol=1e-6
        )
        inner = "halve.1"
        np.testing.assert_array_equal(layers[inner].weights, tensors[f"{inner}.weights"])


def test_beyond_its_sigmas_it_is_that_of_the_nearest(family: Family) -> None:
    for sigma, nearest in ((0.5, 5.0), (200.0, 80.0)):
        one, other = family.at(sigma).refinement, family.at(nearest).refinement
        assert one is not None
        assert other is not None
        assert (one.step_size, one.center) == (other.step_size, other.center)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"refinement": None}, "Its refinement is not the one that its config says."),
        ({"config": STAGES}, "Its refinement is not the one that its config says."),
        (
            {"refinement": random_refinement(RefinementConfig((8, 8), (1, 1), (1,)))},
            "Its refinement is not the one that its config says.",
        ),
        (
            {"refinement": random_refinement(channels=3)},
            "Its refinement is for 3 channels, but its stages for 1.",
        ),
    ],
)
def test_a_family_whose_parts_do_not_fit(family: Family, change: Any, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        dataclasses.replace(family, **change)
    assert str(caught.value) == sentence


def test_the_model_of_one_sigma_cannot_be_saved(family: Family, tmp_path: Path) -> None:
    model = family.at(25.0)
    assert model.refinement is not None
    with refused(ModelError, "save the family") as caught:
        model.save(tmp_path / "one.safetensors")
    assert str(caught.value).count(".") == 1
    assert not list(tmp_path.iterdir())


# --- The file ---------------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_a_family_survives_its_file(channels: int, tmp_path: Path) -> None:
    family = refined_family(channels=channels)
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    family.save(first)
    loaded = load_model(first)
    assert isinstance(loaded, Family)
    for name in ("config", "sigmas", "name", "provenance", "figures", "parameter_count"):
        assert getattr(loaded, name) == getattr(family, name)
    assert loaded.refinement is not None
    assert family.refinement is not None
    for name, values in family.refinement.tensors.items():
        assert loaded.refinement.tensors[name].dtype == np.float32
        np.testing.assert_array_equal(
            loaded.refinement.tensors[name], values.astype(np.float16).astype(np.float32)
        )
    for before, after in zip(family.sets, loaded.sets, strict=True):
        for one, other in zip(before, after, strict=True):
            short = one.filters[:, :-1].astype(np.float16).astype(np.float32)
            np.testing.assert_array_equal(other.filters[:, :-1], short)
            np.testing.assert_allclose(other.filters.sum(axis=1), 0, rtol=0, atol=1e-6)
            assert other.filters.dtype == np.float32
            np.testing.assert_array_equal(one.group_weights, other.group_weights)
            np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-3, atol=1e-6)
            assert other.coefficients.dtype == np.float32
    loaded.save(second)
    assert second.read_bytes() == first.read_bytes()
    image = noise(channels, 20, 27).astype(np.float32)
    images = [
        nlnet.denoise(image, 25, model=each, data_range=255, channel_axis=0, clip=True)
        if channels == 3
        else nlnet.denoise(image[0], 25, model=each, data_range=255, clip=True)
        for each in (family, loaded, first)
    ]
    np.testing.assert_allclose(images[0], images[1], rtol=0, atol=0.5)  # 11 bits
    np.testing.assert_array_equal(images[1], images[2])


def test_the_version_is_3_and_its_large_tensors_are_short(saved: Path) -> None:
    kinds: dict[str, str] = {}
    with safetensors.safe_open(saved, framework="numpy") as file:
        assert '"version": 3' in file.metadata()["nlnet"]
        for name in file.keys():  # noqa: SIM118
            kinds[name] = file.get_slice(name).get_dtype()
    longer = {name for name, kind in kinds.items() if kind == "F32"}
    assert longer == {"group_weights", "step_sizes"}
    assert set(kinds.values()) == {"F16", "F32"}


def test_without_a_refinement_nothing_of_the_file_changes(tmp_path: Path) -> None:
    """Shipped files are checked by `test_model`; this one is of the kind that it cannot know."""
    path = tmp_path / "every.safetensors"
    make_family().save(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        assert '"version": 2' in file.metadata()["nlnet"]
        assert "refinement" not in file.metadata()["nlnet"]
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F32"}  # noqa: SIM118


@pytest.mark.parametrize("name", ["refinement", "coefficients"])
def test_values_that_a_file_cannot_hold(family: Family, tmp_path: Path, name: str) -> None:
    if name == "refinement":
        assert family.refinement is not None
        tensors = {**family.refinement.tensors, "tail.biases": np.full(4, 7e4, np.float32)}
        large = dataclasses.replace(family.refinement, tensors=tensors)
        spoiled = dataclasses.replace(family, refinement=large)
    else:
        first, *others = family.sets
        wild = [dataclasses.replace(s, coefficients=1e9 * s.coefficients) for s in first]
        spoiled = dataclasses.replace(family, sets=(tuple(wild), *others))
    with refused(ModelError, name, "values beyond 65504"):
        spoiled.save(tmp_path / "large.safetensors")
    assert not list(tmp_path.iterdir())


def spoil(name: str, value: float) -> Callable[[dict[str, np.ndarray]], None]:
    def change(tensors: dict[str, np.ndarray]) -> None:
        tensors[name].flat[0] = value

    return change


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t: t.pop(TENSOR), f"lacks the tensor '{TENSOR}'"),
        (lambda t: t.update({"refinement.x": t[TENSOR]}), "unknown tensor 'refinement.x'"),
        (lambda t: t.update({TENSOR: t[TENSOR][:, :8].copy()}), "shape (16, 8, 3, 3), but must"),
        (lambda t: t.update({TENSOR: t[TENSOR].astype(np.float32)}), "F32, but must be F16"),
        (lambda t: t.update(coefficients=t["coefficients"].astype("f4")), "F32, but must be F16"),
        (lambda t: t.update(filters=t["filters"].astype(np.float32)), "F32, but must be F16"),
        (lambda t: t.update(step_sizes=np.float16(t["step_sizes"])), "F16, but must be F32"),
        (spoil(TENSOR, np.nan), "down.1.0.first.weights has values that are not finite"),
        (spoil("refinement.step_size", np.inf), "step_size has values that are not finite"),
        (spoil("coefficients", np.inf), "NaN or infinite"),
    ],
)
def test_loading_is_strict_about_tensors(saved: Path, change: Any, sentence: str) -> None:
    rewrite(saved, tensors=change)
    with refused(ModelError, sentence):
        load_model(saved)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda f: f.update(version=2), "version is 2 and it has a refinement"),
        (lambda f: f.update(version=4), "version is 4, but this nlnet reads 1, 2 and 3"),
        (lambda f: f["config"].pop("refinement"), "version is 3 and it has no refinement"),
        (lambda f: f["config"].update(refinement=None), "version is 3 and it has no refinement"),
        (lambda f: f["config"].update(refinement=[8]), "'refinement' is [8], but must be a table"),
        (lambda f: f["config"]["refinement"].update(up=[1, 1]), "up are [1, 1]"),
        (
            lambda f: f["config"]["refinement"].update(deep=[1]),
            "setting 'refinement.deep'; the known ones",
        ),
        (lambda f: f["config"]["refinement"].update(down=[2, 1]), "lacks the tensor 'refinement.d"),
        (lambda f: f["config"]["refinement"].update(widths=[8, 8]), "has shape"),
        (lambda f: f.update(functions_of_sigma={}), "a refinement, but is not for every sigma"),
    ],
)
def test_loading_is_strict_about_metadata(saved: Path, change: Any, sentence: str) -> None:
    rewrite(saved, fields=change)
    with refused(ModelError, sentence) as caught:
        load_model(saved)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.7, 0.98])
def test_a_bit_that_flipped_is_an_error(saved: Path, share: float) -> None:
    content = bytearray(saved.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    content[start + int(share * (len(content) - start))] ^= 1
    saved.write_bytes(content)
    with refused(ModelError, "checksum"):
        load_model(saved)


# --- The parameter block ----------------------------------------------------------------------


@pytest.mark.parametrize("channels", [1, 3])
def test_the_exported_block_denoises_as_the_family_does(
    channels: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "refined.safetensors", tmp_path / "model.bin"
    refined_family(channels=channels).save(source)
    assert main(["export", str(source), "--sigma", "12", "-o", str(target)]) == 0
    loaded, block = load_model(source), target.read_bytes()
    assert capsys.readouterr().out == f"{loaded}: {len(block):,} bytes\n"
    network = EngineNetwork(block, np.dtype(np.float32), instruction_set())
    image = noise(channels, 31, 22).astype(np.float32)
    result = sweep(network, image, threads=1)
    model = loaded.at(12.0)
    options = {"refinement": model.refinement, "threads": 1}
    expected = denoise_planes(image, model.config, model.stages, **options)
    np.testing.assert_array_equal(result, expected)


def test_blocks_that_the_engine_refuses(family: Family) -> None:
    model = family.at(25.0)
    assert model.refinement is not None
    block = pack(model.config, model.stages, refinement=model.refinement)
    start = len(pack(model.config, model.stages))
    assert len(block) == start + len(model.refinement.pack(np.dtype(np.float32)))

    def refused(content: bytes) -> None:
        with pytest.raises(ModelError):
            EngineNetwork(content, np.dtype(np.float32), instruction_set())

    def with_number(at: int, value: int) -> bytes:
        return block[: start + at] + value.to_bytes(4, "little") + block[start + at + 4 :]

    EngineNetwork(with_number(0, 2), np.dtype(np.float32), instruction_set())  # as it is
    for content in (block[:-8], block[:start], block[: start + 40], block + bytes(8)):
        refused(content)
    refused(with_number(0, 0))  # levels
    refused(with_number(0, 5))
    refused(with_number(4, 1))  # reserved
    refused(with_number(24, 12))  # a width
    refused(with_number(32, 8))  # that of a level that does not exist
    refused(with_number(40, 9))  # blocks on the way down
    refused(with_number(60, 1))  # and up, of the lowest level
    refused(with_number(80, 0x7FC00000))  # a weight that is no number
