"""The peers: what people use today, at the settings that suit them best.

Where a peer has a strength to choose, the benchmark tries the multiples of sigma in `FACTORS` on
the first image and takes the one with the best PSNR. OpenCV takes 8-bit images only: it gets the
noisy image rounded and clipped. The search window and patches of non-local means are nlnet's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.methods import Method
from nlnet.arrays import Array

PATCH = 5
WINDOW = 31
FACTORS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2)
SLOW = 0.2
MEDIUM = 3.0
"""Megapixels that are enough for the slow ones, and for those that take many passes."""


def make_bm3d(kind: str, sigma: float) -> Method:
    """Return BM3D (Dabov et al. 2007) or CBM3D, from the authors' package."""
    import bm3d  # type: ignore[import-untyped]

    function = bm3d.bm3d if kind == "gray" else bm3d.bm3d_rgb
    return Method(
        name="bm3d",
        kind=kind,
        call=lambda noisy, strength, threads: function(noisy, strength),
        strengths=[sigma],
        largest=SLOW,
        pinned=True,
        note="takes all CPUs it may use; one thread means one CPU",
    )


def make_opencv(kind: str, sigma: float) -> Method:
    """Return OpenCV's fast non-local means."""
    import cv2

    def gray(noisy: Any, h: float, threads: int) -> Any:
        return cv2.fastNlMeansDenoising(noisy, None, h, PATCH, WINDOW)

    def color(noisy: Any, h: float, threads: int) -> Any:
        return cv2.fastNlMeansDenoisingColored(noisy, None, h, h, PATCH, WINDOW)

    return Method(
        name="OpenCV NLM",
        kind=kind,
        call=gray if kind == "gray" else color,
        strengths=[factor * sigma for factor in FACTORS],
        prepare=_to_opencv,
        finish=_swap_channels,
        largest=MEDIUM,
        note="8-bit input; a stripe for each 131,072 pixels, so one thread on small images",
    )


def make_nl_means(kind: str, sigma: float) -> Method:
    """Return scikit-image's non-local means, fast mode."""
    from skimage.restoration import denoise_nl_means

    def call(noisy: Any, h: float, threads: int) -> Any:
        return denoise_nl_means(
            noisy,
            patch_size=PATCH,
            patch_distance=WINDOW // 2,
            h=h,
            sigma=sigma / 255,
            fast_mode=True,
            channel_axis=_channel_axis(kind),
        )

    return _skimage_method("scikit-image NLM", kind, call, sigma, FACTORS, largest=SLOW)


def make_wavelet(kind: str, sigma: float) -> Method:
    """Return scikit-image's wavelet shrinkage (BayesShrink); its strength is the noise itself."""
    from skimage.restoration import denoise_wavelet

    def call(noisy: Any, strength: float, threads: int) -> Any:
        return denoise_wavelet(
            noisy,
            sigma=strength,
            channel_axis=_channel_axis(kind),
            convert2ycbcr=kind == "color",
            rescale_sigma=True,
        )

    return _skimage_method("scikit-image wavelet", kind, call, sigma, (1.0,))


def make_tv(kind: str, sigma: float) -> Method:
    """Return scikit-image's total variation by Chambolle's algorithm."""
    from skimage import restoration

    chambolle: Any = restoration.denoise_tv_chambolle

    def call(noisy: Any, weight: float, threads: int) -> Any:
        return chambolle(noisy, weight=weight, channel_axis=_channel_axis(kind))

    return _skimage_method("scikit-image TV", kind, call, sigma, FACTORS, largest=MEDIUM)


def make_dncnn_method(kind: str, sigma: float) -> Method:
    """Return the architecture of DnCNN in torch."""
    from benchmarks.convolutional import DNCNN_DEPTHS, make_dncnn, to_tensor

    channels = 1 if kind == "gray" else 3
    name = f"DnCNN-{DNCNN_DEPTHS[channels]} torch"
    return _torch_method(name, kind, make_dncnn(channels), to_tensor, sigma)


def make_ffdnet_method(kind: str, sigma: float) -> Method:
    """Return the architecture of FFDNet in torch."""
    from benchmarks.convolutional import make_ffdnet, to_even_tensor

    network = make_ffdnet(1 if kind == "gray" else 3, sigma)
    return _torch_method("FFDNet torch", kind, network, to_even_tensor, sigma)


def _torch_method(
    name: str,
    kind: str,
    network: Callable[[Any], Any],
    prepare: Callable[[Array], Any],
    sigma: float,
) -> Method:
    """Return an architecture with random weights as a method, for its time."""
    return Method(
        name=name,
        kind=kind,
        call=lambda noisy, strength, threads: network(noisy),
        strengths=[sigma],
        prepare=prepare,
        quality=False,
        largest=SLOW,
        note="random weights: time only",
    )


def _skimage_method(
    name: str,
    kind: str,
    call: Callable[[Any, float, int], Any],
    sigma: float,
    factors: tuple[float, ...],
    largest: float = float("inf"),
) -> Method:
    return Method(
        name=name,
        kind=kind,
        call=call,
        strengths=[factor * sigma / 255 for factor in factors],
        prepare=lambda noisy: noisy / np.float32(255),
        finish=lambda output: 255 * output,
        largest=largest,
    )


def _channel_axis(kind: str) -> int | None:
    return None if kind == "gray" else -1


def _to_opencv(noisy: Array) -> Array:
    return _swap_channels(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))


def _swap_channels(image: Array) -> Array:
    """OpenCV's color images are BGR."""
    return image if image.ndim == 2 else np.ascontiguousarray(image[..., ::-1])
