"""Model cards: what one has to know about a shipped model, from its own file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nlnet.model.loading import load_model
from nlnet.model.model import Model
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
The model removes white Gaussian noise of this strength from photographs and similar images. For
other noise levels, `nlnet` scales the image; for noise that is correlated or depends on the
brightness, it transforms the image first."""


def write_card(name: str, weights: Path = WEIGHTS, cards: Path = CARDS) -> None:
    """Write the card of a shipped model."""
    cards.mkdir(parents=True, exist_ok=True)
    model = load_model(weights / f"{name}.safetensors")
    (cards / f"{name}.md").write_text(format_card(model))


def format_card(model: Model) -> str:
    """Return a model's card in Markdown."""
    told, config = model.provenance, model.config
    facts = {
        "Noise": f"white Gaussian, standard deviation {model.sigma:g} on the 0-255 scale",
        "Images": "grayscale" if config.channels == 1 else "color",
        "Network": f"{config.stages} stages, {config.patch_size}x{config.patch_size} patches, "
        f"groups of {config.group_size}, {model.parameter_count:,} parameters",
        "Trained": told.get("recipe", "not recorded"),
        "Training data": told.get("data", "not recorded"),
        "Terms of the data": told.get("data_terms", "not recorded"),
        "Selection": told.get("selection", "not recorded"),
        "Seed": told.get("seed", "not recorded"),
        "Training time": _duration(told.get("seconds")),
        "Commit": f"`{told['commit']}`" if told.get("commit") else "not recorded",
        "Licence of the weights": told.get("licence", "not recorded"),
    }
    figures = {
        label: f"{model.figures[key]:.{4 if 'ssim' in key else 3}f}"
        + ("" if "ssim" in key else " dB")
        for key, label in _FIGURES.items()
        if key in model.figures
    }
    parts = [f"# {model.name}", _table(facts), "## Figures", _table(figures), "## Use", _USE]
    if isinstance(told.get("settings"), Mapping):
        parts += ["## Recipe", "```toml\n" + _toml(told["settings"]) + "\n```"]
    parts.append("Written from the model file by `make tables`.")
    return "\n\n".join(parts) + "\n"


def _table(values: Mapping[str, object]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {v} |" for key, v in values.items())])


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
    words = {True: "true", False: "false"}
    return [
        f"{key} = {words[value] if isinstance(value, bool) else _quoted(value)}"
        for key, value in values.items()
        if value is not None
    ]


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
