"""The provenance of a trained model: data, recipe, time, commit, licence."""

from __future__ import annotations

from typing import Any

from nlnet.model.loading import select_model
from nlnet.network.refinement import REFERENCE_SIGMA
from nlnet.training.checkpoints import RunProgress
from nlnet.training.pictures import Pictures
from nlnet.training.settings import PhaseSettings, TrainingSettings

_UNITS = {"adam": "epochs of Adam", "lbfgs": "iterations of L-BFGS", "muon": "epochs of Muon"}
"""What an epoch is with each optimizer."""

_FACTS = ("recipe", "data", "seconds", "megapixels")
"""What is told of a model that another one begins with."""


def describe(
    settings: TrainingSettings,
    pictures: Pictures,
    progress: RunProgress,
    *,
    best: str,
    commit: str | None,
) -> dict[str, Any]:
    """Return the provenance of a model.

    Parameters
    ----------
    settings : TrainingSettings
        The recipe.
    pictures : Pictures
        Images trained on and validated on.
    progress : RunProgress
        How far the run has come.
    best : str
        Phase and epoch that the model is from.
    commit : str or None
        Commit of the code that trained it.
    """
    source = settings.data.source or "images of the user"
    return {
        "recipe": summarize(settings),
        "settings": settings.to_mapping(),
        "data": f"{source}, {len(pictures.training)} images",
        "data_terms": settings.data.terms or "not stated",
        "selection": f"the best on {len(pictures.validation)} validation images, after {best}",
        "seed": settings.seed,
        "seconds": round(progress.seconds),
        "megapixels": round(progress.pixels / 1e6, 3),
        "earlier": progress.earlier,
        "commit": commit,
        "licence": settings.licence or "not stated",
    }


def earlier(settings: TrainingSettings) -> list[dict[str, Any]]:
    """Return how the models that a recipe begins with were trained, in the order of training."""
    found: list[dict[str, Any]] = []
    for name in (settings.start, settings.refinement.start):
        if name is None:
            continue
        told = select_model(name, settings.sigma or REFERENCE_SIGMA).provenance
        facts = {key: told[key] for key in _FACTS if key in told}
        for entry in (*told.get("earlier", ()), {"name": name, **facts}):
            if entry not in found:
                found.append(entry)
    return found


def summarize(settings: TrainingSettings) -> str:
    """Say in one line how a recipe trains."""
    side = f"{settings.data.crop}x{settings.data.crop}"
    fresh = settings.data.fresh and settings.joint.optimizer == "adam"
    crops = f"{settings.data.crops} {'fresh ' if fresh else ''}crops of {side}"
    steps = []
    if settings.start is not None:
        steps.append(f"from {settings.start}")
    elif settings.greedy.epochs:
        steps.append(f"{_count(settings.greedy)} per stage")
    if settings.joint.epochs:
        steps.append(f"{_count(settings.joint)} jointly")
    if settings.refinement.epochs:
        begun = settings.refinement.start
        after = "" if begun is None else f" from that of {begun} on"
        steps.append(f"{_count(settings.refinement)} for the refinement{after}")
    return f"{', '.join(steps)}, {crops}"


def _count(phase: PhaseSettings) -> str:
    return f"{phase.epochs} {_UNITS[phase.optimizer]}"
