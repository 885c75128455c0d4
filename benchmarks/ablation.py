"""Ingredients beyond the paper: ``python -m benchmarks.ablation``.

Trains networks for sigma 25 that differ in one ingredient at a time, in plain torch: the same
crops, seed, steps and rate for all, and the same validation images. Nothing here is shipped; it
tells which ingredients are worth code in the engine. A stage takes half a minute on one core, one
for color a minute or two; rows that are measured already are kept, unless `--again` is given.
``docs/results/ablation.json`` has the results, and ``python -m scripts.ablation`` makes a table of
them.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.gated_stage import Gated, Ingredients, Pointwise
from benchmarks.pictures import PROJECT, require_data
from benchmarks.rows import add_options, measure_rows
from nlnet.evaluation.datasets import checkout_commit
from nlnet.network import color
from nlnet.network.config import NetworkConfig
from nlnet.torch.plain import flat_members, transform
from nlnet.training.data import Batch, CropSource
from nlnet.training.loss import negative_psnr
from nlnet.training.pictures import load_pictures
from nlnet.training.settings import DataSettings, TrainingSettings

RESULTS = PROJECT / "docs" / "results" / "ablation.json"
SIGMA = 25.0
SEED = 1
_FEW = ("group_weights", "step_sizes")
CROP, BATCH = 96, 6
VALIDATION_IMAGES = 8
_GAINS = Ingredients(energies=("own", "group"))
_COLOR = dataclasses.replace(_GAINS, channels=3)

_LENGTHS = np.linalg.norm(color.OPPONENT, axis=1)
_OPPONENT = color.OPPONENT / _LENGTHS[:, np.newaxis]
"""Colors are turned only, not scaled, so that all planes have the same noise."""

ROWS: dict[str, Ingredients] = {
    "psi of one filter (the paper's, without groups)": Ingredients(),
    "psi, weighted sums over the group (the paper)": Ingredients(sums=True),
    "gains from the energies of the own patch": Ingredients(energies=("own",)),
    "gains from the energies of the own patch, 96 hidden": Ingredients(("own",), hidden=96),
    "gains from the energies of the group, each filter by itself": Ingredients(
        ("group",), hidden=0
    ),
    "gains from the energies of patch and group": _GAINS,
    "... and weighted sums over the group": dataclasses.replace(_GAINS, sums=True),
    "... K = 16": dataclasses.replace(_GAINS, group_size=16),
    "... 7x7": dataclasses.replace(_GAINS, patch_size=7),
    "... twice as many filters": dataclasses.replace(_GAINS, frames=2),
    "... two averages of each group": Ingredients(("own", "group", "nearest")),
    "... averages weighted by distance": dataclasses.replace(_GAINS, distances=True),
    "... overlapping patches weighted by sparsity": dataclasses.replace(_GAINS, sparsity=True),
    "... and energies at half the size": Ingredients(("own", "group", "half")),
    "... 5 stages": dataclasses.replace(_GAINS, stages=5),
    "... 8 stages": dataclasses.replace(_GAINS, stages=8),
    "... 10 stages": dataclasses.replace(_GAINS, stages=10),
    "color: psi of one filter": Ingredients(channels=3),
    "color: psi, 7x7": Ingredients(channels=3, patch_size=7),
    "color: psi, filters across the colors": Ingredients(channels=3, across=True),
    "color: gains from the energies of patch and group": _COLOR,
    "color: gains, 7x7": dataclasses.replace(_COLOR, patch_size=7),
    "color: gains, filters across the colors": dataclasses.replace(_COLOR, across=True),
}


class Network(nn.Module):
    """Stages in a row, from x = y on: ``x <- P((1 - gamma) x + gamma y - removed(x))``."""

    def __init__(self, made_of: Ingredients) -> None:
        super().__init__()
        kind = Gated if made_of.energies else Pointwise
        self.stages = nn.ModuleList(kind(made_of) for _ in range(made_of.stages))
        self.step_sizes = nn.Parameter(torch.full((made_of.stages - 1,), 0.1))  # x is y at first

    def forward(self, batch: Batch) -> Tensor:
        """Return the estimates of a batch, (B, C, H, W), gray or RGB."""
        members = flat_members(batch.groups)
        estimate = noisy = batch.noisy
        if noisy.shape[1] == 3:
            estimate = noisy = transform(noisy, np.diag(1 / _LENGTHS))
        for stage, step_size in zip(self.stages, (0.0, *self.step_sizes), strict=True):
            planes = estimate + step_size * (noisy - estimate) - stage(estimate, members)
            image = _to_image(planes).clamp(0, 255)  # the box of the paper's projection
            estimate = _to_planes(image)
        return image


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, validate, and write a result per row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    parser.add_argument("--steps", type=int, default=150, help="for each row (default: 150)")
    add_options(parser)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    data = require_data()

    def measure(name: str) -> dict[str, Any]:
        ingredients = ROWS[name]
        settings = _settings(ingredients)
        pictures = load_pictures(data / "bsds500", settings)
        torch.manual_seed(SEED)
        network = Network(ingredients)
        crops = CropSource(pictures, settings, threads=1)
        train(network, crops, options.steps, name)
        return {
            "parameters": sum(values.numel() for values in network.parameters()),
            "seed": SEED,
            "steps": options.steps,
            "megapixels": round(options.steps * BATCH * CROP**2 / 1e6, 1),
            "validation_psnr": round(validate(network, crops), 3),
            "commit": checkout_commit(),
        }

    measure_rows(RESULTS, ROWS, options, measure)
    return 0


def train(network: Network, crops: CropSource, steps: int, name: str) -> None:
    """Take steps of Adam whose rate decays along a cosine."""
    torch.manual_seed(SEED)
    few = [value for key, value in network.named_parameters() if key.endswith(_FEW)]
    rest = [value for key, value in network.named_parameters() if not key.endswith(_FEW)]
    # A weight of a group acts on all its patches, twice; a step size on all that is noise.
    groups = [{"params": rest, "share": 1.0}, {"params": few, "share": 0.1}]
    optimizer = torch.optim.Adam([group for group in groups if group["params"]], betas=(0.9, 0.99))
    for step in range(steps):
        for group in optimizer.param_groups:
            decay = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps))
            group["lr"] = 0.01 * decay * group["share"]
        batch = crops.draw(step + 1, 0, range(step * BATCH, (step + 1) * BATCH))
        loss = negative_psnr(network(batch), batch.clean).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
        if sys.stderr.isatty():
            print(f"\r{name}: step {step + 1} of {steps}", end="", file=sys.stderr)


def _to_image(planes: Tensor) -> Tensor:
    return planes if planes.shape[1] == 1 else transform(planes, _OPPONENT.T)


def _to_planes(image: Tensor) -> Tensor:
    return image if image.shape[1] == 1 else transform(image, _OPPONENT)


def validate(network: Network, crops: CropSource) -> float:
    """Return the mean PSNR on the first validation images."""
    scores = []
    with torch.no_grad():
        for number in range(VALIDATION_IMAGES):
            batch = crops.validation_batch(number, SIGMA)
            scores.append(-float(negative_psnr(network(batch), batch.clean)))
    return sum(scores) / len(scores)


def _settings(ingredients: Ingredients) -> TrainingSettings:
    config = NetworkConfig(
        stages=ingredients.stages,
        channels=ingredients.channels,
        patch_size=ingredients.patch_size,
        group_size=ingredients.group_size,
    )
    return TrainingSettings(
        name="ablation",
        sigma=SIGMA,
        seed=SEED,
        network=config,
        data=DataSettings(folders=("train", "test"), crop=CROP),
    )


if __name__ == "__main__":
    sys.exit(main())
