"""Pictures in the manner of the paper's Fig. 4 and 5: noisy, BM3D and nlnet, with a magnified part.

``make pictures`` draws the bundled photo for `docs/pictures.md`. If the data folder is there, it
draws images of BSD68 into ``build/pictures``, too: they may not be part of the repository. Their
noise is that of the evaluation, so that an image has the PSNR of `docs/results`.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import nlnet
from benchmarks.peers import make_bm3d
from benchmarks.pictures import bsd68_paths, find_data
from nlnet.arrays import Array
from nlnet.atomic import write_atomically
from nlnet.evaluation.datasets import read_clean
from nlnet.evaluation.metrics import psnr
from nlnet.noise import add_noise
from scripts.results import PROJECT

SIDE = 64
"""Side of the part that is magnified, in pixels."""

BUNDLED = ("color", 50.0, PROJECT / "examples" / "cat.png")
EYE = (80, 138)
"""Top and left of what is magnified of it."""

BSD68 = (
    ("gray", 25.0, "102061"),
    ("gray", 50.0, "227092"),
    ("color", 25.0, "101085"),
    ("color", 50.0, "302008"),
)
"""Kind, sigma and name."""


def main() -> None:
    """Draw all pictures."""
    kind, sigma, path = BUNDLED
    draw(kind, sigma, path, 0, PROJECT / "docs" / "images" / "fig5.jpg", EYE)
    data, folder = find_data(), PROJECT / "build" / "pictures"
    if data is None:
        print("There is no data folder (NLNET_SHARED): the images of BSD68 are left out.")
        return
    folder.mkdir(parents=True, exist_ok=True)
    for kind, sigma, name in BSD68:
        paths = list(bsd68_paths(kind, data))
        number = [path.stem for path in paths].index(name)  # which is the seed of its noise
        draw(kind, sigma, paths[number], number, folder / f"{kind}-s{sigma:g}-{name}.png")


def draw(
    kind: str,
    sigma: float,
    path: Path,
    seed: int,
    target: Path,
    part_at: tuple[int, int] | None = None,
) -> None:
    """Draw an image with noise, and what denoisers make of it, with a part of each magnified."""
    clean = read_clean(path, 1 if kind == "gray" else 3).astype(np.float64)
    noisy = add_noise(clean, sigma, seed)
    shown = {"original": clean, "noisy": noisy}
    other = make_bm3d(kind, sigma).call(noisy, sigma, 1)
    shown["BM3D" if kind == "gray" else "CBM3D"] = np.clip(other, 0, 255)
    for name in (kind, f"{kind}-plus"):
        denoised = nlnet.denoise(noisy.astype(np.float32), sigma, model=name, data_range=255)
        shown[f"nlnet, {name}"] = np.asarray(denoised)
    top, left = part_at or busiest(clean)
    figure = Figure((3 * len(shown), 3 * (clean.shape[0] / clean.shape[1] + 1.1)), dpi=100)
    ratios = (clean.shape[0] / clean.shape[1], 1)
    axes = figure.subplots(2, len(shown), height_ratios=ratios)
    for (whole, part), (name, image) in zip(axes.T, shown.items(), strict=True):
        pixels = np.rint(np.clip(image, 0, 255)).astype(np.uint8)
        figures = "" if name == "original" else f"\n{psnr(clean, image, 255.0):.2f} dB"
        whole.set_title(name + figures, fontsize=13)
        whole.add_patch(Rectangle((left, top), SIDE, SIDE, fill=False, color="red", linewidth=1.5))
        cut = pixels[top : top + SIDE, left : left + SIDE]
        for place, content in ((whole, pixels), (part, cut)):
            place.imshow(content, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            place.set_axis_off()
    figure.tight_layout(pad=0.4)
    stream = io.BytesIO()
    quality = {"quality": 85} if target.suffix == ".jpg" else None
    figure.savefig(stream, format=target.suffix[1:], bbox_inches="tight", pil_kwargs=quality)
    write_atomically(target, stream.getvalue())
    print(target)


def busiest(clean: Array) -> tuple[int, int]:
    """Return the top and left of the square with the most detail, not too near to the border."""
    gray = clean if clean.ndim == 2 else clean.mean(axis=-1)
    steps = np.abs(np.diff(gray, axis=0))[:, 1:] + np.abs(np.diff(gray, axis=1))[1:]
    sums = np.pad(np.minimum(steps, 60), ((1, 0), (1, 0))).cumsum(0).cumsum(1)
    around = sums[SIDE:, SIDE:] - sums[:-SIDE, SIDE:] - sums[SIDE:, :-SIDE] + sums[:-SIDE, :-SIDE]
    inner = around[16:-16, 16:-16]
    top, left = np.unravel_index(inner.argmax(), inner.shape)
    return int(top) + 16, int(left) + 16


if __name__ == "__main__":
    main()
