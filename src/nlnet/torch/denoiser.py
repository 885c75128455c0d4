"""The denoiser as reconstruction loops want it: ``denoiser(x, sigma)`` on batches from 0 to 1."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

import nlnet
from nlnet.errors import InputError
from nlnet.inputs import KINDS
from nlnet.model.loading import AUTO, ModelLike, check_quality, choose_model
from nlnet.torch.module import NLNet

_NO_NOISE = float(np.finfo(np.float32).eps)
"""A sigma that float32 cannot tell from none."""
_LARGEST = 1e6
"""Beyond this values are no image any more: a loop that uses the denoiser has diverged."""


class Denoiser(nn.Module):
    """The shipped networks, or one of your own, behind deepinv's interface for denoisers.

    It drops into plug-and-play loops: those of deepinv (``deepinv.optim.PnP(Denoiser())``), or
    your own. Gray and color, and noise of any strength: as :func:`nlnet.denoise`, it takes the
    model trained nearest to sigma, and scales the image so that its noise is just that.

    Parameters
    ----------
    model : str, path or Model, optional
        As for :func:`nlnet.denoise`; by default the one that fits the images and the quality.
    quality : {"fast", "best"}, optional
        Which model to take, if none is named; "fast" by default.
    clip : bool, optional
        Keep the estimate in [0, 1].
    threads : int, optional
        Number of threads on the CPU; by default all that the process may use.

    Notes
    -----
    Without gradients it runs the engine on the CPU; images on other devices stay there, and go
    through plain torch operations, in tiles if they are large. With gradients the estimate is
    differentiable in `x`, as often as you like; the patches that are grouped are taken as given
    (which ones they are is piecewise constant), and so is `sigma`. The weights are fixed and no
    parameters of the module: to train them there is `nlnet train`, and :class:`NLNet`.

    Examples
    --------
    >>> noise = 0.1 * torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    >>> denoiser = Denoiser()
    >>> denoised = denoiser(0.5 + noise, 0.1)
    >>> denoised.shape
    torch.Size([2, 3, 32, 32])
    >>> bool(denoised.std() < noise.std() / 4)
    True

    Each image may have a sigma of its own:

    >>> denoised = denoiser(0.5 + noise, torch.tensor([0.1, 0.05]))
    """

    def __init__(
        self,
        model: ModelLike = AUTO,
        *,
        quality: str | None = None,
        clip: bool = True,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        check_quality(quality, model)
        self.model = model
        self.quality = quality
        self.clip = clip
        self.threads = threads

    def forward(self, x: Tensor, sigma: float | Tensor | Sequence[float]) -> Tensor:
        """Denoise a batch of images.

        Parameters
        ----------
        x : Tensor
            (B, C, H, W), floating, C 1 for gray or 3 for RGB; black is 0 and white is 1, and
            values may lie beyond, as noisy ones do. It is computed in float32.
        sigma : float, Tensor or sequence of floats
            Standard deviation of the noise in the same units, from 0 to 1: one number, or one per
            image. With sigma 0 an image is returned unchanged.

        Returns
        -------
        Tensor
            Of the shape, dtype and device of `x`.

        Raises
        ------
        InputError
            If the batch or sigma cannot be used.
        """
        _check_batch(x)
        sigmas = _sigma_per_image(sigma, len(x))
        differentiable = x.requires_grad and torch.is_grad_enabled()
        run = self._run_network if differentiable or x.device.type != "cpu" else self._run_engine
        images = [
            image if level <= _NO_NOISE else run(image.to(torch.float32), level).to(x.dtype)
            for image, level in zip(x, sigmas, strict=True)
        ]
        return torch.stack(images) if images else x.clone()

    def _run_engine(self, image: Tensor, sigma: float) -> Tensor:
        """Denoise one image, (C, H, W) in float32, on the CPU and without gradients."""
        denoised = nlnet.denoise(
            image.detach().numpy(),
            sigma,
            model=self.model,
            quality=self.quality,
            channel_axis=0,
            clip=self.clip,
            threads=self.threads,
        )
        return torch.from_numpy(denoised)

    def _run_network(self, image: Tensor, sigma: float) -> Tensor:
        """Denoise one image, (C, H, W) in float32, on any device, differentiably."""
        model = choose_model(self.model, len(image), 255 * sigma, self.quality)
        # As in nlnet.denoise: the image's noise becomes that of the training, the box follows.
        scale = model.sigma / sigma
        box = (0.0, scale) if self.clip else None
        network = NLNet.from_model(model, box=box, threads=self.threads)
        network.requires_grad_(False).to(image.device)
        denoised: Tensor = network(scale * image.unsqueeze(0))[0]
        return denoised / scale


def _check_batch(x: Tensor) -> None:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise InputError(f"The batch is of {kind}, but must be a tensor of a floating dtype.")
    if x.ndim != 4 or x.shape[1] not in KINDS:
        raise InputError(
            f"The batch has shape {tuple(x.shape)}, but must be (B, C, H, W) "
            "with 1 channel (gray) or 3 (RGB)."
        )
    if not bool((x.detach().abs() <= _LARGEST).all()):  # so that NaN does not pass
        raise InputError(
            f"The batch has values that are NaN or beyond {_LARGEST:g}, but white is 1."
        )


def _sigma_per_image(sigma: float | Tensor | Sequence[float], count: int) -> list[float]:
    """Return sigma as one number per image; tensors may have more axes, such as (B, 1, 1, 1)."""
    try:
        values: list[float] = torch.as_tensor(sigma).detach().double().flatten().tolist()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"sigma is {sigma!r}, but must be a number, or one per image.") from error
    if len(values) not in (1, count):
        raise InputError(
            f"sigma has {len(values)} values, but must be one number, or one for each of "
            f"the {count} images."
        )
    for value in values:
        if not 0 <= value <= 1:
            raise InputError(f"sigma is {value:g}, but must be from 0 to 1.")
    return values if len(values) == count else values * count
