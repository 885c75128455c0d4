"""Model cards: what one has to know about a shipped model, from its own file."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nlnet.model.family import Family
from nlnet.model.loading import load_model
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from scripts import markdown
from scripts.results import PROJECT, WEIGHTS

CARDS = PROJECT / "docs" / "models"

_FIGURES = {
    "bsd68_psnr": "PSNR on BSD68",
    "bsd68_ssim": "SSIM on BSD68",
    "set12_psnr": "PSNR on Set12",
    "set12_ssim": "SSIM on Set12",
    "validation_psnr": "PSNR on the validation images",
}

_USE = """\
The model removes white Gaussian noise of {strength} from photographs and similar images. For
other noise levels, `nlnet` scales the image; for noise that is correlated or depends on the
brightness, it transforms the image first."""

_BY_SIGMA = {
    "bsd68_psnr": "PSNR on BSD68, dB",
    "bsd68_psnr_of_nearest": "of the nearest model for one sigma",
    "bsd68_ssim": "SSIM on BSD68",
    "set12_psnr": "PSNR on Set12, dB",
    "set12_ssim": "SSIM on Set12",
}


def write_card(name: str, weights: Path = WEIGHTS, cards: Path = CARDS) -> None:
    """Write the card of a shipped model."""
    cards.mkdir(parents=True, exist_ok=True)
    model = load_model(weights / f"{name}.safetensors")
    (cards / f"{name}.md").write_text(format_card(model))


def format_card(model: Model | Family) -> str:
    """Return a model's card in Markdown."""
    told, config = model.provenance, model.config
    noise, strength = f"standard deviation {model.noise}", "this strength"
    if isinstance(model, Family):
        low, high = model.sigmas[0], model.sigmas[-1]
        noise = f"any standard deviation from {low:g} to {high:g}"
        strength = "any strength in this range"
    facts = {
        "Noise": f"white Gaussian, {noise} on the 0-255 scale",
        "Images": "grayscale" if config.channels == 1 else "color",
        "Network": f"{config.stages} stages, {config.patch_size}x{config.patch_size} patches, "
        f"groups of {config.group_size}{_refinement(config)}, {model.parameter_count:,} parameters",
        "Trained": told.get("recipe", "not recorded"),
        "Training data": told.get("data", "not recorded"),
        "Terms of the data": told.get("data_terms", "not recorded"),
        "Selection": told.get("selection", "not recorded"),
        "Seed": told.get("seed", "not recorded"),
        "Training time": _duration(told.get("seconds")),
        **_phases(told),
        "Commit": f"`{told['commit']}`" if told.get("commit") else "not recorded",
        "Licence of the weights": told.get("licence", "not recorded"),
    }
    parts = [f"# {model.name}", _table(facts), "## Figures"]
    if isinstance(model, Family):
        parts.append(_table_by_sigma(model.figures))
    figures = {
        label: f"{model.figures[key]:.{_digits(key)}f}" + ("" if "ssim" in key else " dB")
        for key, label in _FIGURES.items()
        if isinstance(model.figures.get(key), float)
    }
    if figures:
        parts.append(_table(figures))
    parts += ["## Use", textwrap.fill(_USE.format(strength=strength), 100)]
    if isinstance(told.get("settings"), Mapping):
        parts += ["## Recipe", "```toml\n" + _toml(told["settings"]) + "\n```"]
    parts.append("Written from the model file by `make tables`.")
    return "\n\n".join(parts) + "\n"


def _refinement(config: NetworkConfig) -> str:
    """Say what follows the stages."""
    if config.refinement is None:
        return ""
    widths = config.refinement.widths
    levels = f"{len(widths)} levels" if len(widths) > 1 else "one level"
    return f", a refinement on {levels} ({', '.join(map(str, widths))} channels)"


def _table_by_sigma(figures: Mapping[str, Any]) -> str:
    """Return what was measured at several sigmas, a row for each measure."""
    found = {key: figures[key] for key in _BY_SIGMA if key in figures}
    sigmas = sorted({sigma for values in found.values() for sigma in values}, key=float)
    rows = [
        [
            _BY_SIGMA[key],
            *(f"{values[s]:.{_digits(key)}f}" if s in values else "" for s in sigmas),
        ]
        for key, values in found.items()
    ]
    return markdown.format_table(["sigma", *sigmas], rows)


def _digits(key: str) -> int:
    return 4 if "ssim" in key else 3


def _table(values: Mapping[str, object]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {v} |" for key, v in values.items())])


def _phases(told: Mapping[str, Any]) -> dict[str, str]:
    """Say what was seen, and how the models that it began with were trained."""
    facts = {}
    if "megapixels" in told:
        facts["Pixels seen"] = f"{told['megapixels']:,.0f} million"
    if told.get("earlier"):
        facts["Before that"] = "; ".join(
            f"{each['name']}: {each.get('recipe', 'not recorded')}, "
            f"{_duration(each.get('seconds'))}, {each.get('megapixels', 0):,.0f} million pixels"
            for each in told["earlier"]
        )
    return facts


def _duration(seconds: object) -> str:
    if not isinstance(seconds, (int, float)):
        return "not recorded"
    return f"{seconds / 3600:.1f} hours" if seconds >= 5400 else f"{seconds / 60:.0f} minutes"


def _toml(settings: Mapping[str, Any]) -> str:
    """Return the recipe as it could be trained again."""
    tables = {key: value for key, value in settings.items() if isinstance(value, Mapping)}
    lines = _assignments({key: v for key, v in settings.items() if key not in tables})
    for name, table in tables.items():
        lines += ["", f"[{name}]", *_assignments(table)]
    return "\n".join(lines)


def _assignments(values: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_quoted(value)}" for key, value in values.items() if value is not None]


def _quoted(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_assignments(value))} }}"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
