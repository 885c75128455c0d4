"""Denoising of dask arrays, chunk by chunk, on one machine or on a cluster.

It needs dask: ``pip install 'nlnet[dask]'``.
"""

try:
    import dask.array as _  # noqa: F401 - only to tell what is missing
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "nlnet.dask needs dask, which is not installed: pip install 'nlnet[dask]'.", name=error.name
    ) from error

from nlnet.dask.denoising import denoise
from nlnet.dask.estimation import estimate_noise, estimate_sigma

__all__ = ["denoise", "estimate_noise", "estimate_sigma"]
