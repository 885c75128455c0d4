from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import filters_from_mix
from messages import refused
from scipy.io import savemat

from nlnet.errors import FileError, ModelError
from nlnet.model.loading import load_model
from nlnet.model.matlab import import_author_model
from nlnet.network.parameters import dct_basis

SHARED = Path(os.environ.get("NLNET_SHARED", Path(__file__).parents[2] / "shared"))
MEMBERS, GAUSSIANS = 8, 51

Struct = dict[str, Any]


# --- Files like the author's -----------------------------------------------------------------


def cell(*items: Any) -> np.ndarray:
    array = np.empty((1, len(items)), object)
    array[0, :] = items
    return array


def row_major_basis(patch_size: int) -> np.ndarray:
    """(p, p, 1, P-1), as ``filters{1}``, with the atoms in our order."""
    return dct_basis(patch_size).T.reshape(patch_size, patch_size, 1, -1)


def stage_layer(patch_size: int, color: bool, number: int) -> Struct:
    rng = np.random.default_rng(number)
    count = patch_size**2 - 1
    limit = 0.5 if color else 100.0
    mixtures = rng.standard_normal((count, GAUSSIANS, 3) if color else (count, GAUSSIANS))
    return {
        "type": "cnlcf" if color else "nlcf",
        "filters": cell(row_major_basis(patch_size).astype(np.float32)),
        "weights": cell(
            rng.standard_normal((count, count)).astype(np.float32),
            np.zeros((0, 0), np.uint8),
            rng.standard_normal((1, MEMBERS)).astype(np.float32),
            np.zeros((0, 0), np.uint8),
            mixtures.astype(np.float32),
            np.uint8(0) if number == 0 else np.float32(0.05),
        ),
        "rbf_means": np.linspace(-limit, limit, GAUSSIANS, dtype=np.float32)[None],
        "rbf_precision": 2 * limit / (GAUSSIANS - 1),
        "stride": np.ones((1, 2), np.uint8),
        "padSize": np.full((1, 4), patch_size // 2, np.uint8),
        "Nbrs": np.uint8(MEMBERS),
        "patchWeighting": np.uint8(0),
        "shrink_type": "identity",
        "lb": -limit,
        "ub": limit,
    }


def author_net(patch_size: int = 5, color: bool = False, stages: int = 5) -> Struct:
    layers = [stage_layer(patch_size, color, number) for number in range(stages)]
    if color:
        opponent = np.array([[1 / 3, 1 / 2, 1 / 4], [1 / 3, 0, -1 / 2], [1 / 3, -1 / 2, 1 / 4]])
        transform = {"scale": np.uint8(255), "Op": opponent}
        first, last = {"type": "rgb2LumChrom"} | transform, {"type": "LumChrom2rgb"} | transform
        layers = [first, *layers, last]
    layers.append({"type": "clip", "lb": np.uint8(0), "ub": np.uint8(255)})
    return {"layers": layers, "meta": {"trainOpts": {"noise_std": np.uint8(25)}}}


def write(folder: Path, net: Struct) -> Path:
    path = folder / "nlnet_std=25.mat"
    savemat(path, {"net": {**net, "layers": cell(*net["layers"])}})
    return path


# --- What is imported ------------------------------------------------------------------------


@pytest.mark.parametrize(("patch_size", "color"), [(5, False), (7, False), (5, True)])
def test_the_config_comes_from_the_file(tmp_path, patch_size, color):
    model = import_author_model(write(tmp_path, author_net(patch_size, color)))
    config = model.config
    assert config.channels == (3 if color else 1)
    assert (config.stages, config.patch_size) == (5, patch_size)
    assert (config.group_size, config.window) == (MEMBERS, 31)
    assert (config.rbf_count, config.rbf_std) == (GAUSSIANS, None)
    assert config.rbf_range == (127.5 if color else 100.0)
    assert config.gaussian_std == pytest.approx(5.1 if color else 4.0)
    assert not config.odd
    assert not config.project_every_stage
    assert model.sigma == 25
    assert model.name == "nlnet_std=25"
    assert "non-commercial" in model.provenance["licence"]


@pytest.mark.parametrize(("patch_size", "color"), [(5, False), (7, False), (5, True)])
def test_the_parameters_come_from_the_file(tmp_path, patch_size, color):
    net = author_net(patch_size, color, stages=3)
    model = import_author_model(write(tmp_path, net))
    layers = [layer for layer in net["layers"] if "weights" in layer]
    for stage, layer in zip(model.stages, layers, strict=True):
        mix, _, members, _, mixtures, step_size = layer["weights"][0]
        np.testing.assert_allclose(stage.filters, filters_from_mix(mix), atol=1e-6)
        np.testing.assert_array_equal(stage.group_weights, members[0])
        assert stage.step_size == pytest.approx(float(step_size))
        for channel, coefficients in enumerate(stage.coefficients):
            wanted = 255 * mixtures[..., channel] if color else mixtures
            np.testing.assert_allclose(coefficients, wanted, rtol=1e-6)


def test_atoms_keep_their_orientation_and_order(tmp_path):
    net = author_net(stages=1)
    # MATLAB's own order: the vertical frequency runs fastest.
    atoms = np.asarray(row_major_basis(5)).transpose(1, 0, 2, 3)
    net["layers"][0]["filters"] = cell(atoms)
    net["layers"][0]["weights"][0, 0] = np.eye(24)
    filters = import_author_model(write(tmp_path, net)).stages[0].filters
    vertical = filters[0].reshape(5, 5)
    np.testing.assert_allclose(vertical, np.repeat(vertical[:, :1], 5, axis=1), atol=1e-6)
    assert np.ptp(vertical[:, 0]) > 0.4


def test_an_imported_model_survives_its_file(tmp_path):
    model = import_author_model(write(tmp_path, author_net(color=True)))
    model.save(tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert loaded.config == model.config
    np.testing.assert_array_equal(loaded.stages[4].filters, model.stages[4].filters)
    np.testing.assert_array_equal(loaded.stages[4].coefficients, model.stages[4].coefficients)


@pytest.mark.parametrize("noise_std", [50.0, [[50.0]], [[50, 50, 50]]])
def test_sigma_may_be_repeated(tmp_path, noise_std):
    net = author_net()
    net["meta"]["trainOpts"]["noise_std"] = noise_std
    assert import_author_model(write(tmp_path, net)).sigma == 50


def test_sigma_of_a_color_model_may_be_on_its_own_scale(tmp_path):
    net = author_net(color=True)
    net["meta"]["trainOpts"]["noise_std"] = 15 / 255
    assert import_author_model(write(tmp_path, net)).sigma == pytest.approx(15)


def test_a_single_stage_and_nested_cells_are_read(tmp_path):
    net = author_net(stages=1)
    net["layers"] = [cell(layer) for layer in net["layers"]]
    assert import_author_model(write(tmp_path, net)).config.stages == 1


def test_a_clip_after_every_stage_and_a_loss_are_understood(tmp_path):
    net = author_net(stages=2)
    first, second, clip = net["layers"]
    net["layers"] = [first, clip, second, clip, {"type": "imloss"}]
    config = import_author_model(write(tmp_path, net)).config
    assert config.project_every_stage
    assert config.stages == 2


def test_a_width_of_its_own_is_kept(tmp_path):
    net = author_net(stages=1)
    net["layers"][0]["rbf_precision"] = 6.0
    assert import_author_model(write(tmp_path, net)).config.rbf_std == 6.0


# --- What is refused -------------------------------------------------------------------------


def setting(**changes: Any) -> Callable[[Struct], None]:
    return lambda net: net["layers"][1].update(changes)


def weight(index: int, value: Any) -> Callable[[Struct], None]:
    def change(net: Struct) -> None:
        net["layers"][1]["weights"][0, index] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda net: net.pop("meta"), "no field 'meta'"),
        (lambda net: net["meta"]["trainOpts"].clear(), "no field 'noise_std'"),
        (lambda net: net["meta"]["trainOpts"].update(noise_std=[15, 25]), "noise_std is [15"),
        (lambda net: net["layers"].reverse(), "no order this network knows"),
        (lambda net: net.update(layers=net["layers"][-1:]), "no nlcf or cnlcf layer"),
        (lambda net: net["layers"].insert(1, {"type": "relu"}), "nlcf, relu, nlcf"),
        (lambda net: net["layers"][-1].update(ub=1.0), "not clip to [0, 255]"),
        (lambda net: net["layers"][1].pop("rbf_means"), "no field 'rbf_means'"),
        (setting(rbf_means=np.geomspace(1, 100, 51)[None]), "not evenly spaced around 0"),
        (setting(rbf_means=np.linspace(-50, 50, 51), lb=-50.0, ub=50.0), "differ in their sizes"),
        (setting(ub=80.0), "lb and ub are not the ends"),
        (setting(rbf_precision="wide"), "rbf_precision is not numeric"),
        (setting(stride=np.array([[2, 2]])), "stride"),
        (setting(padSize=np.zeros((1, 4))), "padSize"),
        (setting(Nbrs=16), "Nbrs is 16"),
        (setting(patchWeighting=1), "patchWeighting"),
        (setting(shrink_type="max(0,x)"), "shrink_type"),
        (setting(filters=cell(np.zeros((5, 5, 1, 25)))), "basis has shape (5, 5, 25)"),
        (setting(weights=cell(1, 2, 3)), "has 3 weights, but must have 6"),
        (weight(0, np.ones((24, 23))), "weights{1} has shape (24, 23)"),
        (weight(0, np.zeros((24, 24))), "zero or not finite"),
        (weight(1, np.eye(24)), "adjoint with weights of its own"),
        (weight(4, np.ones((24, 50))), "weights{5} has shape (24, 50)"),
        (weight(4, np.full((24, 51), np.nan)), "coefficients of stage 2 has values that are NaN"),
        (weight(5, np.ones(2)), "weights{6} has shape (2,)"),
    ],
)
def test_what_the_network_cannot_express_is_refused(tmp_path, change, message):
    net = author_net(stages=3)
    change(net)
    with refused(ModelError, message) as caught:
        import_author_model(write(tmp_path, net))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"Op": np.eye(3)}, "opponent transform"), ({"scale": 1.0}, "scales by 1")],
)
def test_another_color_transform_is_refused(tmp_path, change, message):
    net = author_net(color=True, stages=1)
    net["layers"][0].update(change)
    with refused(ModelError, message):
        import_author_model(write(tmp_path, net))


@pytest.mark.parametrize("content", [b"", b"no MATLAB file", b"\x00" * 400, b"MATLAB 7.3" * 40])
def test_garbage_is_refused(tmp_path, content):
    path = tmp_path / "garbage.mat"
    path.write_bytes(content)
    with refused(ModelError, "not a MATLAB v5 file"):
        import_author_model(path)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(tmp_path, share):
    path = write(tmp_path, author_net())
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with refused(ModelError, "damaged"):
        import_author_model(path)


def test_another_matlab_file_is_refused(tmp_path):
    savemat(tmp_path / "other.mat", {"x": 1.0})
    with refused(ModelError, "no variable 'net'"):
        import_author_model(tmp_path / "other.mat")
    savemat(tmp_path / "number.mat", {"net": 1.0})
    with refused(ModelError, "no field 'layers'"):
        import_author_model(tmp_path / "number.mat")


def test_a_missing_file_is_a_file_error(tmp_path):
    with refused(FileError, "No such file"):
        import_author_model(tmp_path / "missing.mat")


def test_without_scipy_the_error_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with refused(ModelError, "pip install 'nlnet[import]'"):
        import_author_model(write(tmp_path, author_net()))


# --- The published files ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "channels", "rbf_range"),
    [("nlnet_5x5_std25_joint", 1, 100.0), ("cnlnet_5x5_std25_joint", 3, 127.5)],
)
def test_published_files_are_read(name, channels, rbf_range):
    path = SHARED / "reference" / f"{name}.mat"
    if not path.exists():
        pytest.skip("the author's models are not here")
    model = import_author_model(path)
    assert model.sigma == 25
    assert (model.config.channels, model.config.stages) == (channels, 5)
    assert (model.config.rbf_count, model.config.rbf_range) == (51, rbf_range)
    assert model.stages[0].step_size == 0
