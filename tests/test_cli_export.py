"""``nlnet export``: a model as a parameter block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cases import denoise_planes, noise, sweep

from nlnet import load_model
from nlnet.cli import main
from nlnet.engine.library import instruction_set
from nlnet.engine.network import EngineNetwork, Sizes, family_at
from nlnet.errors import InputError, ModelError
from nlnet.model.family import Family


@pytest.mark.parametrize("name", ["gray-7x7-s25", "color-5x5-s50"])
def test_the_block_denoises_as_the_model_does(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.bin"
    assert main(["export", name, "-o", str(path)]) == 0
    block, model = path.read_bytes(), load_model(name)
    assert capsys.readouterr().out == f"{model}: {len(block):,} bytes\n"
    network = EngineNetwork(block, np.dtype(np.float32), instruction_set())
    config = model.config
    assert network.sizes == Sizes(config.channels, 5, config.patch_size, 8, 31, config.rbf_count)
    assert np.frombuffer(block, "<f8", 1, 64)[0] == model.sigma
    image = noise(config.channels, 40, 50).astype(np.float32)
    by_model = denoise_planes(image, config, model.stages, threads=1)
    by_block = sweep(network, image, threads=1)
    np.testing.assert_array_equal(by_block, by_model)


def test_the_block_of_a_family_has_the_network_of_every_sigma(tmp_path: Path) -> None:
    path = tmp_path / "family.bin"
    assert main(["export", "gray-plus", "--every-sigma", "-o", str(path)]) == 0
    for sigma in (3.0, 25.0, 200.0):
        one = tmp_path / f"{sigma}.bin"
        assert main(["export", "gray-plus", f"--sigma={sigma}", "-o", str(one)]) == 0
        assert bytes(family_at(path.read_bytes(), sigma)) == one.read_bytes()


def test_a_model_for_one_sigma_is_no_family(tmp_path: Path, fails: Callable[..., str]) -> None:
    told = fails("export", "gray-5x5-s25", "--every-sigma", "-o", tmp_path / "one.bin")
    assert "one sigma" in told


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan"), float("inf")])
def test_a_family_has_no_network_for_a_sigma_that_cannot_be(sigma: float) -> None:
    family = load_model("gray")
    assert isinstance(family, Family)
    with pytest.raises(InputError):
        family_at(family.block(), sigma)


def test_a_damaged_family_is_refused() -> None:
    family = load_model("gray")
    assert isinstance(family, Family)
    block = family.block()
    for broken in (block[:-8], block + bytes(8), block[:100], bytes(len(block))):
        with pytest.raises(ModelError):
            family_at(broken, 25.0)
    with pytest.raises(ModelError):
        EngineNetwork(block, np.dtype(np.float32), instruction_set())


def test_an_output_that_exists_is_kept(tmp_path: Path, fails: Callable[..., str]) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"precious")
    assert "--overwrite" in fails("export", "gray-5x5-s25", "-o", path)
    assert path.read_bytes() == b"precious"
    assert main(["export", "gray-5x5-s25", "-o", str(path), "--overwrite"]) == 0
    assert path.read_bytes().startswith(b"nlnetpar")


def test_what_cannot_be_exported(tmp_path: Path, fails: Callable[..., str]) -> None:
    assert "'gray-5x5-s26'" in fails("export", "gray-5x5-s26", "-o", tmp_path / "model.bin")
    assert not list(tmp_path.iterdir())
    assert "does not exist" in fails("export", "gray-5x5-s25", "-o", tmp_path / "no" / "model.bin")
    model = tmp_path / "own.safetensors"
    load_model("gray-5x5-s25").save(model)
    assert "the input itself" in fails("export", model, "-o", model, "--overwrite")


@pytest.mark.parametrize("name", ["m.onnx", "m.ONNX", "m.pt", "m.safetensors"])
def test_formats_of_others_are_refused(
    name: str, tmp_path: Path, fails: Callable[..., str]
) -> None:
    sentence = fails("export", "gray-5x5-s25", "-o", tmp_path / name)
    assert name in sentence
    assert ".bin" in sentence
    assert not list(tmp_path.iterdir())
