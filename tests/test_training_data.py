from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from pictures import random_image
from training_cases import FOLDERS, recipe, write_data

from nlnet.errors import FileError, InputError, NLNetError
from nlnet.evaluation.datasets import bsd68_ids
from nlnet.images import ImageFile, write_image
from nlnet.network import color
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import find_groups
from nlnet.noise import add_noise
from nlnet.training.data import (
    CropSource,
    load_pictures,
    make_batch,
    validation_batch,
)
from nlnet.training.settings import settings_from_mapping

pytestmark = pytest.mark.numerical

SETTINGS = settings_from_mapping(recipe())


def test_all_folders_are_read_in_the_order_of_names(tmp_path: Path) -> None:
    pictures = load_pictures(write_data(tmp_path), SETTINGS)
    assert [len(pictures.training), len(pictures.validation), pictures.left_out] == [4, 2, 0]
    assert {planes.shape for planes in pictures.training} == {(1, 26, 30)}
    fewer = load_pictures(tmp_path, SETTINGS, frozenset({"a"}))
    assert fewer.left_out == 3
    np.testing.assert_array_equal(fewer.training[1], pictures.training[3])


@pytest.mark.parametrize("folder", FOLDERS)
def test_bsd68_is_never_seen(tmp_path: Path, folder: str) -> None:
    write_data(tmp_path)
    name = sorted(bsd68_ids())[7]
    write_image(tmp_path / folder / f"{name}.jpg", ImageFile(random_image((26, 30))))
    pictures = load_pictures(tmp_path, SETTINGS)
    assert [len(pictures.training), len(pictures.validation), pictures.left_out] == [4, 2, 1]


def test_unusable_folders_and_images(tmp_path: Path) -> None:
    write_data(tmp_path)
    with pytest.raises(InputError, match=r"'.*train' are to be left out"):
        load_pictures(tmp_path, SETTINGS, frozenset({"a", "b"}))
    with pytest.raises(InputError, match=r"27x27 pixels does not fit into '.*a.png', 30x26"):
        load_pictures(tmp_path, settings_from_mapping(recipe(data={"crop": 27})))
    with pytest.raises(NLNetError, match=r"a\.png' is grayscale"):
        load_pictures(tmp_path, settings_from_mapping(recipe(network={"channels": 3})))
    broken = tmp_path / "test" / "b.png"
    broken.write_bytes(broken.read_bytes()[:60])
    with pytest.raises(FileError, match=r"b\.png"):
        load_pictures(tmp_path, SETTINGS)
    for path in (tmp_path / "test").iterdir():
        path.unlink()
    with pytest.raises(InputError, match="no images"):
        load_pictures(tmp_path, SETTINGS)
    (tmp_path / "test").rmdir()
    with pytest.raises(FileError, match="No such file"):
        load_pictures(tmp_path, SETTINGS)


def test_a_crop_depends_on_its_place_alone(tmp_path: Path) -> None:
    pictures = load_pictures(write_data(tmp_path), SETTINGS)
    source = CropSource(pictures.training, SETTINGS)
    all_of_them = source.draw(3, 0, range(6), 1)
    some = source.draw(3, 0, [4, 1], 1)
    later = source.draw(4, 0, [4, 1], 1)
    for name in ("estimate", "noisy", "groups", "clean"):
        assert torch.equal(getattr(all_of_them, name)[[4, 1]], getattr(some, name))
    assert not torch.equal(some.noisy, later.noisy)
    assert not torch.equal(some.clean, later.clean)


def test_crops_are_parts_of_the_images_and_the_noise_is_white(tmp_path: Path) -> None:
    settings = settings_from_mapping(recipe(data={"augment": False}))
    pictures = load_pictures(write_data(tmp_path), settings)
    batch = CropSource(pictures.training, settings).draw(1, 0, range(60), 1)
    windows = np.lib.stride_tricks.sliding_window_view(pictures.training[1][0], (20, 20))
    assert (windows == batch.clean[1, 0].numpy()).all(axis=(2, 3)).any()
    noise = (batch.noisy - batch.clean).double()
    assert abs(float(noise.std()) - 25) < 0.5
    assert abs(float(noise.mean())) < 1


def test_augmentation_turns_and_flips(tmp_path: Path) -> None:
    settings = settings_from_mapping(recipe(data={"crop": 26}))
    square = random_image((1, 26, 26))
    batch = CropSource([square], settings).draw(1, 0, range(64), 1)
    views = {crop.numpy().tobytes() for crop in batch.clean}
    assert len(views) == 8


def test_kept_crops_are_drawn_once(tmp_path: Path) -> None:
    pictures = load_pictures(write_data(tmp_path), SETTINGS)
    source = CropSource(pictures.training, SETTINGS)
    assert source.keep(range(4), 1) is source.keep(range(4), 1)
    assert len(source.keep(range(0, 4, 2), 1)) == 2


@pytest.mark.parametrize("shape", [(26, 30), (26, 30, 3)])
def test_validation_noise_is_the_protocols(tmp_path: Path, shape: tuple[int, ...]) -> None:
    channels = 3 if len(shape) == 3 else 1
    settings = settings_from_mapping(recipe(network={"channels": channels}))
    pictures = load_pictures(write_data(tmp_path, shape), settings)
    batch = validation_batch(pictures.validation[1], 1, 25.0, settings, 1)
    planes = batch.noisy[0].numpy()
    rgb = planes if channels == 1 else color.transform(planes, color.RGB)
    clean = np.moveaxis(pictures.validation[1], 0, -1).reshape(shape)
    wanted = add_noise(clean, 25, seed=1)
    np.testing.assert_allclose(np.moveaxis(rgb, 0, -1).reshape(shape), wanted, atol=1e-3)


def test_precision_and_groups_of_a_batch() -> None:
    settings = settings_from_mapping(recipe(precision="float64"))
    noisy = random_image((1, 1, 20, 24)).astype(np.float32)
    batch = make_batch(noisy, noisy, 25.0, settings, 1)
    wanted = find_groups(noisy[0], NetworkConfig(stages=2, window=7))
    assert {batch.noisy.dtype, batch.clean.dtype} == {torch.float64}
    np.testing.assert_array_equal(batch.groups.numpy(), wanted)
