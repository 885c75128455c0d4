"""
Denoise a photo
===============

Add noise to a photo, remove it again, and measure the gain.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nlnet
from nlnet.evaluation.metrics import psnr
from nlnet.images import read_image
from nlnet.noise import add_noise, store

# %%
# A clean photo, and the same photo with white Gaussian noise of sigma 25 on the 0-255 scale,
# rounded to 8 bits as in a file. If you have a noisy image of your own, read it here and skip this
# step.
clean = read_image(Path(sys.argv[0]).with_name("cat.png")).pixels
noisy = store(add_noise(clean, sigma=25, seed=0), clean.dtype, data_range=255)

# %%
# This is all it takes. Arrays have the shape (H, W) or (H, W, 3), and the result has the same shape
# and dtype. They may come from Pillow, OpenCV (in RGB order), scikit-image or ``nlnet.images``.
denoised = nlnet.denoise(noisy, sigma=25)

# %%
# From left to right: the noisy photo, the result, and what was removed, with three times the
# contrast. The last one should show nothing but noise; if you see edges in it, sigma is too large.
removed = np.clip(128 + 3 * (noisy.astype(float) - denoised), 0, 255).astype(np.uint8)
shown = {
    f"noisy, {psnr(clean, noisy):.2f} dB": noisy,
    f"denoised, {psnr(clean, denoised):.2f} dB": denoised,
    "removed, contrast x 3": removed,
}
figure, panels = plt.subplots(1, 3, figsize=(12, 3.1), layout="constrained")
for panel, (title, image) in zip(panels, shown.items(), strict=True):
    panel.imshow(image)
    panel.set_title(title)
    panel.set_axis_off()
plt.show()

# %%
# A closer look, next to the clean photo.
part = np.s_[60:200, 120:230]
shown = {"noisy": noisy, "denoised": denoised, "clean": clean}
figure, panels = plt.subplots(1, 3, figsize=(10, 4.5), layout="constrained")
for panel, (title, image) in zip(panels, shown.items(), strict=True):
    panel.imshow(image[part], interpolation="nearest")
    panel.set_title(title)
    panel.set_axis_off()
plt.show()

# %%
# In the shell it is ``nlnet denoise noisy.png -o clean.png --sigma 25``, and ``--preview look.png``
# draws a figure like the first one.

# sphinx_gallery_thumbnail_number = 2
