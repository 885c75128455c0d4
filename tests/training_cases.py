"""A tiny training problem for the tests: images, recipes, and runs of them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nlnet.images import ImageFile, write_image
from nlnet.training.checkpoints import Checkpoint, load_checkpoint
from nlnet.training.pictures import load_pictures
from nlnet.training.settings import settings_from_mapping
from nlnet.training.team import Team
from nlnet.training.trainer import Trainer

FOLDERS = ("train", "test", "val")

ADAM = {"optimizer": "adam", "epochs": 2, "batch": 2}
LBFGS = {"optimizer": "lbfgs", "epochs": 4, "batch": 3}

TINY: dict[str, Any] = {
    "name": "tiny",
    "sigma": 25,
    "validate_every": 2,
    "checkpoint_minutes": 1e6,  # never, unless a test asks for it
    "network": {"stages": 2, "window": 7},
    "data": {"folders": ["train", "test"], "crop": 20, "crops": 4},
    "greedy": ADAM,
    "joint": ADAM,
}


def recipe(**changes: Any) -> dict[str, Any]:
    """The tiny recipe with some values, or parts of tables, changed."""
    result = copy.deepcopy(TINY)
    for key, value in changes.items():
        if isinstance(value, dict):
            result[key] = {**result.get(key, {}), **value}
        else:
            result[key] = value
    return result


def write_toml(path: Path, values: dict[str, Any]) -> Path:
    tables = {key: value for key, value in values.items() if isinstance(value, dict)}
    lines = [f"{k} = {json.dumps(v)}" for k, v in values.items() if k not in tables]
    for name, table in tables.items():
        lines += [f"[{name}]", *(f"{k} = {json.dumps(v)}" for k, v in table.items())]
    path.write_text("\n".join(lines) + "\n")
    return path


def picture(number: int, shape: tuple[int, ...] = (26, 30)) -> np.ndarray:
    """Stripes and waves, different for every number."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    waves = 128 + 60 * np.sin(x / (2.5 + number) + number) + 50 * np.cos(y / (3 + number))
    pixels = waves.clip(0, 255).astype(np.uint8)
    return pixels if len(shape) == 2 else np.stack([pixels, 255 - pixels, pixels // 2], axis=-1)


def write_data(folder: Path, shape: tuple[int, ...] = (26, 30)) -> Path:
    """Two images in each of train/, test/ and val/."""
    for number, name in enumerate(f"{part}/{i}" for part in FOLDERS for i in ("a", "b")):
        path = folder / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_image(path, ImageFile(picture(number, shape)))
    return folder


def train(
    values: dict[str, Any],
    data: Path,
    run: Path,
    *,
    resume: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Train in this process, on one thread."""
    settings = settings_from_mapping(values)
    run.mkdir(exist_ok=True)
    checkpoint: Checkpoint | None = load_checkpoint(run) if resume else None
    pictures = load_pictures(data, settings)
    with Team(threads=1) as team:
        return Trainer(settings, pictures, run, team=team, checkpoint=checkpoint, stop=stop).train()


def read_lines(run: Path) -> list[dict[str, Any]]:
    """The log without the times, which no two runs share."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def final_bytes(run: Path) -> dict[str, bytes]:
    """All that a run has learned, to the bit."""
    network = load_checkpoint(run).network
    return {name: tensor.numpy().tobytes() for name, tensor in network.items()}


def assert_same_run(one: Path, other: Path) -> None:
    assert read_lines(one) == read_lines(other)
    assert final_bytes(one) == final_bytes(other)
    # The best model's weights; its provenance has the time it took.
    assert _weights(one) == _weights(other)


def _weights(run: Path) -> bytes:
    content = (run / "best.safetensors").read_bytes()
    return content[8 + int.from_bytes(content[:8], "little") :]
