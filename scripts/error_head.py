"""Train the head of the error maps from nothing: ``python -m scripts.error_head PHOTOS``.

Draws pieces of photos, adds noise of every kind, denoises them, and fits a network of dense layers
to the errors, by the pinball loss of their logarithm: 68 % are to lie below what it says. PHOTOS is
the folder of photos under open terms (``train/`` and ``val/``). Minutes on one core; writes
``src/nlnet/denoising/error_head.safetensors``.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from safetensors.numpy import save
from torch import nn
from tqdm import tqdm

from nlnet.arrays import Array
from nlnet.atomic import write_atomically
from nlnet.denoising import error_maps
from nlnet.denoising.network import Network
from nlnet.denoising.page import denoise_planes, plan_page
from nlnet.denoising.plan import Request
from nlnet.inputs import to_planes
from nlnet.masks import read_planes
from nlnet.noise.record import Noise
from nlnet.progress import ignore
from nlnet.training.simulation.recipes import draw_recipe
from nlnet.training.simulation.scenes import Photos

OUTPUT = Path(__file__).parents[1] / "src" / "nlnet" / "denoising" / "error_head.safetensors"
KINDS = (("white", 0.4), ("photons", 0.3), ("camera", 0.25), ("flat", 0.05))
QUALITIES = ("fast", "best")
SHARE = math.erf(math.sqrt(0.5))  # of a normal error within its standard deviation
GRAIN = 0.4
SIDE, PER_CASE, HIDDEN, BATCH = 192, 3000, 16, 8192


class Case(NamedTuple):
    """A noisy picture, the truth, and what is said about its noise."""

    kind: str
    noisy: Array
    truth: Array
    noise: Noise | None
    quality: str


def draw_case(
    photos: Photos, kind: str, rng: np.random.Generator, side: int = SIDE, grain: float = GRAIN
) -> Case:
    """Draw a case of a kind: on the scale of 255, in float32, gray in half of the cases.

    `grain` is the share of photos that get some grain of their own, as those have that were not
    made smaller.
    """
    quality = str(rng.choice(QUALITIES))
    if kind == "camera":
        recipe = draw_recipe(photos, side, rng, kinds=(("grain", 0.35), ("camera", 0.65)))
        noisy = recipe.render(int(rng.integers(1 << 30))).astype(np.float32)
        # What mosaic and encoder do to the picture is no noise.
        return Case(kind, noisy, recipe.render(None).astype(np.float32), None, quality)
    truth = photos.piece(side, side, rng).astype(np.float32)
    if rng.random() < grain:
        sigma = 0.3 * 7 ** rng.random()
        truth = np.clip(truth + sigma * rng.standard_normal(truth.shape), 0, 255)
    if kind == "flat":
        truth = np.ones_like(truth) * rng.uniform(20, 235, 3).astype(np.float32)
    if rng.random() < 0.5:
        truth = truth.mean(axis=2)
    noise: Noise = Noise.white(2 * 40 ** rng.random())
    if kind == "photons":
        gain = 255 / (3 * 1000 ** rng.random())
        noise = Noise.poisson(gain, rng.choice([0.0, 1.0]) * gain * rng.uniform(0, 4))
    return Case(kind, with_noise(truth, noise, rng), truth, noise, quality)


def with_noise(truth: Array, noise: Noise, rng: np.random.Generator) -> Array:
    """Return the picture with white or photon noise, in float32."""
    level = noise.levels[0]
    gain, read = getattr(level, "gain", 0.0), getattr(level, "read", 0.0)
    light = gain * rng.poisson(truth / gain) if gain else truth
    return np.asarray(light + read * rng.standard_normal(truth.shape), np.float32)


def examples(case: Case, rng: np.random.Generator) -> tuple[Array, Array] | None:
    """Return features, (N, F), and errors of 2x2 pixels each, (N, 4); None without noise."""
    page = read_planes(case.noisy, None, None)
    plan, _ = plan_page(page, None, Request(case.noise, 255.0))
    if plan.idle:
        return None
    network = Network.of("auto", len(page.planes), case.quality, None, None, "cpu")
    restored, _ = denoise_planes(page.planes, plan, network, ignore)
    sigmas = error_maps.sigmas_of(plan.noise, restored, None)
    found = error_maps.features(page.planes, restored, sigmas, plan, refined=network.is_refined)
    truth = to_planes(case.truth, None if case.truth.ndim == 2 else -1)
    _, channels, height, width = found.shape
    errors = ((restored - truth) / sigmas).reshape(channels, height, 2, width, 2)
    chosen = rng.permutation(channels * height * width)[:PER_CASE]
    return (
        found.reshape(len(found), -1).T[chosen],
        errors.transpose(0, 1, 3, 2, 4).reshape(-1, 4)[chosen],
    )


def draw(photos: Photos, count: int, seed: int) -> Iterator[tuple[Array, Array]]:
    """Yield the examples of so many cases."""
    kinds, shares = [kind for kind, _ in KINDS], [share for _, share in KINDS]
    for number in tqdm(range(count), desc="cases"):
        rng = np.random.default_rng((seed, number))
        got = examples(draw_case(photos, str(rng.choice(kinds, p=shares)), rng), rng)
        if got is not None:
            yield got


def fit(found: Array, errors: Array, steps: int) -> list[tuple[Array, Array]]:
    """Return weights and biases of the layers, for features as they are."""
    torch.manual_seed(0)
    logs = torch.from_numpy(np.log(np.abs(errors) + 1e-4))
    mean, deviation = found.mean(axis=0), found.std(axis=0) + 1e-6
    inputs = torch.from_numpy((found - mean) / deviation)
    sizes = (inputs.shape[1], HIDDEN, HIDDEN, 1)
    layers = [nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
    net = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in tqdm(range(steps), desc="steps"):
        chosen = torch.randint(len(inputs), (BATCH,))
        above = logs[chosen] - net(inputs[chosen])
        loss = torch.maximum(SHARE * above, (SHARE - 1) * above).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    arrays = [(each.weight.detach().numpy(), each.bias.detach().numpy()) for each in layers]
    first = arrays[0][0] / deviation
    return [(first, arrays[0][1] - first @ mean), *arrays[1:]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, fit and write."""
    parser = argparse.ArgumentParser(prog="python -m scripts.error_head", description=__doc__)
    parser.add_argument("photos", type=Path, metavar="PHOTOS")
    parser.add_argument("--cases", type=int, default=800)
    parser.add_argument("--steps", type=int, default=4000)
    options = parser.parse_args(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        drawn = list(draw(Photos(options.photos / "train"), options.cases, 0))
    found, errors = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
    tensors = {}
    for number, (weights, biases) in enumerate(fit(found, errors, options.steps)):
        tensors[f"{number}.weights"] = weights.astype(np.float32)
        tensors[f"{number}.biases"] = biases.astype(np.float32)
    write_atomically(OUTPUT, save(tensors))
    return 0


if __name__ == "__main__":
    sys.exit(main())
