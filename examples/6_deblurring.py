"""
Plug-and-play deblurring
========================

Use the denoiser inside a reconstruction to make a blurred and noisy photo sharp again. The denoiser
knows what images look like, so no network has to be trained for this blur. It needs the extra
``train``, for torch.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, fft

from nlnet.evaluation.metrics import psnr
from nlnet.images import read_image
from nlnet.torch import Denoiser

# %%
# A camera that shook while the shutter was open averages the photo along a crooked line. (Here it
# wraps around at the image's edges, which keeps the Fourier transform simple.) Then noise of sigma
# 0.01 is added. Batches have the shape (B, C, H, W), and white is 1.
photo = read_image(Path(sys.argv[0]).with_name("cat.png")).pixels
clean = torch.from_numpy(photo).permute(2, 0, 1)[None] / 255.0
size = clean.shape[-2:]
noise_level = 0.01

path = torch.linspace(-1, 1, 200)
places = torch.stack([2.0 * torch.sin(3.0 * path), 6.0 * path]).round().to(torch.int64)
kernel = torch.zeros(size)
kernel.index_put_((places[0], places[1]), torch.tensor(1 / 200), accumulate=True)
transfer = fft.rfft2(kernel)

noise = torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
blurred = fft.irfft2(transfer * fft.rfft2(clean), s=size) + noise_level * noise


def to_pixels(images: Tensor) -> np.ndarray:
    """Return the first image of a batch as matplotlib wants it."""
    return images[0].permute(1, 2, 0).clip(0, 1).numpy()


def quality(images: Tensor) -> float:
    """Return the PSNR in dB."""
    return psnr(to_pixels(clean), to_pixels(images), data_range=1)


# %%
# Half-quadratic splitting alternates between two steps. The first makes the image agree with the
# blurred one, without moving far from the last estimate. With Fourier transforms, that is a
# division:
#
# .. code-block:: text
#
#     argmin_x |blur x - blurred|² / noise_level² + |x - estimate|² / (4 sigma²)
#
# The second step makes it look like an image, which is what a denoiser does. Its sigma starts large
# and falls to that of the noise: first rough shapes, then details.
denoiser = Denoiser()
estimate = blurred
for sigma in np.geomspace(0.2, noise_level, 8):
    weight = 0.25 * (noise_level / sigma) ** 2
    spectrum = transfer.conj() * fft.rfft2(blurred) + weight * fft.rfft2(estimate)
    agreeing = fft.irfft2(spectrum / (transfer.abs() ** 2 + weight), s=size)
    estimate = denoiser(agreeing, sigma)
    print(f"sigma {sigma:.3f}: {quality(estimate):.2f} dB")

# %%
# For comparison, a Wiener filter, which only assumes that neighboring pixels are similar. It gets
# the best of 30 weights, chosen with the help of the clean photo; in practice nobody could do
# that.
laplacian = torch.zeros(size)
laplacian[0, 0] = 4.0
laplacian[[0, 0, 1, -1], [1, -1, 0, 0]] = -1.0
roughness = fft.rfft2(laplacian).real


def wiener(weight: float) -> Tensor:
    """Return the image that agrees with the blurred one and is smooth."""
    spectrum = transfer.conj() * fft.rfft2(blurred)
    image: Tensor = fft.irfft2(spectrum / (transfer.abs() ** 2 + weight * roughness), s=size)
    return image


filtered = max((wiener(weight) for weight in np.geomspace(1e-4, 1, 30)), key=quality)

# %%
# The result gains more than 6 dB over the blurred photo, and more than 2 dB over the Wiener filter.
part = np.s_[50:200, 90:315]
shown = {
    f"blurred, {quality(blurred):.2f} dB": blurred,
    f"Wiener filter, {quality(filtered):.2f} dB": filtered,
    f"plug-and-play, {quality(estimate):.2f} dB": estimate,
    "original": clean,
}
figure, panels = plt.subplots(2, 2, figsize=(9, 6.4), layout="constrained")
for panel, (title, image) in zip(panels.flat, shown.items(), strict=True):
    panel.imshow(to_pixels(image)[part], interpolation="nearest")
    panel.set_title(title)
    panel.set_axis_off()
inset = panels[0, 0].inset_axes((0.02, 0.68, 0.2, 0.3))
inset.imshow(fft.fftshift(kernel)[140:161, 215:236].numpy(), cmap="gray")
inset.set_xticks([])
inset.set_yticks([])
plt.show()

# %%
# deepinv has such loops ready-made, for many more kinds of measurements than blur, and its
# ``deepinv.optim.PnP(Denoiser())`` takes this denoiser. See :doc:`/integrations`.
