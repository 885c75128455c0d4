"""What stages and refinement contribute: ``python -m benchmarks.controls --data build/photos``.

Trains one short recipe to its end in several ways, each with two seeds: the stages alone, stages
and refinement, the refinement alone (after stages that change nothing), and the stages with groups
of 1. All see the same crops; PSNR is that of the validation images at sigma 25. A row takes a
quarter of an hour to an hour on one core; rows that are measured already are kept, unless `--again`
is given. ``docs/results/controls.json`` has the results.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.pictures import PROJECT
from benchmarks.rows import add_options, measure_rows
from nlnet.evaluation.checkout import checkout_commit
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, initial_parameters
from nlnet.network.refinement import RefinementConfig
from nlnet.torch import NLNet
from nlnet.torch.refinement import initial_refinement
from nlnet.training.data import CropSource, validation_batch
from nlnet.training.pictures import Pictures, load_pictures
from nlnet.training.settings import (
    DataSettings,
    PhaseSettings,
    RefinementSettings,
    TrainingSettings,
)
from nlnet.training.team import Team
from nlnet.training.trainer import make_phase

RESULTS = PROJECT / "docs" / "results" / "controls.json"
SIGMA = 25.0
SIGMAS = (10.0, SIGMA, 60.0)
SIZES = RefinementConfig((48, 48), (3, 2), (3,))


@dataclasses.dataclass(frozen=True)
class Control:
    """What a row trains, and with which seed."""

    stages: bool = True
    refinement: bool = False
    group_size: int = 8
    seed: int = 1


KINDS = {
    "the stages alone": Control(),
    "stages and refinement": Control(refinement=True),
    "the refinement alone": Control(stages=False, refinement=True),
    "the stages alone, K = 1": Control(group_size=1),
}
ROWS = {
    f"{name}, seed {seed}": dataclasses.replace(control, seed=seed)
    for name, control in KINDS.items()
    for seed in (1, 2)
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, validate, and write a result per row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.controls", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with train/ and val/")
    parser.add_argument("--epochs", type=int, default=12, help="of each phase (default: 12)")
    add_options(parser)
    options = parser.parse_args(arguments)
    pictures = load_pictures(options.data, recipe(Control(), options.epochs))

    def measure_row(name: str) -> Mapping[str, Any]:
        return measure(ROWS[name], recipe(ROWS[name], options.epochs), pictures)

    measure_rows(RESULTS, ROWS, options, measure_row)
    return 0


def recipe(control: Control, epochs: int) -> TrainingSettings:
    """Return the recipe of a row."""
    return TrainingSettings(
        name="control",
        sigmas=SIGMAS,
        seed=control.seed,
        start="nothing",  # a recipe for every sigma names a model; the network is made here
        network=NetworkConfig(
            group_size=control.group_size, refinement=SIZES if control.refinement else None
        ),
        data=DataSettings(crop=192, crops=200),
        joint=PhaseSettings(epochs=epochs if control.stages else 0),
        refinement=RefinementSettings(
            epochs=epochs if control.refinement else 0,
            batch=8,
            reuse=2,
            rate=0.005,
            scalar_rate=0.0005,
            final_rate=0.0,
            bfloat16=True,
        ),
    )


def start(control: Control, config: NetworkConfig) -> tuple[StageParameters, ...]:
    """Return the stages that a row starts from: the usual ones, or some that change nothing."""
    stages = tuple(stage.astype(np.float32) for stage in initial_parameters(config))
    if control.stages:
        return stages
    return tuple(
        dataclasses.replace(stage, coefficients=np.zeros_like(stage.coefficients))
        for stage in stages
    )


def measure(control: Control, settings: TrainingSettings, pictures: Pictures) -> Mapping[str, Any]:
    """Train a row, and return what it reaches."""
    config = settings.network
    refinement = None
    if config.refinement is not None:
        refinement = initial_refinement(config.refinement, config.channels, control.seed)
    with Team(threads=1) as team:
        sets = (start(control, config),) * len(SIGMAS)
        network = NLNet(config, *sets, sigmas=SIGMAS, refinement=refinement, threads=team.threads)
        crops = CropSource(pictures, settings)
        steps = 0
        for number in range(config.stages, settings.last_phase + 1):
            phase = make_phase(number, settings, network, crops, team)
            for epoch in tqdm(range(phase.settings.epochs), disable=None):
                steps += sum(1 for _ in phase.epoch(epoch, 0))
            phase.close()
        with torch.no_grad():
            scores = [
                -float(phase.score(validation_batch(picture, place, SIGMA, settings, 1)))
                for place, picture in enumerate(pictures.validation)
            ]
    return {
        "parameters": sum(value.numel() for value in network.parameters()),
        "seed": control.seed,
        "epochs": max(settings.joint.epochs, settings.refinement.epochs),
        "steps": steps,
        "validation_psnr": round(sum(scores) / len(scores), 3),
        "commit": checkout_commit(),
    }


if __name__ == "__main__":
    sys.exit(main())
