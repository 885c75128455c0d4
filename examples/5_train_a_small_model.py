"""
Train a small model
===================

Write a recipe, train, look at the curves and at what was learned, and use the model.

To finish within seconds, this page trains a tiny network on parts of one photo: enough to see all
the steps, but not enough for a good model. In a few minutes, ``nlnet train configs/toy.toml --data
bsds500/ --out runs/toy`` does the same with the images of BSDS500, or with a few hundred photos of
your own. It needs the extras ``train`` and ``plot``.
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nlnet
from nlnet.evaluation.datasets import read_clean
from nlnet.evaluation.metrics import psnr
from nlnet.images import ImageFile, write_image
from nlnet.noise import add_noise
from nlnet.plotting.curves import draw_curves
from nlnet.plotting.files import save_figure
from nlnet.plotting.inspection import draw_model
from nlnet.training.progress import read_log
from nlnet.training.run import run_training

# %%
# The images in ``train/`` and ``test/`` are used for training, and those in ``val/`` to choose the
# best model. Here they are parts of the left half of the photo; the right half is for trying out
# the model.
photo = read_clean(Path(sys.argv[0]).with_name("cat.png"), channels=1)
folder = Path(tempfile.mkdtemp())
parts = {
    "train/fur": (0, 0),
    "train/eye": (75, 110),
    "test/cheek": (150, 0),
    "val/chin": (190, 130),
}
for name, (top, left) in parts.items():
    path = folder / "data" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_image(path, ImageFile(photo[top : top + 100, left : left + 120]))

# %%
# A recipe is a TOML file. Settings that it leaves out have the paper's values; a typo is an error.
recipe, data, run = folder / "tiny.toml", folder / "data", folder / "run"
recipe.write_text("""\
name = "tiny"
sigma = 25
validate_every = 2

[network]
stages = 2
window = 11

[data]
crop = 32
crops = 32

[greedy]
epochs = 5

[joint]
epochs = 12
rate = 0.005
scalar_rate = 0.0025
""")
run_training(recipe, data, run)
print(sorted(path.name for path in run.iterdir()))


# %%
# First the stages are trained one after the other, then all together. An interrupted run continues
# with ``resume=True``, and ends with bit-identical weights.
def show_file(path: Path, width: float) -> None:
    """Show a figure from its file."""
    pixels = plt.imread(path)
    figure = plt.figure(figsize=(width, width * pixels.shape[0] / pixels.shape[1]))
    panel = figure.add_axes((0, 0, 1, 1))
    panel.imshow(pixels)
    panel.set_axis_off()
    plt.show()


save_figure(draw_curves({"tiny": read_log(run)}), folder / "curves.png")
show_file(folder / "curves.png", width=11)

# %%
# What it has learned. Compare it with the shipped models in :doc:`/how_it_works`.
model = nlnet.load_model(run / "best.safetensors").at(25)
save_figure(draw_model(model), folder / "model.png")
show_file(folder / "model.png", width=7)

# %%
# The model at work on a part of the photo that it has not seen, next to the shipped model.
clean = photo[60:220, 260:380].astype(np.float32)
noisy = add_noise(clean, 25).astype(np.float32)
shown = {"noisy": np.clip(noisy, 0, 255)}
for chosen in (model, nlnet.load_model("gray-5x5-s25")):
    shown[chosen.name] = nlnet.denoise(noisy, 25, model=chosen, data_range=255)
figure, panels = plt.subplots(1, 3, figsize=(11, 4.7), layout="constrained")
for panel, (name, image) in zip(panels, shown.items(), strict=True):
    panel.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    panel.set_title(f"{name}: {psnr(clean, image):.2f} dB")
    panel.set_axis_off()
plt.show()

# sphinx_gallery_thumbnail_number = 3
