"""
A big image in little memory
============================

Memory grows with the width of an image, not with its height, and ``max_memory`` bounds it.
"""

import sys
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import nlnet
from nlnet.evaluation.protocol import read_clean
from nlnet.noise import add_noise, store

# %%
# Mirror images of a part of the photo, one below the other, make images of any height. These are
# narrow, so that the example ends soon; nothing changes for 100 megapixels.
photo = read_clean(Path(sys.argv[0]).with_name("cat.png"), channels=1)[:, 100:300]


def noisy_tower(count: int) -> np.ndarray:
    """So many photos, one below the other, noisy."""
    tall = np.pad(photo, ((0, (count - 1) * len(photo)), (0, 0)), mode="symmetric")
    return store(add_noise(tall, 25), photo.dtype, data_range=255)


def measured(image: np.ndarray, max_memory: int | None) -> tuple[np.ndarray, float]:
    """Denoise; return the result, and the megabytes used at the peak besides it."""
    tracemalloc.start()
    denoised = nlnet.denoise(image, 25, max_memory=max_memory, threads=2)
    peak = tracemalloc.get_traced_memory()[1] - denoised.nbytes
    tracemalloc.stop()
    return denoised, peak / 1e6


# %%
# Rows of tiles go through all stages as on a conveyor, and are dropped once nobody needs them any
# more. So a taller image takes more time, but no more memory. (Every thread has scratch memory of
# its own: two of them are enough here. The first call only warms up.)
nlnet.denoise(photo, 25)
towers = [noisy_tower(count) for count in (1, 3, 5, 8)]
free = [measured(tower, None) for tower in towers]
bounded = [measured(tower, 14_000_000) for tower in towers]

# %%
# With less memory the tiles are lower, and sums are split at other places. That is rounding, not
# another result: the difference is at most one gray level, in a few pixels.
for (whole, _), (tiled, _), tower in zip(free, bounded, towers, strict=True):
    difference = np.abs(whole.astype(int) - tiled)
    print(
        f"{tower.shape[1]} x {tower.shape[0]} pixels: largest difference {difference.max()}, "
        f"in {np.count_nonzero(difference)} of {tower.size} pixels"
    )

# %%
megapixels = [tower.size / 1e6 for tower in towers]
figure, panel = plt.subplots(figsize=(7, 3.6), layout="constrained")
panel.plot(megapixels, [peak for _, peak in free], marker="o", label="no limit", color="#1f5f99")
panel.plot(
    megapixels, [peak for _, peak in bounded], marker="o", label="max_memory=14 MB", color="#d9541e"
)
panel.set_xlabel("megapixels, all images 200 pixels wide")
panel.set_ylabel("memory at the peak (MB)")
panel.set_ylim(bottom=0)
panel.spines[["top", "right"]].set_visible(False)
panel.legend(frameon=False)
plt.show()

# %%
# In the shell: ``nlnet denoise big.tif -o clean.tif --max-memory 500M``. Images of more than 250
# megapixels are refused before they are decoded, unless ``--max-pixels`` says otherwise. If the
# work is to be seen or stopped, give ``denoise`` a ``progress`` function.
shares: list[float] = []
nlnet.denoise(towers[0], 25, progress=shares.append)
print(f"progress was reported {len(shares)} times, the last time {shares[-1]:.0%}")
