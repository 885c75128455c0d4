"""Evaluations of the shipped models, by the protocol, as committed JSON files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nlnet.evaluation.datasets import bsd68_ids
from nlnet.evaluation.protocol import Score, evaluate_folder
from nlnet.model.family import Family
from nlnet.model.loading import load_model, select_model, shipped_models
from nlnet.model.model import Model

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "docs" / "results"
WEIGHTS = PROJECT / "src" / "nlnet" / "model" / "weights"
PAPERS = ("gray-5x5", "gray-7x7", "color-5x5")
"""The paper's networks: a model for each of its sigmas."""

EVERY_SIGMA = (5, 10, 15, 20, 25, 35, 50, 70, 100)
"""Where models for every sigma are measured on BSD68 and Set12."""

SIGMAS_OF = {"open": (15, 25, 50)}
"""Fewer sigmas for sets of large photos."""

SINGLE = {1: "gray-5x5", 3: "color-5x5"}
"""What they are compared with, by channels: of these, the nearest to the noise, rescaled."""

NEAREST = "nearest"
"""What the set of those results is called, after the set of images."""

_DIGITS = 6
"""Digits of the figures in model files: more than anything shows, since it rounds once more."""


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
    ``bsds500/val/``. Models for every sigma see the photos in ``open/val/``, too; they are
    measured at `EVERY_SIGMA`, and so is the nearest model for one sigma, on BSD68.
    """
    model = load_model(name)
    folder.mkdir(parents=True, exist_ok=True)
    for title, images, ids in _test_sets(model, data):
        digest = {"set": title, "weights": weights_digest(model)}
        if isinstance(model, Model):
            content = digest | _evaluate(model, model.sigma, title, images, ids)
        else:
            sigmas = {
                str(sigma): _evaluate(model.at(sigma), sigma, title, images, ids)
                for sigma in SIGMAS_OF.get(title, EVERY_SIGMA)
            }
            content = digest | {"sigmas": sigmas}
            if title == "bsd68":
                content[NEAREST] = _evaluate_nearest(model, images, ids, _path(name, title, folder))
        _path(name, title, folder).write_text(_to_text(content))


def _to_text(content: dict[str, Any]) -> str:
    """Return JSON for people; of many sigmas, each is a line."""
    if "sigmas" not in content:
        return json.dumps(content, indent=1) + "\n"
    parts = []
    for key, value in content.items():
        text = json.dumps(value)
        if isinstance(value, dict):
            lines = (f"  {json.dumps(sigma)}: {json.dumps(one)}" for sigma, one in value.items())
            text = "{\n" + ",\n".join(lines) + "\n }"
        parts.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _test_sets(
    model: Model | Family, data: Path
) -> Iterator[tuple[str, Path, frozenset[str] | None]]:
    if model.config.channels == 1:
        yield "bsd68", data / "bsd68", None
        yield "set12", data / "set12", None
    else:
        yield "bsd68", data / "bsds500" / "val", bsd68_ids()
    photos = data / "open" / "val"
    if isinstance(model, Family) and photos.is_dir():
        yield "open", photos, None


def _evaluate(
    model: Model, sigma: float, title: str, images: Path, ids: frozenset[str] | None
) -> dict[str, Any]:
    evaluation = evaluate_folder(images, model, sigma, ids=ids, report=_say(title))
    print(f"{model.name}, sigma {sigma:g}, {title}: {evaluation.mean.psnr:.3f} dB", flush=True)
    return evaluation.to_json()


def _evaluate_nearest(
    family: Family, images: Path, ids: frozenset[str] | None, path: Path
) -> dict[str, Any]:
    """Return what the nearest models for one sigma reach, on images rescaled to it.

    They do not change with the family, so what is known of the same weights is kept.
    """
    known = json.loads(path.read_text()).get(NEAREST, {}) if path.exists() else {}
    found = {}
    for sigma in EVERY_SIGMA:
        single = select_model(SINGLE[family.config.channels], sigma)
        digest = {"weights": weights_digest(single)}
        kept = known.get(str(sigma), {})
        if kept.get("weights") != digest["weights"]:
            kept = digest | _evaluate(single, sigma, "bsd68", images, ids)
        found[str(sigma)] = kept
    return found


def read_result(
    name: str, title: str, folder: Path = RESULTS, sigma: float | None = None, of: str = "sigmas"
) -> Result | None:
    """Read a committed evaluation of a shipped model; None if there is none of these weights.

    A model for every sigma has one for each `sigma`; those of `NEAREST` are beside them.
    """
    path = _path(name, title, folder)
    if name not in shipped_models() or not path.exists():
        return None
    content: dict[str, Any] = json.loads(path.read_text())
    if content["weights"] != weights_digest(load_model(name)):
        return None
    if "sigmas" in content:
        content = content.get(of, {}).get(f"{sigma:g}")
        if content is None:
            return None
    mean = content["mean"]
    return Result(mean["psnr"], mean["ssim"], len(content["images"]), path)


def read_at(name: str, title: str, sigma: float, folder: Path = RESULTS) -> Result | None:
    """Read the result of a model for every sigma, or of the one for this sigma in a family."""
    if name in shipped_models():
        return read_result(name, title, folder, sigma)
    return read_result(f"{name}-s{sigma:g}", title, folder)


def weights_digest(model: Model | Family) -> str:
    """Return a digest of the learned values alone: what else a file says may change."""
    digest = hashlib.sha256()
    for stages in model.sets if isinstance(model, Family) else (model.stages,):
        for stage in stages:
            for field in dataclasses.fields(stage):
                value = getattr(stage, field.name)
                if isinstance(value, np.ndarray):
                    digest.update(value.astype("<f4").tobytes())
                elif value is not None:
                    digest.update(repr(float(value)).encode())
    if model.refinement is not None:
        for name in sorted(model.refinement.tensors):
            digest.update(model.refinement.tensors[name].astype("<f4").tobytes())
    return digest.hexdigest()


def record_figures(name: str, weights: Path = WEIGHTS, folder: Path = RESULTS) -> None:
    """Write what was measured into the model file: a number, or one for each sigma."""
    model = load_model(weights / f"{name}.safetensors")
    figures = dict(model.figures)
    for title in ("bsd68", "set12"):
        for measure in ("psnr", "ssim"):
            if isinstance(model, Family):
                found = _by_sigma(name, title, measure, folder)
            else:
                result = read_result(name, title, folder)
                found = None if result is None else round(getattr(result, measure), _DIGITS)
            if found is not None:
                figures[f"{title}_{measure}"] = found
    nearest = _by_sigma(name, "bsd68", "psnr", folder, NEAREST)
    if isinstance(model, Family) and nearest is not None:
        figures["bsd68_psnr_of_nearest"] = nearest
    dataclasses.replace(model, figures=figures).save(weights / f"{name}.safetensors")


def _by_sigma(
    name: str, title: str, measure: str, folder: Path, of: str = "sigmas"
) -> dict[str, float] | None:
    results = {sigma: read_result(name, title, folder, sigma, of) for sigma in EVERY_SIGMA}
    found = {
        f"{sigma:g}": round(getattr(result, measure), _DIGITS)
        for sigma, result in results.items()
        if result is not None
    }
    return found or None


def _path(name: str, title: str, folder: Path) -> Path:
    return folder / f"{name}-{title}.json"


def _say(title: str) -> Any:
    def report(name: str, score: Score) -> None:
        print(f"  {title} {name} {score.psnr:.3f} dB", flush=True)

    return report
