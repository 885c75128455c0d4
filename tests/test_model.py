from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from messages import refused

from nlnet import atomic as files
from nlnet.errors import FileError, ModelError
from nlnet.model import file as model_file
from nlnet.model.loading import load_model, shipped_models
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import initial_parameters

CONFIG = NetworkConfig(stages=2, rbf_count=9)
FREE = dataclasses.replace(CONFIG, odd=False)

Tensors = dict[str, np.ndarray]
Fields = dict[str, Any]


def make_model(config: NetworkConfig = CONFIG, **changes: Any) -> Model:
    fields: dict[str, Any] = {
        "sigma": 25.0,
        "name": "test",
        "provenance": {"data": "none", "seed": 0},
        "figures": {"bsd68": 28.98},
    }
    return Model(config, initial_parameters(config), **{**fields, **changes})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    make_model().save(path)
    return path


def rewrite(
    path: Path,
    tensors: Callable[[Tensors], object] = lambda _: None,
    fields: Callable[[Fields], object] = lambda _: None,
    metadata: dict[str, str] | None = None,
) -> None:
    """Change a model file, and its checksum with it."""
    with safetensors.safe_open(path, framework="numpy") as file:
        content = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(file.metadata()["nlnet"])
    tensors(content)
    fields(header)
    with contextlib.suppress(ValueError):  # NaN, which is refused before
        header["checksum"] = model_file.checksum(header, content)
    text = {"nlnet": json.dumps(header)} if metadata is None else metadata
    path.write_bytes(safetensors.numpy.save(content, metadata=text))


# --- Round trip ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        FREE,
        NetworkConfig(channels=3, stages=3, patch_size=7, rbf_count=10, rbf_std=12.5),
    ],
)
def test_a_model_survives_its_file(config, tmp_path):
    original = make_model(config)
    original.save(tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    for name in ("config", "sigma", "name", "provenance", "figures"):
        assert getattr(loaded, name) == getattr(original, name)
    for before, after in zip(original.stages, loaded.stages, strict=True):
        for name in ("filters", "group_weights", "coefficients"):
            assert getattr(after, name).dtype == np.float32
            np.testing.assert_array_equal(
                getattr(after, name), getattr(before, name).astype(np.float32)
            )
        assert after.step_size == np.float32(before.step_size)


def test_saving_twice_gives_the_same_bytes(saved):
    again = saved.with_name("again.safetensors")
    load_model(saved).save(again)
    assert again.read_bytes() == saved.read_bytes()


def test_odd_mixtures_are_stored_as_their_half(saved):
    with safetensors.safe_open(saved, framework="numpy") as file:
        assert file.get_slice("coefficients").get_shape() == [2, 1, 24, 4]


def test_parameter_count_is_that_of_the_file(saved):
    with safetensors.safe_open(saved, framework="numpy") as file:
        sizes = {name: file.get_tensor(name).size for name in file.keys()}  # noqa: SIM118
    # A filter is P values in the file, but lives in the space of P-1 atoms.
    assert load_model(saved).parameter_count == sum(sizes.values()) - 2 * 24


def test_str_is_one_line_for_people():
    text = str(make_model(NetworkConfig(channels=3), name="color-5x5-s25"))
    assert text == "color-5x5-s25: color, sigma 25, 5 stages, 5x5 patches, 14,085 parameters"


# --- Bad models and files --------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.0, -1.0, 1e-30, 256.0, float("nan")])
def test_sigma_must_be_on_the_8_bit_scale(sigma):
    with refused(ModelError, "sigma"):
        make_model(sigma=sigma)


def test_a_model_needs_a_name():
    with refused(ModelError, "name"):
        make_model(name="")


@pytest.mark.parametrize(
    "name", ["\x1b[2Jcolor-5x5", "two\nlines", " padded", "\u202etxet", "a\0b"]
)
def test_a_name_is_what_a_terminal_may_show(name):
    with refused(ModelError, "printable") as caught:
        make_model(name=name)
    assert str(caught.value).isprintable()


def test_a_model_checks_its_parameters():
    with refused(ModelError, "2 stages", "parameters for 1"):
        Model(CONFIG, initial_parameters(CONFIG)[:1], 25.0, "short")


@pytest.mark.parametrize("figures", [{"psnr": float("nan")}, {"psnr": np.float32(3)}])
def test_saving_refuses_what_json_cannot_hold(figures, tmp_path):
    with refused(ModelError, "plain finite values"):
        make_model(figures=figures).save(tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def spoil(name: str, value: float) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors[name].flat[0] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.update(extra=np.zeros(1, np.float32)), "unknown tensor 'extra'"),
        (lambda t: t.pop("filters"), "lacks the tensor 'filters'"),
        (lambda t: t.update(filters=t["filters"][:, :-1].copy()), "must be (2, 24, 25)"),
        (lambda t: t.update(filters=t["filters"].astype(np.float64)), "F64, but must be F32"),
        (lambda t: t.update(step_sizes=np.zeros(2, np.int32)), "I32, but must be F32"),
        (spoil("coefficients", np.nan), "coefficients of stage 1 has values that are NaN"),
        (spoil("group_weights", np.inf), "NaN or infinite"),
        (spoil("step_sizes", np.nan), "step_size of stage 1 is nan"),
        (lambda t: t.update(filters=t["filters"] + np.float32(1e-3)), "zero mean"),
        (lambda t: t.update(filters=t["filters"] * np.float32(1.01)), "unit norm"),
    ],
)
def test_loading_is_strict_about_tensors(saved, change, message):
    rewrite(saved, tensors=change)
    with refused(ModelError, message):
        load_model(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.update(extra=1), "unknown metadata field 'extra'"),
        (lambda f: f.pop("sigma"), "lacks the metadata field 'sigma'"),
        (lambda f: f.pop("version"), "format version is None"),
        (lambda f: f.update(version=4, extra=1), "version is 4, but this nlnet reads 1, 2 and 3"),
        (lambda f: f.update(version=3), "version is 3 and it has no refinement"),
        (lambda f: f.update(functions_of_sigma={"filters": [1.0, 2.0]}), "lacks the function of"),
        (lambda f: f.pop("functions_of_sigma"), "lacks the metadata field 'functions_of_sigma'"),
        (lambda f: f.update(version=True), "format version is True"),
        (lambda f: f.update(sigma="25"), "sigma has the unusable value '25'"),
        (lambda f: f.update(sigma=-25.0), "sigma is -25.0"),
        (lambda f: f.update(sigma=float("nan")), "NaN is not a JSON value"),
        (lambda f: f.update(name=["a"]), "name has the unusable value"),
        (lambda f: f.update(figures=None), "figures has the unusable value None"),
        (lambda f: f["config"].update(stride=1), "Unknown setting 'stride'"),
        (lambda f: f["config"].update(window=30), "window is 30"),
        (lambda f: f["config"].update(window="31"), "'window' is '31', but must be of type int"),
        (lambda f: f["config"].update(rbf_range=float("inf")), "Infinity is not a JSON value"),
        (lambda f: f["config"].update(channels=3), "'coefficients' has shape"),
    ],
)
def test_loading_is_strict_about_metadata(saved, change, message):
    rewrite(saved, fields=change)
    with refused(ModelError, message):
        load_model(saved)


def test_a_setting_that_is_newer_than_the_file_has_its_default(saved):
    expected = load_model(saved).config
    rewrite(saved, fields=lambda f: f["config"].pop("rbf_std"))
    assert load_model(saved).config == expected
    rewrite(saved, fields=lambda f: f["config"].pop("window"))
    assert load_model(saved).config == dataclasses.replace(expected, window=31)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "lacks the metadata 'nlnet'"),
        ({"format": "pt"}, "lacks the metadata 'nlnet'"),
        ({"nlnet": "{}", "more": ""}, "unknown metadata 'more'"),
        ({"nlnet": "{"}, "not JSON"),
        ({"nlnet": "[]"}, "not a JSON object"),
    ],
)
def test_loading_needs_nlnets_metadata(saved, metadata, message):
    rewrite(saved, metadata=metadata)
    with refused(ModelError, message):
        load_model(saved)


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_truncated_file_is_an_error(saved, kept):
    saved.write_bytes(saved.read_bytes()[:kept])
    with refused(ModelError, "empty" if kept == 0 else "damaged"):
        load_model(saved)


@pytest.mark.parametrize("content", [b"hello, I am no model", b"\xff" * 500, b"\x89PNG\r\n\x1a\n"])
def test_garbage_is_an_error_of_one_line(tmp_path, content):
    path = tmp_path / "garbage.safetensors"
    path.write_bytes(content)
    with refused(ModelError, "damaged") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_cannot_be_opened_is_a_file_error(tmp_path):
    with refused(FileError, "No such file"):
        load_model(tmp_path / "missing.safetensors")
    with refused(FileError, "Cannot open the model"):
        load_model(tmp_path)
    with refused(FileError, "Cannot open the model"):
        load_model(str(tmp_path))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.7, 0.98])
@pytest.mark.parametrize("bit", [0, 3])
def test_a_bit_that_flipped_in_the_weights_is_an_error(saved, share, bit):
    content = bytearray(saved.read_bytes())
    start = 8 + int.from_bytes(content[:8], "little")
    content[start + int(share * (len(content) - start))] ^= 1 << bit
    saved.write_bytes(content)
    with refused(ModelError, "checksum"):
        load_model(saved)


@pytest.mark.parametrize(("old", "new"), [(b"25.0", b"26.0"), (b"28.98", b"29.98")])
def test_a_header_changed_by_hand_is_an_error(saved, old, new):
    content = saved.read_bytes()
    assert content.count(old) == 1
    saved.write_bytes(content.replace(old, new))
    with refused(ModelError, "checksum"):
        load_model(saved)


def as_version_1(path: Path) -> None:
    with safetensors.safe_open(path, framework="numpy") as file:
        content = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(file.metadata()["nlnet"])
    del header["checksum"], header["functions_of_sigma"]
    header["version"] = 1
    text = {"nlnet": json.dumps(header, sort_keys=True)}
    path.write_bytes(safetensors.numpy.save(content, metadata=text))


def test_version_1_still_loads_and_is_saved_as_version_2(saved):
    wanted = saved.read_bytes()
    as_version_1(saved)
    assert saved.read_bytes() != wanted
    load_model(saved).save(saved)
    assert saved.read_bytes() == wanted


def test_version_1_with_a_checksum_is_an_error(saved):
    rewrite(saved, fields=lambda f: (f.update(version=1), f.pop("functions_of_sigma")))
    with refused(ModelError, "unknown metadata field 'checksum'"):
        load_model(saved)


@pytest.mark.parametrize("name", shipped_models())
def test_shipped_models_are_as_saving_writes_them(name, tmp_path):
    path = tmp_path / "again.safetensors"
    load_model(name).save(path)
    weights = Path(model_file.__file__).parent / "weights"
    assert path.read_bytes() == (weights / f"{name}.safetensors").read_bytes()


# --- Writing ---------------------------------------------------------------------------------


def test_saving_into_no_folder_is_a_file_error(tmp_path):
    with refused(FileError, "Cannot write"):
        make_model().save(tmp_path / "missing" / "m.safetensors")


def test_saving_over_a_folder_is_a_file_error_and_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with refused(FileError, "Cannot write"):
        make_model().save(tmp_path / "folder")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_failed_save_keeps_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", no_space)
    with refused(FileError, "No space left on device"):
        make_model(sigma=50.0).save(saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_model_shows_itself_in_one_line(gray_model: Model) -> None:
    assert repr(gray_model) == f"<Model {gray_model}>"
    assert repr(load_model("gray")) == f"<Family {load_model('gray')}>"
