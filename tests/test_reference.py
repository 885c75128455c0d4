"""The author's published models, on the image for which an independent version says the answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cases import denoise_planes

from nlnet.evaluation.metrics import psnr
from nlnet.model.matlab import import_author_model

pytestmark = pytest.mark.numerical

pytest.importorskip("scipy.io", reason="reading .mat files needs SciPy")


@pytest.fixture(scope="module")
def reference(shared: Path) -> Path:
    folder = shared / "reference"
    if not folder.is_dir():
        pytest.skip("no reference models in the data folder")
    return folder


def to_planes(image: np.ndarray) -> np.ndarray:
    """(H, W) or (H, W, 3) to (C, H, W)."""
    return image[np.newaxis] if image.ndim == 2 else np.moveaxis(image, -1, 0)


@pytest.mark.parametrize(
    ("kind", "file", "decibels"),
    [
        ("gray", "nlnet_5x5_std25_joint.mat", 29.867),
        ("color", "cnlnet_5x5_std25_joint.mat", 32.082),
    ],
)
def test_author_models_give_the_reference_outputs(reference, kind, file, decibels):
    model = import_author_model(reference / file)
    with np.load(reference / f"expected_{kind}.npz") as expected:
        clean, noisy, wanted = (to_planes(expected[k]) for k in ("clean", "noisy", "denoised"))
    output = denoise_planes(noisy, model.config, model.stages)
    assert output.dtype == np.float32
    assert np.mean(np.abs(output - wanted) <= 0.02) >= 0.995
    ours, theirs = (psnr(image, clean, data_range=255) for image in (output, wanted))
    assert ours == pytest.approx(theirs, abs=1e-3)
    assert ours == pytest.approx(decibels, abs=1e-3)
