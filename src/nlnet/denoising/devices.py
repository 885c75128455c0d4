"""Denoising on a GPU: the torch network. Torch is loaded when such a device is asked for."""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nlnet.arrays import Box
from nlnet.errors import InputError
from nlnet.model.model import Model

if TYPE_CHECKING:
    import torch

CPU = "cpu"
_OTHERS = ("cuda", "mps", "xpu")


def check_device(name: str) -> None:
    """Raise InputError if the device, or torch where it is needed, is missing."""
    if name != CPU:
        _find_device(name)


def denoise_on_device(
    noisy: npt.NDArray[np.float32], model: Model, device: str, box: Box | None
) -> npt.NDArray[np.float32]:
    """Denoise (C, H, W) planes, whose noise is that of the model, on a device of torch.

    Raises
    ------
    InputError
        If there is no torch, no such device, or not enough memory on it.
    """
    target = _find_device(device)
    import torch

    from nlnet.torch import NLNet

    try:
        network = NLNet.from_model(model, box=box, backend="plain").to(target)
        with torch.inference_mode():
            images = torch.from_numpy(noisy).to(target)
            return np.asarray(network(images.unsqueeze(0))[0].cpu())
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"The device {device!r} has too little memory for an image of "
            f"{noisy.shape[2]}x{noisy.shape[1]} pixels; the CPU takes images of any size."
        ) from error


def _find_device(name: str) -> "torch.device":
    if not isinstance(name, str) or name.split(":")[0] not in _OTHERS:
        raise InputError(f"device is {name!r}, but must be one of {CPU}, {', '.join(_OTHERS)}.")
    try:
        return torch_device(name)
    except ImportError as error:
        raise InputError(
            f"The device {name!r} needs torch, which is not installed: pip install 'nlnet[train]'."
        ) from error


def torch_device(name: str) -> "torch.device":
    """Return a device of torch, if it is there.

    Raises
    ------
    ImportError
        If torch is not installed.
    InputError
        If torch does not know the device, or cannot use it.
    """
    import torch

    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (AssertionError, NotImplementedError, RuntimeError) as error:  # all of these happen
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise InputError(f"The device {name!r} cannot be used: {reason}.") from error
    return device
