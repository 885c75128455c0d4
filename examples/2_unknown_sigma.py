"""
Unknown noise
=============

Let nlnet estimate the noise, and see what a wrong sigma does.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nlnet
from nlnet.evaluation.datasets import read_clean
from nlnet.evaluation.metrics import psnr
from nlnet.noise import add_noise

clean = read_clean(Path(sys.argv[0]).with_name("cat.png"), channels=1).astype(np.float32)

# %%
# ``estimate_sigma`` estimates the standard deviation of white noise from the image alone, in the
# units of the image. If you call ``denoise`` without a sigma, it estimates the noise by itself,
# also when it is not white.
for sigma in (5.0, 15.0, 25.0, 50.0):
    noisy = add_noise(clean, sigma).astype(np.float32)
    print(f"true sigma {sigma:4.1f}, estimated {nlnet.estimate_sigma(noisy):5.2f}")

# %%
# A sigma that is too small leaves noise behind; one that is too large removes texture. The
# estimate is at the top of the curve. (``clip=True`` is only needed for the small sigmas here:
# noise that weak would not explain values so far outside the data range, and the result would not
# be clipped.)
noisy = add_noise(clean, 20).astype(np.float32)
estimate = nlnet.estimate_sigma(noisy)
sigmas = 20 * np.geomspace(0.4, 2.5, 9)
quality = [psnr(clean, nlnet.denoise(noisy, sigma, data_range=255, clip=True)) for sigma in sigmas]

figure, panel = plt.subplots(figsize=(7, 3.6), layout="constrained")
panel.plot(sigmas, quality, marker="o", color="#1f5f99")
panel.axvline(estimate, color="#d9541e", label=f"estimated: {estimate:.1f}")
panel.axvline(20, color="#555555", linestyle=":", label="true: 20")
panel.set_xscale("log", base=2)
panel.set_xticks([8, 10, 16, 20, 25, 32, 50], ["8", "10", "16", "20", "25", "32", "50"])
panel.minorticks_off()
panel.set_xlabel("sigma given to denoise")
panel.set_ylabel("PSNR (dB)")
panel.spines[["top", "right"]].set_visible(False)
panel.legend(frameon=False)
plt.show()

# %%
# The same as images: half the true sigma, the estimate, and twice the true sigma.
part = np.s_[55:205, 120:220]
figure, panels = plt.subplots(1, 4, figsize=(12, 4.8), layout="constrained")
shown = {"noisy": noisy}
for name, sigma in (("too small", 10), ("estimated", estimate), ("too large", 40)):
    shown[f"{name}: {sigma:.1f}"] = nlnet.denoise(noisy, sigma, data_range=255, clip=True)
for panel, (title, image) in zip(panels, shown.items(), strict=True):
    panel.imshow(image[part], cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    panel.set_title(title)
    panel.set_axis_off()
plt.show()

# %%
# An image without noise is returned unchanged, with a warning. :doc:`/files_and_noise` tells what
# can mislead the estimate.

# sphinx_gallery_thumbnail_number = 2
