"""
Plug-and-play deblurring
========================

Use the denoiser inside a reconstruction: a blurred and noisy photo gets sharp again.

Half-quadratic splitting takes turns. One step makes the image agree with the blurred one, the other
makes it look like an image, and that is what a denoiser does. No network was trained for this blur.
It needs the extra ``train``, for torch; with deepinv, ``deepinv.optim.PnP(Denoiser())`` takes the
same denoiser.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from nlnet.images import read_image
from nlnet.metrics import psnr
from nlnet.torch import Denoiser

# %%
# A camera that shook while the shutter was open: the photo is averaged along a crooked line (round
# the image's edges, which keeps the Fourier transform simple). Then noise of sigma 0.01 is added.
# Batches are (B, C, H, W), with white at 1.
photo = read_image(Path(sys.argv[0]).with_name("cat.png")).pixels
clean = torch.from_numpy(photo).permute(2, 0, 1)[None] / 255.0
noise_level = 0.01

path = torch.linspace(-1, 1, 200)
places = torch.stack([2.0 * torch.sin(3.0 * path), 6.0 * path]).round().to(torch.int64)
kernel = torch.zeros(clean.shape[-2:])
kernel.index_put_((places[0], places[1]), torch.tensor(1 / 200), accumulate=True)
transfer = torch.fft.rfft2(kernel)


def blur(images: torch.Tensor) -> torch.Tensor:
    """Convolve with the kernel, by way of the Fourier transform."""
    return torch.fft.irfft2(transfer * torch.fft.rfft2(images), s=images.shape[-2:])


noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
blurred = blur(clean) + noise_level * noise

# %%
# The loop. The denoiser's sigma falls from strong to that of the noise; the weaker it is, the more
# the data step trusts the image that comes from it.
denoiser = Denoiser()
estimate = blurred
history = []
for sigma in np.geomspace(0.15, noise_level, 8):
    weight = 0.25 * (noise_level / sigma) ** 2
    spectrum = transfer.conj() * torch.fft.rfft2(blurred) + weight * torch.fft.rfft2(estimate)
    agreeing = torch.fft.irfft2(spectrum / (transfer.abs() ** 2 + weight), s=clean.shape[-2:])
    estimate = denoiser(agreeing, sigma)
    history.append(psnr(clean.numpy(), estimate.numpy(), data_range=1))
    print(f"sigma {sigma:.3f}: {history[-1]:.2f} dB")

# %%
# What it gained:
before = psnr(clean.numpy(), blurred.clip(0, 1).numpy(), data_range=1)
print(f"{before:.2f} dB blurred, {history[-1]:.2f} dB deblurred: {history[-1] - before:+.2f} dB")


def to_pixels(images: torch.Tensor) -> np.ndarray:
    """Return the first image of a batch as matplotlib wants it."""
    return images[0].permute(1, 2, 0).clip(0, 1).numpy()


part = np.s_[50:200, 90:315]
shown = {
    f"blurred, {before:.2f} dB": to_pixels(blurred),
    f"deblurred, {history[-1]:.2f} dB": to_pixels(estimate),
    "original": to_pixels(clean),
}
figure, panels = plt.subplots(1, 3, figsize=(12, 3.0), layout="constrained")
for panel, (title, image) in zip(panels, shown.items(), strict=True):
    panel.imshow(image[part], interpolation="nearest")
    panel.set_title(title)
    panel.set_axis_off()
shape = torch.fft.fftshift(kernel)[140:161, 215:236].numpy()
inset = panels[0].inset_axes((0.02, 0.68, 0.2, 0.3))
inset.imshow(shape, cmap="gray")
inset.set_xticks([])
inset.set_yticks([])
plt.show()
