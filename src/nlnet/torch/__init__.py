"""The same network as a torch module, for training and for other devices (extra ``train``)."""

from nlnet.torch.module import NLNet

__all__ = ["NLNet"]
