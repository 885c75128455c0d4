"""A JPEG is written again only if that gains more than it costs."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

import nlnet
from nlnet.files.one_file import denoise_file
from nlnet.files.settings import Settings
from nlnet.images import WritingOptions
from tests.paths import PROJECT

pytestmark = pytest.mark.numerical


def write_jpeg(path: Path, sigma: float, quality: int, *, halved: bool) -> np.ndarray:
    """Write the example photo with noise as JPEG; return it without noise."""
    photo = nlnet.read_image(PROJECT / "examples" / "cat.png").pixels.astype(np.float64)
    noisy = photo + sigma * np.random.default_rng(0).standard_normal(photo.shape)
    sampling = cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420 if halved else 0x111111
    how = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
    cv2.imwrite(str(path), np.clip(noisy, 0, 255).astype(np.uint8)[..., ::-1], how)
    return photo


@pytest.mark.parametrize(("quality", "halved"), [(50, True), (76, True), (90, False), (96, True)])
def test_the_quality_of_a_file_is_known(tmp_path: Path, quality: int, halved: bool) -> None:
    write_jpeg(tmp_path / "a.jpg", 0, quality, halved=halved)
    metadata = nlnet.read_image(tmp_path / "a.jpg").metadata
    assert metadata is not None
    assert metadata.encoding == (quality, halved)


@pytest.mark.parametrize(("quality", "halved"), [(85, True), (93, False)])
def test_strong_noise_is_removed_and_the_encoding_stays(
    tmp_path: Path, quality: int, halved: bool
) -> None:
    source, target = tmp_path / "a.jpg", tmp_path / "b.jpg"
    photo = write_jpeg(source, 20, quality, halved=halved)
    denoise_file(source, target, Settings())
    before, after = (nlnet.read_image(path) for path in (source, target))
    errors = [np.mean((image.pixels - photo) ** 2) for image in (before, after)]
    assert errors[1] < 0.5 * errors[0]
    assert after.metadata is not None
    assert after.metadata.encoding == (quality, halved)


@pytest.mark.parametrize("sigma", [0, 1.5, 2.5])
def test_weak_noise_does_not_pay_for_encoding_again(tmp_path: Path, sigma: float) -> None:
    source, target = tmp_path / "a.jpg", tmp_path / "b.jpg"
    write_jpeg(source, sigma, 80, halved=True)
    findings = denoise_file(source, target, Settings()).findings
    assert target.read_bytes() == source.read_bytes()
    assert not any("stays:" in note for note in findings.notes)  # all of it does


def test_who_insists_gets_it_written(tmp_path: Path) -> None:
    source, target = tmp_path / "a.jpg", tmp_path / "b.jpg"
    write_jpeg(source, 1.5, 80, halved=True)
    denoise_file(source, target, Settings(sigma=2.0))
    assert target.read_bytes() != source.read_bytes()
    denoise_file(source, target, Settings(writing=WritingOptions(jpeg_quality=60)))
    metadata = nlnet.read_image(target).metadata
    assert metadata is not None
    assert metadata.encoding == (60, True)
