"""Pictures for `docs/real_noise.md`: before and after, and what the eye sees, all simulated.

The photo in `examples/` is taken again by a simulated camera, and counted photon by photon. nlnet
is not told what the noise is.
"""

from __future__ import annotations

import io

import numpy as np
import pyvips
from matplotlib.figure import Figure

import nlnet
from nlnet.atomic import write_atomically
from nlnet.evaluation.comparison import compare
from nlnet.images import ImageFile, read_image
from nlnet.noise.camera import Camera
from nlnet.training.eye_data import opponent, strengths_of
from nlnet.training.simulation.cameras import InCamera
from nlnet.training.simulation.recipes import Recipe
from nlnet.training.simulation.steps import Encode, Sensor, Sharpen, Step
from scripts.results import PROJECT

IMAGES = PROJECT / "docs" / "images"
WIDTH = 1200
CAMERA: tuple[Step, ...] = (
    Sensor(photons=150.0, read=3.0, demosaicer="malvar"),
    InCamera("smoothing", sigma=10.0, share=0.7, chroma=1.0),
    Sharpen(0.4),
    Encode("jpeg", 90),
)
"""A small sensor in a room: developed, smoothed, sharpened and saved as JPEG by the camera."""

PHOTONS = 100.0
READ = 4.0
"""Photons of a white pixel, and read noise if white is 255."""


def draw_all() -> None:
    """Draw all."""
    photo = read_image(PROJECT / "examples" / "cat.png").pixels
    _draw_maps("eye-maps.jpg", photo)
    _draw("camera-noise.jpg", "a photo of a simulated camera", *shoot(photo))
    _draw("photon-noise.jpg", f"{PHOTONS:g} photons for white", *count(photo))


def shoot(photo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a photo as a camera saves it, and without noise."""
    recipe = Recipe("camera", photo.astype(np.float32), CAMERA)
    return _to_bytes(recipe.render(0)), _to_bytes(recipe.truth())


def count(photo: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the green channel as a sensor counts it, and without noise."""
    rng = np.random.default_rng(0)
    clean = photo[..., 1]
    counts = rng.poisson(clean * (PHOTONS / 255)) * (255 / PHOTONS)
    return _to_bytes(counts + READ * rng.standard_normal(clean.shape)), clean


def _draw(name: str, words: str, noisy: np.ndarray, clean: np.ndarray) -> None:
    found = nlnet.estimate_noise(noisy)
    shown = [(words, [ImageFile(noisy)]), ("denoised", [ImageFile(nlnet.denoise(noisy))])]
    comparisons, figure = compare([ImageFile(clean)], shown, name="without noise", data_range=255)
    small = pyvips.Image.new_from_array(figure.pixels).thumbnail_image(WIDTH)
    write_atomically(IMAGES / name, small.jpegsave_buffer(Q=72, strip=True))
    print(f"{name}: {found}; {', '.join(f'{each.psnr:.2f} dB' for each in comparisons)}")


def _draw_maps(name: str, photo: np.ndarray) -> None:
    """Draw how strong the noise of a photo is, place by place: as it is, and as the eye sees it."""
    recipe = Recipe("camera", photo.astype(np.float32), CAMERA)
    first, second = (_to_bytes(recipe.render(seed)) for seed in (0, 1))
    found = nlnet.estimate_noise(first, kind="camera")
    assert isinstance(found, Camera)
    planes = [opponent(each.astype(np.float32)) for each in (first, second)]
    height, width = (length // 16 * 16 for length in first.shape[:2])
    true = strengths_of(*(each[:, :height, :width] for each in planes)) * np.sqrt(3)
    figure = Figure(figsize=(10, 1.9), layout="constrained")
    axes = figure.subplots(1, 5)
    axes[0].imshow(first)
    axes[0].set_title("a noisy photo", fontsize=9)
    shown = (
        ("luma, true", true[0]),
        ("luma, seen", found.strengths[0, 0]),
        ("chroma, true", true[3]),
        ("chroma, seen", found.strengths[1, 0]),
    )
    most = max(float(true[0].max()), float(true[3].max()))
    for axis, (title, values) in zip(axes[1:], shown, strict=True):
        drawn = axis.imshow(
            values, vmin=0, vmax=most, extent=(0, first.shape[1], first.shape[0], 0)
        )
        axis.set_title(f"{title}\n{values.mean():.1f} on average", fontsize=9)
    for axis in axes:
        axis.set_axis_off()
    figure.colorbar(drawn, ax=axes[1:], fraction=0.03, label="sigma")
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=120)
    drawn_pixels = pyvips.Image.new_from_buffer(buffer.getvalue(), "").flatten(background=255)
    write_atomically(IMAGES / name, drawn_pixels.jpegsave_buffer(Q=72, strip=True))


def _to_bytes(pixels: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(pixels, 0, 255)).astype(np.uint8)


if __name__ == "__main__":
    draw_all()
