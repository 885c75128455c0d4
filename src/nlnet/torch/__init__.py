"""The same network as a torch module, for training, other devices and reconstruction loops.

It needs torch: ``pip install 'nlnet[train]'``.
"""

from nlnet.torch.denoiser import Denoiser
from nlnet.torch.module import NLNet

__all__ = ["Denoiser", "NLNet"]
