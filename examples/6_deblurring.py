"""
Plug-and-play deblurring
========================

A denoiser knows what images look like, and that is of use beyond denoising: here it helps to undo
the blur of a shaken camera. It needs torch: ``pip install 'nlnet[train]'``.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, fft

from nlnet.images import read_image
from nlnet.metrics import psnr
from nlnet.torch import Denoiser

# %%
# The camera moved by 15 pixels, up and to the right, while the shutter was open; then came some
# noise. The blur wraps around at the borders, so that the Fourier transform describes it exactly.
LENGTH, DIRECTION, NOISE = 15, np.deg2rad(-30), 2 / 255


def shake(shape: tuple[int, int]) -> Tensor:
    """Return the weights with which the pixels around a pixel blur into it."""
    way = np.linspace(-LENGTH / 2, LENGTH / 2, 1000)
    rows, columns = np.rint(way * np.sin(DIRECTION)), np.rint(way * np.cos(DIRECTION))
    kernel = np.zeros(shape, np.float32)
    np.add.at(kernel, (rows.astype(int), columns.astype(int)), 1 / len(way))
    return torch.from_numpy(kernel)


pixels = read_image(Path(__file__).with_name("cat.png")).pixels
clean = torch.from_numpy(pixels / np.float32(255)).permute(2, 0, 1).unsqueeze(0)  # (1, 3, H, W)
size = clean.shape[-2:]
blur = fft.rfft2(shake(size))
noise = NOISE * torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
blurred = fft.irfft2(blur * fft.rfft2(clean), size) + noise

# %%
# What there is to be minimised is how far the blurred estimate is from the image given, plus how
# little the estimate looks like an image. Half-quadratic splitting does the two in turns. First
# comes the image that fits what was given and is near the last estimate, by a division of Fourier
# transforms::
#
#     fitted = argmin_x |blur x - given|² / noise² + weight |x - restored|² / sigma²
#
# Then that is made to look like an image, by removing noise of strength sigma from it. The sigmas
# fall to that of the noise: rough shapes first, then details. Nothing is trained for this blur.
WEIGHT, FIRST_SIGMA, STEPS = 0.3, 50 / 255, 8


def fit(near: Tensor, weight: float) -> Tensor:
    """Return the image nearest to `near` and, when blurred, to the image given."""
    numerator = blur.conj() * fft.rfft2(blurred) + weight * fft.rfft2(near)
    return fft.irfft2(numerator / (blur.abs() ** 2 + weight), size)


denoise = Denoiser()
restored = blurred
for sigma in np.geomspace(FIRST_SIGMA, NOISE, STEPS):
    fitted = fit(restored, WEIGHT * (NOISE / sigma) ** 2)
    restored = denoise(fitted, sigma)

# %%
# For comparison a Wiener filter, which expects of images only that neighbouring pixels are alike.
# Of 30 weights it may take the best, which nobody knows who does not have the clean image.
laplacian = torch.zeros(size)
laplacian[0, 0], laplacian[[0, 0, 1, -1], [1, -1, 0, 0]] = 4.0, -1.0
roughness = fft.rfft2(laplacian).real


def wiener(weight: float) -> Tensor:
    """Return the smooth image that is nearest, when blurred, to the image given."""
    denominator = blur.abs() ** 2 + weight * roughness
    return fft.irfft2(blur.conj() * fft.rfft2(blurred) / denominator, size)


def to_pixels(image: Tensor) -> np.ndarray:
    """Return a batch of one as an array (H, W, 3) from 0 to 1."""
    return image[0].permute(1, 2, 0).clamp(0, 1).numpy()


def quality(image: Tensor) -> float:
    """Return the PSNR in dB."""
    return psnr(to_pixels(clean), to_pixels(image), data_range=1)


filtered = max((wiener(weight) for weight in np.geomspace(1e-4, 1, 30)), key=quality)

# %%
# Plug-and-play gains more than 6 dB over the image given, and more than 2 dB over the filter.
shown = {"blurred": blurred, "best Wiener filter": filtered, "plug-and-play": restored}
figure, panels = plt.subplots(1, 3, figsize=(12, 3.1), layout="constrained")
for panel, (title, image) in zip(panels, shown.items(), strict=True):
    panel.imshow(to_pixels(image))
    panel.set_title(f"{title}, {quality(image):.2f} dB")
    panel.set_axis_off()
plt.show()

# %%
# A closer look, with the clean photo beside it.
part = np.s_[70:170, 120:270]
figure, panels = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
for panel, (title, image) in zip(panels.flat, {**shown, "clean": clean}.items(), strict=True):
    panel.imshow(to_pixels(image)[part], interpolation="nearest")
    panel.set_title(title)
    panel.set_axis_off()
plt.show()

# %%
# deepinv has such loops ready-made, for many more kinds of measurements than blur: its
# ``deepinv.optim.PnP(Denoiser())`` takes our denoiser as it is. The page on integrations shows how.
