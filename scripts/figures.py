"""The pictures of the README and the documentation: ``make figures``."""

from __future__ import annotations

import io
import sys

import numpy as np
import pyvips
from matplotlib.figure import Figure

import nlnet
from nlnet.atomic import write_atomically
from nlnet.evaluation.comparison import compare
from nlnet.evaluation.datasets import read_clean
from nlnet.images import ImageFile, read_image
from nlnet.noise import add_noise
from nlnet.plotting.curves import draw_curves
from nlnet.training.progress import read_log
from scripts import noise_figures
from scripts.results import PROJECT

SIGMA = 25
WIDTH = 1200
IMAGES = PROJECT / "docs" / "images"
LOGS = PROJECT / "docs" / "results" / "training"


def main() -> None:
    """Draw all pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    draw_comparison()
    draw_example()
    draw_stage()
    draw_optimizers()
    draw_movie()
    noise_figures.draw_all()


def draw_comparison() -> None:
    """Add noise to the bundled photo, denoise it, and draw the three side by side."""
    clean = read_image(PROJECT / "examples" / "cat.png")
    noisy = add_noise(clean.pixels, SIGMA, seed=0).astype(np.float32)
    denoised = nlnet.denoise(noisy, SIGMA, data_range=255)
    shown = [
        (f"noise of sigma {SIGMA}", [ImageFile(_to_bytes(noisy))]),
        ("denoised", [ImageFile(_to_bytes(denoised))]),
    ]
    comparisons, figure = compare([clean], shown, name="original")
    small = pyvips.Image.new_from_array(figure.pixels).thumbnail_image(WIDTH)
    write_atomically(IMAGES / "cat.jpg", small.jpegsave_buffer(Q=72, strip=True))
    for comparison in comparisons:
        print(f"{comparison.name}: {comparison.psnr:.2f} dB, SSIM {comparison.ssim:.3f}")


def draw_example() -> None:
    """Denoise the example of the web page as its start shows it."""
    static = PROJECT / "src" / "nlnet" / "web" / "static"
    noisy = _to_bytes(add_noise(read_image(static / "example.jpg").pixels, SIGMA, seed=0))
    denoised = pyvips.Image.new_from_array(nlnet.denoise(noisy, SIGMA))
    write_atomically(static / "example-denoised.jpg", denoised.jpegsave_buffer(Q=85, strip=True))


def draw_movie() -> None:
    """Pan over the bundled photo with much noise, and draw a frame page by page and along time."""
    photo = read_clean(PROJECT / "examples" / "cat.png", channels=1)
    starts = [(20 + t, 90 + 3 * t) for t in range(7)]
    film = np.stack([photo[top : top + 240, left : left + 240] for top, left in starts])
    noisy = film + np.random.default_rng(0).normal(0, 2 * SIGMA, film.shape)
    films = {
        f"a frame of seven, noise of sigma {2 * SIGMA}": noisy,
        "page by page": nlnet.denoise_stack(noisy, 2 * SIGMA, data_range=255),
        "along time": nlnet.denoise_stack(noisy, 2 * SIGMA, data_range=255, along=0),
    }
    shown = [(name, [ImageFile(_to_bytes(pages[3]))]) for name, pages in films.items()]
    _, figure = compare([ImageFile(_to_bytes(film[3]))], shown, name="original")
    small = pyvips.Image.new_from_array(figure.pixels).thumbnail_image(WIDTH)
    write_atomically(IMAGES / "movie.jpg", small.jpegsave_buffer(Q=72, strip=True))


def draw_optimizers() -> None:
    """Draw the runs of the two optimisers on the same crops: PSNR over time and epochs."""
    names = {"L-BFGS": "gray-5x5-s25-lbfgs", "Adam": "gray-5x5-s25-adam"}
    runs = {shown: read_log(LOGS / f"{name}.jsonl") for shown, name in names.items()}
    _write_figure(draw_curves(runs), "optimizers.png")


def draw_stage() -> None:
    """Draw the figure of a stage that the documentation has, small enough to be kept."""
    sys.path.append(str(PROJECT / "docs"))
    from drawings import photo, stage

    figure = stage.draw_stage(photo.read_photo(), nlnet.load_model("gray-5x5-s25"))
    _write_figure(figure, "stage.png")


def _write_figure(figure: Figure, name: str) -> None:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=WIDTH / figure.get_figwidth())
    drawn = pyvips.Image.new_from_buffer(buffer.getvalue(), "")
    write_atomically(IMAGES / name, drawn.pngsave_buffer(palette=True, strip=True))


def _to_bytes(pixels: np.ndarray) -> np.ndarray:
    return np.rint(np.clip(pixels, 0, 255)).astype(np.uint8)


if __name__ == "__main__":
    main()
