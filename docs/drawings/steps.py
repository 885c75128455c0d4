"""The estimate after every stage."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure

from drawings.photo import Photo
from nlnet.evaluation.metrics import psnr
from nlnet.model.model import Model
from nlnet.torch import NLNet

_PART = (90, 60, 150, 120)
"""Left, top, width and height of what is shown."""


def draw_steps(photo: Photo, model: Model) -> Figure:
    """Draw the noisy image and what each stage makes of it, with their PSNR."""
    names = ["noisy", *(f"after stage {number}" for number in range(1, model.config.stages + 1))]
    left, top, width, height = _PART
    figure = Figure(figsize=(11, 6.4), layout="constrained")
    panels = figure.subplots(2, len(names) // 2).ravel()
    for panel, name, image in zip(panels, names, estimates(photo.noisy, model), strict=True):
        quality = psnr(photo.clean, np.clip(image, 0, 255))
        shown = image[top : top + height, left : left + width]
        panel.imshow(shown, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        panel.set_title(f"{name}: {quality:.2f} dB", fontsize=11)
        panel.set_axis_off()
    return figure


def estimates(noisy: np.ndarray, model: Model) -> list[np.ndarray]:
    """Return the noisy image and the output of each stage."""
    network = NLNet.from_model(model)
    images = torch.from_numpy(noisy)[None, None]
    with torch.no_grad():
        groups = network.find_groups(images)
        outputs = [images]
        for stage in range(model.config.stages):
            outputs.append(network.run(outputs[-1], images, groups, stage, stage + 1))
    return [output[0, 0].numpy() for output in outputs]
