from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from messages import refused
from pictures import random_image
from training_cases import FOLDERS, read_lines, recipe, train, write_data
from training_cases import picture as training_picture

from nlnet.errors import FileError, InputError, NLNetError
from nlnet.evaluation import datasets
from nlnet.evaluation.datasets import bsd68_ids, fingerprint
from nlnet.images import ImageFile, write_image
from nlnet.network import color
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import find_groups
from nlnet.noise import add_noise
from nlnet.training.data import CropSource
from nlnet.training.pictures import Pictures, load_pictures
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
    with refused(InputError, "train'", "to be left out"):
        load_pictures(tmp_path, SETTINGS, frozenset({"a", "b"}))
    with refused(InputError, "27x27 pixels does not fit into '", "a.png', 30x26"):
        load_pictures(tmp_path, settings_from_mapping(recipe(data={"crop": 27})))
    with refused(NLNetError, "a.png'", "grayscale"):
        load_pictures(tmp_path, settings_from_mapping(recipe(network={"channels": 3})))
    broken = tmp_path / "test" / "b.png"
    broken.write_bytes(broken.read_bytes()[:60])
    with refused(FileError, "b.png"):
        load_pictures(tmp_path, SETTINGS)
    for path in (tmp_path / "test").iterdir():
        path.unlink()
    with refused(InputError, "no images"):
        load_pictures(tmp_path, SETTINGS)
    (tmp_path / "test").rmdir()
    with refused(FileError, "No such file"):
        load_pictures(tmp_path, SETTINGS)


def test_a_crop_depends_on_its_place_alone(tmp_path: Path) -> None:
    pictures = load_pictures(write_data(tmp_path), SETTINGS)
    source = CropSource(pictures, SETTINGS)
    all_of_them = source.draw(3, 0, range(6))
    some = source.draw(3, 0, [4, 1])
    later = source.draw(4, 0, [4, 1])
    for name in ("estimate", "noisy", "groups", "clean"):
        assert torch.equal(getattr(all_of_them, name)[[4, 1]], getattr(some, name))
    assert not torch.equal(some.noisy, later.noisy)
    assert not torch.equal(some.clean, later.clean)


def test_crops_are_parts_of_the_images_and_the_noise_is_white(tmp_path: Path) -> None:
    settings = settings_from_mapping(recipe(data={"augment": False}))
    pictures = load_pictures(write_data(tmp_path), settings)
    batch = CropSource(pictures, settings).draw(1, 0, range(60))
    windows = np.lib.stride_tricks.sliding_window_view(pictures.training[1][0], (20, 20))
    assert (windows == batch.clean[1, 0].numpy()).all(axis=(2, 3)).any()
    noise = (batch.noisy - batch.clean).double()
    assert abs(float(noise.std()) - 25) < 0.5
    assert abs(float(noise.mean())) < 1


def test_augmentation_turns_and_flips(tmp_path: Path) -> None:
    settings = settings_from_mapping(recipe(data={"crop": 26}))
    square = random_image((1, 26, 26))
    batch = CropSource(Pictures([square], []), settings).draw(1, 0, range(64))
    views = {crop.numpy().tobytes() for crop in batch.clean}
    assert len(views) == 8


def test_kept_crops_are_drawn_once(tmp_path: Path) -> None:
    pictures = load_pictures(write_data(tmp_path), SETTINGS)
    source = CropSource(pictures, SETTINGS)
    assert source.keep(range(4)) is source.keep(range(4))
    assert len(source.keep(range(0, 4, 2))) == 2


@pytest.mark.parametrize("shape", [(26, 30), (26, 30, 3)])
def test_validation_noise_is_the_protocols(tmp_path: Path, shape: tuple[int, ...]) -> None:
    channels = 3 if len(shape) == 3 else 1
    settings = settings_from_mapping(recipe(network={"channels": channels}))
    pictures = load_pictures(write_data(tmp_path, shape), settings)
    batch = CropSource(pictures, settings).validation_batch(1, 25.0)
    planes = batch.noisy[0].numpy()
    rgb = planes if channels == 1 else color.transform(planes, color.RGB)
    clean = np.moveaxis(pictures.validation[1], 0, -1).reshape(shape)
    wanted = add_noise(clean, 25, seed=1)
    np.testing.assert_allclose(np.moveaxis(rgb, 0, -1).reshape(shape), wanted, atol=1e-3)


def test_precision_and_groups_of_a_batch() -> None:
    settings = settings_from_mapping(recipe(precision="float64"))
    noisy = random_image((1, 1, 20, 24)).astype(np.float32)
    batch = CropSource(Pictures([], []), settings).make_batch(noisy, noisy, 25.0)
    wanted = find_groups(noisy[0], NetworkConfig(stages=2, window=7))
    assert {batch.noisy.dtype, batch.clean.dtype} == {torch.float64}
    np.testing.assert_array_equal(batch.groups.numpy(), wanted)


# --- Other folders, other noise, other depths -------------------------------------------------


def test_only_train_is_trained_on_unless_a_recipe_says_more(tmp_path: Path) -> None:
    write_data(tmp_path)
    plain = settings_from_mapping(recipe(data={"folders": ["train"]}))
    assert plain.data.folders == type(plain.data)().folders
    pictures = load_pictures(tmp_path, plain)
    assert [len(pictures.training), len(pictures.validation)] == [2, 2]
    for path in (tmp_path / "test").iterdir():
        path.unlink()
    (tmp_path / "test").rmdir()
    assert len(load_pictures(tmp_path, plain).training) == 2
    with refused(FileError, "test"):
        load_pictures(tmp_path, SETTINGS)


def test_all_pictures_are_seen_however_few_crops_an_epoch_has() -> None:
    settings = settings_from_mapping(recipe(data={"crops": 2, "augment": False}))
    flat = [np.full((1, 26, 30), number, np.uint8) for number in range(5)]
    source = CropSource(Pictures(flat, []), settings)
    places = [(epoch, item) for epoch in (1, 2, 3) for item in (0, 1)]
    shown = [int(source.draw(epoch, 0, [item]).clean.mean()) for epoch, item in places]
    assert shown == [0, 1, 2, 3, 4, 0]


def test_files_of_16_bits_keep_their_digits(tmp_path: Path) -> None:
    write_data(tmp_path)
    deep = np.arange(26 * 30, dtype=np.uint16).reshape(26, 30) * 80
    write_image(tmp_path / "train" / "a.png", ImageFile(deep))
    picture = load_pictures(tmp_path, SETTINGS).training[0]
    assert picture.dtype == np.float32
    np.testing.assert_allclose(picture[0], deep / 257, rtol=1e-6)


def test_a_renamed_copy_of_a_test_image_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    shown = np.kron(rng.integers(30, 220, (16, 17)), np.ones((8, 8))).astype(np.uint8)
    monkeypatch.setattr(datasets, "_known", lambda: {"BSD68 12345": fingerprint(shown[None])})
    write_data(tmp_path)
    encoded = np.clip(shown[::2, ::2] + rng.normal(0, 3, (64, 68)), 0, 255).astype(np.uint8)
    write_image(tmp_path / "train" / "holiday.png", ImageFile(encoded))
    pictures = load_pictures(tmp_path, SETTINGS)
    assert len(pictures.training) == 4
    assert len(pictures.copies) == 1
    assert "holiday.png" in pictures.copies[0]
    assert "BSD68 12345" in pictures.copies[0]


def test_the_test_images_are_known() -> None:
    known = datasets._known()
    sets = [name.split() for name in known]
    assert {name for title, name in sets if title == "BSD68"} == bsd68_ids()
    assert sum(title == "Set12" for title, _ in sets) == 12
    assert len(set(known.values())) == 80


def pairs_data(folder: Path) -> Path:
    """Pairs whose noise is a step of 10 gray levels."""
    for number, (part, name) in enumerate((p, n) for p in ("train", "val") for n in "ab"):
        clean = training_picture(number) // 2 + 20
        for kind, pixels in (("clean", clean), ("noisy", clean + 10)):
            path = folder / part / kind / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_image(path, ImageFile(pixels.astype(np.uint8)))
    return folder


def test_pairs_of_noisy_and_clean_files(tmp_path: Path) -> None:
    values = recipe(data={"folders": ["train"], "noise": "pairs"}, sigmas=[5, 20, 80], start="gray")
    del values["sigma"]
    settings = settings_from_mapping(values)
    pictures = load_pictures(pairs_data(tmp_path), settings)
    batch = CropSource(pictures, settings).draw(1, 0, range(4))
    np.testing.assert_array_equal(batch.noisy - batch.clean, np.full((4, 1, 20, 20), 10))
    assert batch.sigma == pytest.approx(10)  # measured
    (validation,) = CropSource(pictures, settings).validation(0)
    np.testing.assert_array_equal(validation.noisy - validation.clean, np.full((1, 1, 26, 30), 10))
    write_image(tmp_path / "val" / "noisy" / "b.png", ImageFile(np.zeros((20, 20), np.uint8)))
    with refused(InputError, "differ in size: 30x26 and 20x20"):
        load_pictures(tmp_path, settings)
    (tmp_path / "val" / "noisy" / "b.png").unlink()
    with refused(FileError, "noisy"):
        load_pictures(tmp_path, settings)


@pytest.mark.parametrize("channels", [1, 3])
def test_simulated_noise(tmp_path: Path, channels: int) -> None:
    pytest.importorskip("cv2")
    shape = (80, 90, 3)
    write_data(tmp_path, shape)
    data = {"folders": ["train"], "noise": "simulated", "crop": 32}
    settings = settings_from_mapping(recipe(data=data, network={"channels": channels}))
    pictures = load_pictures(tmp_path, settings)
    source = CropSource(pictures, settings)
    batch = source.draw(1, 0, range(6))
    assert batch.noisy.shape == (6, channels, 32, 32)
    again = source.draw(1, 0, range(6))
    assert torch.equal(batch.noisy, again.noisy)
    assert batch.sigma == 25  # the recipe's
    assert len(CropSource(pictures, settings).validation(0)) == 1


@pytest.mark.parametrize("noise", ["pairs", "simulated"])
def test_a_run_on_other_noise(tmp_path: Path, noise: str) -> None:
    pytest.importorskip("cv2")
    data = pairs_data(tmp_path) if noise == "pairs" else write_data(tmp_path, (80, 90, 3))
    values = recipe(data={"folders": ["train"], "noise": noise}, backend="plain")
    assert train(values, data, tmp_path / "run")
    assert read_lines(tmp_path / "run")[-1]["val_psnr"] > 10
