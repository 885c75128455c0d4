"""
A movie, denoised with its neighbors
====================================

The frames of a movie show nearly the same, each with noise of its own: denoise them together.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nlnet
from nlnet.evaluation.datasets import read_clean
from nlnet.evaluation.metrics import psnr

# %%
# A camera that pans over the photo, with much noise: seven frames, each three pixels to the right
# of the one before and a pixel lower.
photo = read_clean(Path(sys.argv[0]).with_name("cat.png"), channels=1)
side = 160
clean = np.stack([photo[60 + t : 60 + t + side, 90 + 3 * t : 90 + 3 * t + side] for t in range(7)])
noisy = clean + np.random.default_rng(0).normal(0, 50, clean.shape)

# %%
# Page by page, and along the first axis, which is time.
alone = nlnet.denoise_stack(noisy, 50, data_range=255)
along = nlnet.denoise_stack(noisy, 50, data_range=255, along=0)

# %%
# A frame in the middle has the most neighbors.
figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
shown = {"noisy": noisy, "page by page": alone, "along": along, "clean": clean}
for axis, (title, film) in zip(axes, shown.items(), strict=True):
    axis.imshow(film[3], cmap="gray", vmin=0, vmax=255)
    score = "" if title == "clean" else f", {psnr(clean[3], film[3]):.1f} dB"
    axis.set_title(f"{title}{score}")
    axis.axis("off")
plt.show()
