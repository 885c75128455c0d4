"""Evaluations of the shipped models, by the protocol, as committed JSON files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

from nlnet.evaluation.datasets import bsd68_ids
from nlnet.evaluation.protocol import Score, evaluate_folder
from nlnet.model.loading import load_model, shipped_models
from nlnet.model.model import Model

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "docs" / "results"
WEIGHTS = PROJECT / "src" / "nlnet" / "model" / "weights"
FAMILIES = ("gray-5x5", "gray-7x7", "color-5x5")


@dataclasses.dataclass(frozen=True)
class Result:
    """Means of a model on a set of images, as a committed evaluation has them."""

    psnr: float
    ssim: float
    images: int
    path: Path


def evaluate_model(name: str, data: Path, folder: Path = RESULTS) -> None:
    """Measure a shipped model on its test sets, and write a JSON file for each.

    Grayscale models see ``bsd68/`` and ``set12/``, color models the images of BSD68 in
    ``bsds500/val/``.
    """
    model = load_model(name)
    sets: dict[str, tuple[Path, frozenset[str] | None]] = {"bsd68": (data / "bsd68", None)}
    if model.config.channels == 1:
        sets["set12"] = (data / "set12", None)
    else:
        ids = bsd68_ids()
        sets["bsd68"] = (data / "bsds500" / "val", ids)
    for title, (images, chosen) in sets.items():
        evaluation = evaluate_folder(images, model, model.sigma, ids=chosen, report=_say(title))
        content = {"set": title, "weights": weights_digest(model), **evaluation.to_json()}
        folder.mkdir(parents=True, exist_ok=True)
        _path(name, title, folder).write_text(json.dumps(content, indent=1) + "\n")
        print(f"{name}, {title}: {evaluation.mean.psnr:.3f} dB", flush=True)


def read_result(name: str, title: str, folder: Path = RESULTS) -> Result | None:
    """Read a committed evaluation of a shipped model; None if there is none of these weights."""
    path = _path(name, title, folder)
    if name not in shipped_models() or not path.exists():
        return None
    content: dict[str, Any] = json.loads(path.read_text())
    if content["weights"] != weights_digest(load_model(name)):
        return None
    mean = content["mean"]
    return Result(mean["psnr"], mean["ssim"], len(content["images"]), path)


def weights_digest(model: Model) -> str:
    """Return a digest of the learned values alone: what else a file says may change."""
    digest = hashlib.sha256()
    for stage in model.stages:
        for array in (stage.filters, stage.group_weights, stage.coefficients):
            digest.update(array.astype("<f4").tobytes())
        digest.update(repr(float(stage.step_size)).encode())
    return digest.hexdigest()


def record_figures(name: str, weights: Path = WEIGHTS, folder: Path = RESULTS) -> None:
    """Write what was measured into the model file."""
    model = load_model(weights / f"{name}.safetensors")
    figures = dict(model.figures)
    for title in ("bsd68", "set12"):
        result = read_result(name, title, folder)
        if result is not None:
            figures[f"{title}_psnr"] = round(result.psnr, 3)
            figures[f"{title}_ssim"] = round(result.ssim, 4)
    dataclasses.replace(model, figures=figures).save(weights / f"{name}.safetensors")


def _path(name: str, title: str, folder: Path) -> Path:
    return folder / f"{name}-{title}.json"


def _say(title: str) -> Any:
    def report(name: str, score: Score) -> None:
        print(f"  {title} {name} {score.psnr:.3f} dB", flush=True)

    return report
