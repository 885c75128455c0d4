"""Ingredients of the refinement: ``python -m benchmarks.refinements``.

Trains refinements after the stages of ``gray`` that differ from the one in
``configs/gray-plus.toml`` in one thing at a time: the same crops, seed, steps and rate for all, for
a short time. Validation is on the first validation images, with noise of sigma 25. Each row takes
some minutes on one core; rows that are measured already are kept, unless `--again` is given.
``docs/results/refinements.json`` has the results, and ``python -m scripts.ablation`` makes a table
of them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from benchmarks.ablation import VALIDATION_IMAGES
from benchmarks.pictures import PROJECT, require_data
from nlnet.evaluation.checkout import checkout_commit
from nlnet.network.refinement import RefinementConfig
from nlnet.torch import NLNet
from nlnet.torch.refinement import RefinementNet
from nlnet.training.data import CropSource, Pictures, load_pictures, validation_batch
from nlnet.training.phase import Phase
from nlnet.training.settings import TrainingSettings, read_settings
from nlnet.training.start import starting_parameters, starting_refinement
from nlnet.training.team import Team

RESULTS = PROJECT / "docs" / "results" / "refinements.json"
RECIPE = PROJECT / "configs" / "gray-plus.toml"
SIGMA = 25.0

ROWS: dict[str, Mapping[str, Any]] = {
    "none: the stages alone": {},
    "as in `gray-plus`": {},
    "half the size only, 7 blocks": {"sizes": RefinementConfig((48,), (7,), ())},
    "three levels, 2 blocks each": {"sizes": RefinementConfig((48, 48, 48), (2, 2, 2), (2, 2))},
    "32 channels": {"sizes": RefinementConfig((32, 32), (3, 2), (3,))},
    "sees the estimate from the start": {"blind": 0.0},
    "never sees the estimate": {"blind": 1.0},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, validate, and write a result per row."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.refinements", description=__doc__)
    parser.add_argument("--epochs", type=int, default=6, help="for each row (default: 6)")
    parser.add_argument("--rows", nargs="*", help="only rows whose names contain one of these")
    parser.add_argument("--again", action="store_true", help="also rows that are measured already")
    options = parser.parse_args(arguments)
    known = (
        {row["name"]: row for row in json.loads(RESULTS.read_text())} if RESULTS.exists() else {}
    )
    recipe = read_settings(RECIPE)
    pictures = load_pictures(require_data() / "bsds500", recipe)
    for name, changes in ROWS.items():
        wanted = options.rows is None or any(part in name for part in options.rows)
        if not wanted or (name in known and not options.again):
            continue
        epochs = 0 if name.startswith("none") else options.epochs
        settings = variant(recipe, changes, max(1, epochs))
        known[name] = {"name": name, **measure(settings, pictures, epochs)}
        print(f"{name}: {known[name]['validation_psnr']} dB", flush=True)
        rows = [known[row] for row in ROWS if row in known]
        RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    return 0


def variant(recipe: TrainingSettings, changes: Mapping[str, Any], epochs: int) -> TrainingSettings:
    """Return the recipe with another number of epochs, and with what a row changes."""
    sizes = changes.get("sizes", recipe.network.refinement)
    blind = changes.get("blind", recipe.refinement.blind)
    return dataclasses.replace(
        recipe,
        network=dataclasses.replace(recipe.network, refinement=sizes),
        refinement=dataclasses.replace(recipe.refinement, epochs=epochs, blind=blind),
    )


def measure(settings: TrainingSettings, pictures: Pictures, epochs: int) -> dict[str, Any]:
    """Train a refinement and return what it is and how good; without epochs, there is none."""
    with Team(threads=1) as team:
        network = NLNet(
            settings.network,
            *starting_parameters(settings),
            sigmas=settings.sigmas,
            refinement=starting_refinement(settings),
            threads=team.threads,
        )
        number = settings.last_phase if epochs else settings.last_phase - 1
        crops = CropSource(pictures.training, settings)
        phase = Phase(number, settings, network, crops, team)
        for epoch in range(epochs):
            for step, _ in enumerate(phase.epoch(epoch, 0)):
                if sys.stderr.isatty():
                    print(f"\repoch {epoch + 1}, step {step + 1}", end="", file=sys.stderr)
        scores = []
        with torch.no_grad():
            for place, picture in enumerate(pictures.validation[:VALIDATION_IMAGES]):
                batch = validation_batch(picture, place, SIGMA, settings, team.threads)
                scores.append(-float(phase.negative_psnr(batch, whole=True)))
    refinement = network.refinement
    assert isinstance(refinement, RefinementNet)
    return {
        "parameters": refinement.export().parameter_count if epochs else 0,
        "seed": settings.seed,
        "epochs": epochs,
        "steps": epochs * phase.steps,
        "validation_psnr": round(sum(scores) / len(scores), 3),
        "commit": checkout_commit(),
    }


if __name__ == "__main__":
    sys.exit(main())
