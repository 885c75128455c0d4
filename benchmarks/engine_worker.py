"""One side of `benchmarks.engine`: measures whichever nlnet is first on its path.

It reads one case a line, as JSON, and answers each with the seconds of one warm call. It uses only
what both sides have: the public names of nlnet, numpy and torch.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIGMA = 25.0


@functools.lru_cache(maxsize=4)
def picture(channels: int, height: int, width: int) -> Any:
    """Return a smooth image with noise, in float32."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    clean = 128 + 60 * np.sin(x / 17) * np.cos(y / 23) + 40 * ((x // 40 + y // 30) % 2)
    shape = (height, width) if channels == 1 else (height, width, channels)
    noise = rng.standard_normal(shape, dtype=np.float32)
    return (clean if channels == 1 else clean[..., np.newaxis]) + np.float32(SIGMA) * noise


def denoising(case: dict[str, Any]) -> Callable[[], object]:
    """Return the call that denoises an image."""
    import nlnet

    model = nlnet.load_model(case["model"])
    image = picture(model.config.channels, *case["size"]).astype(np.float32)
    return lambda: nlnet.denoise(image, SIGMA, model=model, data_range=255, threads=case["threads"])


def training(case: dict[str, Any]) -> Callable[[], object]:
    """Return the call that runs a batch of crops forward and backward."""
    import torch

    import nlnet
    from nlnet.torch import NLNet

    torch.set_num_threads(case["threads"])
    model = nlnet.load_model(case["model"])
    channels, side = model.config.channels, case["size"][0]
    network = NLNet(model.config, model.stages, threads=case["threads"])
    crop = picture(channels, side, side).reshape(side, side, channels)
    noisy = torch.from_numpy(np.stack([np.moveaxis(crop, -1, 0).astype(np.float32)] * 4))
    groups = network.find_groups(network.to_working_planes(noisy))

    def step() -> None:
        network.zero_grad()
        planes = network.to_working_planes(noisy)
        (network.run(planes, planes, groups) - 128).square().mean().backward()

    return step


def main() -> None:
    """Answer until there are no more questions."""
    import nlnet

    print(json.dumps({"path": nlnet.__file__}), flush=True)
    kinds = {"denoise": denoising, "train": training}
    known: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        if line not in known:
            known.clear()  # the images of one case are enough
            case = json.loads(line)
            # Warm; a large image is not needed for that.
            kinds[case["kind"]]({**case, "size": [min(side, 512) for side in case["size"]]})()
            known[line] = kinds[case["kind"]](case)
        start = time.perf_counter()
        known[line]()
        print(json.dumps(time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
