"""Ship what a run has trained: ``make ship RUN=runs/NAME``.

Copies the best model to the package's weights, and the log to ``docs/results/training/``.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from nlnet.model.loading import load_model
from scripts.results import RESULTS, WEIGHTS


def main() -> None:
    """Ship some runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", type=Path)
    arguments = parser.parse_args()
    for run in arguments.runs:
        print(f"{ship(run)} is shipped")


def ship(run: Path, weights: Path = WEIGHTS) -> str:
    """Ship one run, and return the model's name."""
    model = load_model(run / "best.safetensors")
    weights.mkdir(parents=True, exist_ok=True)
    model.save(weights / f"{model.name}.safetensors")
    logs = RESULTS / "training"
    logs.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(run / "log.jsonl", logs / f"{model.name}.jsonl")
    return model.name


if __name__ == "__main__":
    main()
