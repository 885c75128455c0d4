"""The denoiser inside deepinv, where deepinv can be imported."""

from __future__ import annotations

import warnings
from types import ModuleType

import numpy as np
import pytest
from paths import PROJECT

from nlnet.images import read_image

torch = pytest.importorskip("torch")
from nlnet.torch import Denoiser  # noqa: E402

NOISE = 0.01
STEPS = 8


@pytest.fixture(scope="module")
def deepinv() -> ModuleType:
    """Import deepinv; its warnings are its own."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import deepinv
    # A torchvision built for another torch, as PyPI's is beside a CPU build, raises RuntimeError.
    except (ImportError, OSError, RuntimeError) as error:
        pytest.skip(f"deepinv cannot be imported: {error}")
    return deepinv


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("channels", [1, 3])
def test_plug_and_play_deblurring(deepinv: ModuleType, channels: int) -> None:
    photo = read_image(PROJECT / "examples" / "cat.png").pixels[60:156, 100:196, :channels]
    clean = torch.from_numpy(photo / np.float32(255)).permute(2, 0, 1).unsqueeze(0)
    physics = deepinv.physics.BlurFFT(
        img_size=clean.shape[1:],
        filter=deepinv.physics.functional.blur.gaussian_blur(sigma=1.6),
        noise_model=deepinv.physics.GaussianNoise(NOISE, rng=torch.Generator().manual_seed(0)),
    )
    blurred = physics(clean)
    sigmas = np.geomspace(0.2, NOISE, STEPS)
    restore = deepinv.optim.optim_builder(
        "HQS",
        prior=deepinv.optim.PnP(Denoiser()),
        data_fidelity=deepinv.optim.L2(),
        max_iter=STEPS,
        params_algo={"g_param": sigmas.tolist(), "stepsize": (4 * (sigmas / NOISE) ** 2).tolist()},
    )
    with torch.no_grad():
        restored = restore(blurred, physics)
    psnr = deepinv.metric.PSNR()
    assert float(psnr(restored, clean)) > float(psnr(blurred, clean)) + 1.5


@pytest.mark.filterwarnings("ignore")
def test_a_loop_that_differentiates(deepinv: ModuleType) -> None:
    """Unfolded networks go backward through the denoiser to what comes before it."""
    batch = torch.rand(2, 1, 16, 16, generator=torch.Generator().manual_seed(0)).requires_grad_()
    prior = deepinv.optim.PnP(Denoiser())
    prior.prox(batch, torch.tensor([0.1, 0.05])).square().sum().backward()
    assert bool(batch.grad.abs().amax(dim=(1, 2, 3)).min() > 0)
