"""What stages and refinement contribute: ``python -m benchmarks.controls --data build/photos``.

Trains one short recipe to its end in several ways, each with two seeds: the stages alone, stages
and refinement, the refinement alone (after stages that change nothing), and the stages with groups
of 1. All see the same crops; PSNR is that of the validation images at sigma 25. Rows that are
measured already are kept, unless `--again` is given, and a row that was stopped goes on after its
last epoch (``build/controls``). ``--rows "seed 1"`` measures a part, also beside other processes.
``docs/results/controls.json`` has the results.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from benchmarks.pictures import PROJECT
from benchmarks.rows import add_options, measure_rows
from nlnet.atomic import write_atomically
from nlnet.evaluation.datasets import checkout_commit
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, initial_parameters
from nlnet.network.refinement import RefinementConfig
from nlnet.torch import NLNet
from nlnet.torch.refinement import initial_refinement
from nlnet.training.data import CropSource
from nlnet.training.phase import Setup
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
UNDER_WAY = PROJECT / "build" / "controls"
"""Rows that were stopped, after their last epoch."""
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
        saved = UNDER_WAY / f"{name.replace(' ', '-')}-{options.epochs}.pt"
        row = measure(ROWS[name], recipe(ROWS[name], options.epochs), pictures, saved)
        saved.unlink(missing_ok=True)
        return row

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


def measure(
    control: Control, settings: TrainingSettings, pictures: Pictures, saved: Path | None = None
) -> Mapping[str, Any]:
    """Train a row, and return what it reaches; it goes on where `saved` says, and saves epochs."""
    config = settings.network
    refinement = None
    if config.refinement is not None:
        refinement = initial_refinement(config.refinement, config.channels, control.seed)
    with Team(threads=1) as team:
        sets = (start(control, config),) * len(SIGMAS)
        network = NLNet(config, *sets, sigmas=SIGMAS, refinement=refinement, threads=team.threads)
        crops = CropSource(pictures, settings, team.threads)
        setup = Setup(settings, network, crops, team)
        state: dict[str, Any] = {"phase": config.stages, "epoch": 0, "steps": 0, "own": None}
        if saved is not None and saved.exists():
            state = torch.load(saved, weights_only=True)
            network.load_state_dict(state.pop("network"))
        while state["phase"] <= settings.last_phase:
            phase = make_phase(state["phase"], setup)
            if state["own"] is not None:
                phase.load_state(state["own"])
            for epoch in tqdm(range(state["epoch"], phase.settings.epochs), disable=None):
                state["steps"] += sum(1 for _ in phase.epoch(epoch, 0))
                state |= {"epoch": epoch + 1, "own": phase.state()}
                if saved is not None:
                    save(saved, {**state, "network": network.state_dict()})
            phase.close()
            state |= {"phase": state["phase"] + 1, "epoch": 0, "own": None}
        with torch.no_grad():
            scores = [
                -float(phase.score(crops.validation_batch(number, SIGMA)))
                for number in range(len(pictures.validation))
            ]
    return {
        "parameters": sum(value.numel() for value in network.parameters()),
        "seed": control.seed,
        "epochs": max(settings.joint.epochs, settings.refinement.epochs),
        "steps": state["steps"],
        "validation_psnr": round(sum(scores) / len(scores), 3),
        "commit": checkout_commit(),
    }


def save(path: Path, state: Mapping[str, Any]) -> None:
    """Write how far a row has come, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = io.BytesIO()
    torch.save(dict(state), stream)
    write_atomically(path, stream.getvalue())


if __name__ == "__main__":
    sys.exit(main())
