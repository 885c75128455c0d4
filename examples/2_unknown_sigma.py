"""
When nobody knows how strong the noise is
=========================================

Let nlnet measure the noise, and see what a wrong sigma would do.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nlnet
from nlnet.evaluation.metrics import psnr
from nlnet.evaluation.protocol import read_clean
from nlnet.noise import add_noise

clean = read_clean(Path(sys.argv[0]).with_name("cat.png"), channels=1).astype(np.float32)

# %%
# ``estimate_sigma`` finds the noise's standard deviation from the image alone, in the image's own
# units. ``denoise`` without a sigma calls it.
for sigma in (5, 15, 25, 50):
    noisy = add_noise(clean, sigma).astype(np.float32)
    print(f"true sigma {sigma:4.1f}, estimated {nlnet.estimate_sigma(noisy):5.2f}")

# %%
# What a sigma that is off costs: too small leaves noise behind, too large takes texture away. The
# estimate lies at the top of the curve. (With a sigma that small, noise would not explain how far
# values leave the range: ``clip`` says that they are clipped all the same.)
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
# The same to look at: half the true sigma, the estimate, and twice the true sigma.
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
# An image without noise comes back as it is, with a warning: there is nothing to remove. What
# misleads the estimate is told in the page on files and noise.

# sphinx_gallery_thumbnail_number = 2
