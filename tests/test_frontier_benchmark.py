"""The benchmarks behind the table of PSNR against time, and of maps of sigma."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from pictures import random_image

import nlnet
from benchmarks import quality, sigma_maps
from benchmarks.convolutional import (
    DNCNN_DEPTHS,
    DNCNN_FEATURES,
    FFDNET_SIZES,
    make_dncnn,
    make_ffdnet,
    make_layers,
    to_even_tensor,
    to_tensor,
)
from benchmarks.families import FAMILIES, REFERENCE, make_family
from benchmarks.methods import Method
from benchmarks.registry import BUILDERS, keys_of
from nlnet.defaults import FAMILIES as CHOSEN
from nlnet.images import ImageFile, write_image
from scripts.frontier import Point
from scripts.frontier_plot import plot_frontier

pytestmark = pytest.mark.numerical


@pytest.mark.parametrize(("channels", "ffdnet", "dncnn"), [(1, 485, 555), (3, 854, 668)])
def test_architectures_have_the_published_size(channels: int, ffdnet: int, dncnn: int) -> None:
    def thousands(network: torch.nn.Module) -> int:
        return round(sum(values.numel() for values in network.parameters()) / 1000)

    depth, features = FFDNET_SIZES[channels]
    assert thousands(make_layers(5 * channels, features, 4 * channels, depth)) == ffdnet
    layers = make_layers(channels, DNCNN_FEATURES, channels, DNCNN_DEPTHS[channels])
    assert thousands(layers) == dncnn


@pytest.mark.parametrize("shape", [(13, 17), (12, 15, 3)])
def test_architectures_take_images_of_any_size(shape: tuple[int, ...]) -> None:
    image = np.zeros(shape, np.float32)
    channels = 1 if len(shape) == 2 else 3
    assert make_dncnn(channels)(to_tensor(image)).shape == (1, channels, *shape[:2])
    even = [side + side % 2 for side in shape[:2]]
    assert make_ffdnet(channels, 25.0)(to_even_tensor(image)).shape == (1, channels, *even)


def test_all_that_may_be_chosen_is_measured() -> None:
    for chosen in CHOSEN.values():
        assert set(chosen.values()) <= set(FAMILIES)
    names = {kind: [key for key in keys_of(kind) if key in FAMILIES] for kind in REFERENCE}
    for kind, families in names.items():
        assert families
        for family in families:
            method = make_family(family, 25.0)
            assert (method.name, method.kind) == (f"nlnet {family}", kind)
    assert {"ffdnet-gray", "ffdnet-color"} <= set(BUILDERS)


def test_quality_keeps_what_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bsd68").mkdir()
    for name in ("a.png", "b.png"):
        write_image(tmp_path / "bsd68" / name, ImageFile(random_image()))
    calls: list[float] = []

    def build(sigma: float) -> Method:
        def call(noisy: np.ndarray, strength: float, threads: int) -> np.ndarray:
            calls.append(strength)
            return noisy + strength

        return Method("shift", "gray", call, strengths=[9.0, 1.0, 5.0])

    monkeypatch.setattr(quality, "CHANNELS", {"gray": 1})
    monkeypatch.setattr(quality, "PEERS", {"shift": None})
    monkeypatch.setattr(quality, "BUILDERS", {"shift-gray": build})
    monkeypatch.setattr(quality, "require_data", lambda: tmp_path)
    output = tmp_path / "quality.json"
    assert quality.main(["--output", str(output)]) == 0
    found = json.loads(output.read_text())["results"]["gray"]["shift"]
    assert found["strength"] == 1.0  # the best for the first image
    assert set(found["images"]) == {"a.png", "b.png"}
    assert found["psnr"] == pytest.approx(np.mean(list(found["images"].values())), abs=1e-3)
    count = len(calls)
    assert quality.main(["--output", str(output)]) == 0
    assert len(calls) == count
    assert quality.main(["--output", str(output), "--again"]) == 0
    assert len(calls) == 2 * count


def test_each_pixel_at_its_own_sigma() -> None:
    image = random_image((20, 24)).astype(np.float32)
    halves = np.where(np.arange(24) < 12, 10.0, 30.0) * np.ones((20, 1))
    result = sigma_maps.each_at_its_own(image, halves)
    for sigma in (10.0, 30.0):
        alone = nlnet.denoise(image, sigma, data_range=255, clip=True)
        np.testing.assert_array_equal(result[halves == sigma], alone[halves == sigma])


def test_the_page_has_the_table_of_maps() -> None:
    if not sigma_maps.OUTPUT.is_file():
        pytest.skip("no figures here")  # the source distribution leaves them out
    page = sigma_maps.PAGE.read_text()
    assert sigma_maps.fill_in(page) == page


def test_a_map_is_measured(tmp_path: Path) -> None:
    write_image(tmp_path / "a.png", ImageFile(random_image((24, 40))))
    row = sigma_maps.measure("gray", "10 in one half, 40 in the other", [tmp_path / "a.png"])
    assert row["images"] == ["a"]
    assert row["psnr"]["map"] == pytest.approx(row["psnr"]["own"], abs=0.01)
    assert "| gray |" in sigma_maps.format_rows([row])


def test_the_plot_leaves_out_what_has_no_psnr(tmp_path: Path) -> None:
    known = Point("**nlnet**", "gray", 0.1, 1.0, 29.0, published=False, ours=True)
    published = Point("FFDNet", "color", 0.2, 2.0, 31.2, published=True, ours=False)
    unknown = Point("other", "gray", 0.3, 3.0, None, published=False, ours=False)
    plot_frontier([known, published, unknown], "a CPU", tmp_path / "speed.png")
    assert (tmp_path / "speed.png").stat().st_size > 1000
