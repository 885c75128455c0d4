"""Sizes of the refinement: ``python -m benchmarks.refinements``.

Trains refinements after the stages of ``gray`` that differ in one thing at a time, from random
weights on: the same crops, seed, steps and rates for all, for a short time. PSNR is that of the
first validation images, with noise of sigma 25. Each row takes some minutes on one core with
AVX-512 BF16; rows that are measured already are kept, unless `--again` is given.
``docs/results/refinements.json`` has the results, and ``python -m scripts.ablation`` makes a table
of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from tqdm import tqdm

from benchmarks.ablation import SEED, SIGMA, VALIDATION_IMAGES
from benchmarks.pictures import PROJECT, require_data
from benchmarks.rows import add_options, measure_rows
from nlnet.evaluation.datasets import checkout_commit
from nlnet.network.config import NetworkConfig
from nlnet.network.refinement import RefinementConfig
from nlnet.torch import NLNet
from nlnet.training.data import CropSource
from nlnet.training.phase import Setup
from nlnet.training.pictures import Pictures, load_pictures
from nlnet.training.settings import (
    DataSettings,
    PhaseSettings,
    RefinementSettings,
    TrainingSettings,
)
from nlnet.training.start import starting_parameters, starting_refinement
from nlnet.training.team import Team
from nlnet.training.trainer import make_phase

RESULTS = PROJECT / "docs" / "results" / "refinements.json"
SHIPPED = RefinementConfig((48, 48), (3, 2), (3,))
ALONE = "the stages alone"


@dataclasses.dataclass(frozen=True)
class Variant:
    """What a row trains."""

    sizes: RefinementConfig = SHIPPED

    @property
    def multiplications(self) -> float:
        """How many of a pixel, for gray: a layer's weights, at the size of what it computes."""
        count = 0.0
        for layer in self.sizes.layers(1):
            # A pixel of level n is 2 ** (n + 1) of the image along a side; a layer that halves
            # is counted where it ends, one that doubles where it begins.
            side = 2 ** (layer.level + (2 if layer.kind == "double" else 1))
            count += math.prod(layer.weights) / side**2
        return count


ROWS: dict[str, Variant | None] = {
    ALONE: None,
    "two levels of 48 channels, 3 + 2 + 3 blocks (shipped)": Variant(),
    "32 channels": Variant(RefinementConfig((32, 32), (3, 2), (3,))),
    "one level, 8 blocks": Variant(RefinementConfig((48,), (8,), ())),
    "three levels, 2 + 2 + 2 + 2 + 2 blocks": Variant(
        RefinementConfig((48, 48, 48), (2, 2, 2), (2, 2))
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, validate, and write a result per row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.refinements", description=__doc__)
    parser.add_argument("--epochs", type=int, default=6, help="for each row (default: 6)")
    add_options(parser)
    options = parser.parse_args(arguments)
    pictures = load_pictures(require_data() / "bsds500", recipe(Variant(), options.epochs))

    def measure_row(name: str) -> dict[str, Any]:
        variant = ROWS[name]
        settings = recipe(variant or Variant(), options.epochs)
        return {
            **measure(settings, pictures, trained=variant is not None),
            "multiplications": 0 if variant is None else round(variant.multiplications),
        }

    measure_rows(RESULTS, ROWS, options, measure_row)
    return 0


def recipe(variant: Variant, epochs: int) -> TrainingSettings:
    """Return the recipe of a row."""
    return TrainingSettings(
        name="ablation",
        sigmas=(1.0, 5.0, 10.0, 15.0, 25.0, 50.0, 100.0),
        seed=SEED,
        start="gray",
        network=NetworkConfig(refinement=variant.sizes),
        data=DataSettings(folders=("train", "test"), crop=192),
        joint=PhaseSettings(epochs=0),
        refinement=RefinementSettings(
            epochs=epochs,
            batch=8,
            reuse=2,
            often=(10.0, 60.0),
            rate=0.01,
            scalar_rate=0.001,
            final_rate=0.0,
            bfloat16=True,
        ),
    )


def measure(settings: TrainingSettings, pictures: Pictures, *, trained: bool) -> Mapping[str, Any]:
    """Train a refinement, if it is to be, and return what it is and how good."""
    with Team(threads=1) as team:
        refinement = starting_refinement(settings)
        network = NLNet(
            settings.network,
            *starting_parameters(settings),
            sigmas=settings.sigmas,
            refinement=refinement,
            threads=team.threads,
        )
        number = settings.last_phase if trained else settings.last_phase - 1
        crops = CropSource(pictures, settings, team.threads)
        setup = Setup(settings, network, crops, team)
        phase = make_phase(number, setup)
        epochs = phase.settings.epochs
        for epoch in tqdm(range(epochs), disable=not epochs):
            for _ in phase.epoch(epoch, 0):
                pass
        phase.close()
        count = min(VALIDATION_IMAGES, len(pictures.validation))
        with torch.no_grad():
            batches = (crops.validation_batch(number, SIGMA) for number in range(count))
            scores = [-float(phase.score(batch)) for batch in batches]
    assert refinement is not None
    return {
        "parameters": refinement.config.parameter_count(refinement.channels) if trained else 0,
        "seed": settings.seed,
        "epochs": epochs,
        "steps": epochs * phase.steps,
        "validation_psnr": round(sum(scores) / len(scores), 3),
        "commit": checkout_commit(),
    }


if __name__ == "__main__":
    sys.exit(main())
