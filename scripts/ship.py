"""Ship what a run has trained: ``make ship RUN=runs/NAME``.

Copies the best model to the package's weights, and the log to ``docs/results/training/``.
"""

from __future__ import annotations

import argparse
import dataclasses
import shutil
from pathlib import Path
from typing import Any

from nlnet.model.loading import load_model
from nlnet.model.model import Model
from nlnet.training.data import load_pictures
from nlnet.training.provenance import describe
from nlnet.training.settings import first_difference, read_settings, settings_from_mapping
from scripts.results import PROJECT, RESULTS, WEIGHTS


def main() -> None:
    """Ship some runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--data", type=Path, help="for old runs: the images they were trained on")
    arguments = parser.parse_args()
    for run in arguments.runs:
        print(f"{ship(run, arguments.data)} is shipped")


def ship(run: Path, data: Path | None = None, weights: Path = WEIGHTS) -> str:
    """Ship one run, and return the model's name."""
    model = load_model(run / "best.safetensors")
    if isinstance(model, Model) and isinstance(model.provenance.get("recipe"), dict):
        if data is None:
            raise SystemExit(f"{run} is an old run: say with --data what it was trained on.")
        model = _tell_in_words(model, data)
    weights.mkdir(parents=True, exist_ok=True)
    model.save(weights / f"{model.name}.safetensors")
    logs = RESULTS / "training"
    logs.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run / "log.jsonl", logs / f"{model.name}.jsonl")
    return model.name


def _tell_in_words(model: Model, data: Path) -> Model:
    """Bring the provenance of the first runs, the recipe alone, to its present form."""
    told: dict[str, Any] = dict(model.provenance)
    settings = read_settings(PROJECT / "configs" / f"{model.name}.toml")
    difference = first_difference(settings, settings_from_mapping(told["recipe"]))
    if difference is not None:
        raise SystemExit(f"{model.name} was trained by another recipe: {difference}.")
    pictures = load_pictures(data, settings)
    provenance = describe(
        settings,
        images=len(pictures.training),
        validation_images=len(pictures.validation),
        seconds=told["seconds"],
        best=f"epoch {told['joint_epochs']} of phase 'joint'",
        commit=told["commit"],
    )
    return dataclasses.replace(model, provenance=provenance)


if __name__ == "__main__":
    main()
