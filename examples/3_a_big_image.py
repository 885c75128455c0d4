"""
A big image in little memory
============================

Denoise an image of 6 megapixels, see how much memory that takes, and set a limit.
"""

import sys
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

import nlnet
from nlnet.evaluation.datasets import read_clean
from nlnet.noise import add_noise, store

# %%
# Mirror images of the photo, side by side and below each other, make an image of 3000 x 2000
# pixels.
photo = read_clean(Path(sys.argv[0]).with_name("cat.png"), channels=1)
rows, columns = 2000 - photo.shape[0], 3000 - photo.shape[1]
clean = np.pad(photo, ((0, rows), (0, columns)), mode="symmetric")
noisy = store(add_noise(clean, 25), photo.dtype, data_range=255)


def measured(image: np.ndarray, max_memory: int | None = None) -> tuple[np.ndarray, float]:
    """Denoise; return the result, and the peak memory in MB besides the image and the result."""
    tracemalloc.start()
    result = nlnet.denoise(image, 25, max_memory=max_memory, threads=2)
    peak = tracemalloc.get_traced_memory()[1] - result.nbytes
    tracemalloc.stop()
    return result, peak / 1e6


# %%
# Rows of tiles move through all stages like items on a conveyor belt, and are dropped as soon as
# no stage needs them any more. So a taller image takes more time, but hardly more memory: here the
# upper quarter of the image, and all of it. With ``max_memory``, the tiles are smaller.
_, memory_of_quarter = measured(noisy[:500])
denoised, memory = measured(noisy)
limited, limited_memory = measured(noisy, max_memory=60_000_000)

# %%
# The whole image, and the frame enlarged.
left, top, width, height = 1810, 1240, 240, 180
figure, panels = plt.subplots(2, 2, figsize=(11, 8.3), layout="constrained")
for (above, below), title, image in zip(
    panels.T, ("noisy", "denoised"), (noisy, denoised), strict=True
):
    above.imshow(image, cmap="gray", vmin=0, vmax=255)
    above.add_patch(Rectangle((left, top), width, height, fill=False, color="#d9541e", lw=2))
    above.set_title(f"{title}, {image.shape[1]} x {image.shape[0]} pixels")
    part = image[top : top + height, left : left + width]
    below.imshow(part, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    above.set_axis_off()
    below.set_axis_off()
plt.show()

# %%
# The memory that it took besides the image and the result, which have 6 MB each.
bars = {
    "1.5 megapixels, no limit": memory_of_quarter,
    "6 megapixels, no limit": memory,
    "6 megapixels, max_memory=60 MB": limited_memory,
}
figure, panel = plt.subplots(figsize=(8, 2.2), layout="constrained")
drawn = panel.barh(list(bars), list(bars.values()), color=["#1f5f99", "#1f5f99", "#d9541e"])
panel.bar_label(drawn, fmt="%.0f MB", padding=4)
panel.invert_yaxis()
panel.set_xlim(right=1.15 * max(bars.values()))
panel.set_xlabel("peak memory (MB)")
panel.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# A limit does not change the result, apart from rounding.
difference = np.abs(denoised.astype(int) - limited)
print(
    f"largest difference {difference.max()} of 255, "
    f"in {np.count_nonzero(difference)} of {difference.size} pixels"
)

# %%
# In the shell it is ``nlnet denoise big.tif -o clean.tif --max-memory 500M``. Images of more than
# 250 megapixels are refused before they are decoded, unless you raise ``--max-pixels``. To show
# progress, or to stop the work, pass a ``progress`` function.
shares: list[float] = []
nlnet.denoise(noisy[:200], 25, progress=shares.append)
print(f"progress was reported {len(shares)} times, the last time {shares[-1]:.0%}")

# sphinx_gallery_thumbnail_number = 1
