"""Training the eye from nothing: ``python -m nlnet.training.eye PHOTOS --out eye.safetensors``.

It learns the strength of the noise of every place, with how far off it expects to be (the
likelihood of a Laplace distribution), and the kind of the noise. A run that was stopped goes on
where its last checkpoint is, beside the output.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

from nlnet.atomic import write_atomically
from nlnet.engine.estimates import KINDS
from nlnet.torch.refinement import EyeNet
from nlnet.training.eye_data import (
    Batch,
    Example,
    EyeSettings,
    draw_batch,
    example_sets,
    make_examples,
)

_SPREADS = (-3.0, 3.0)
"""Bounds of the logarithm of how far off the eye expects to be: no picture counts for all."""

_CHECKPOINT = 500
"""Steps between checkpoints, after which the validation pictures are looked at, too."""

_WARM_UP = 300
"""Steps in which the rate rises."""

_VALIDATION = range(10_000_000, 10_000_300)
"""Numbers of the examples that are validated with: no training comes to them."""


def loss_of(
    seen: Tensor, batch: Batch, *, clean_weight: float = 1.0
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss of what the eye saw, and what it consists of.

    Strengths told of pictures without noise count by `clean_weight`. With 0, the eye learns how
    strong the noise is *if* there is some; whether there is, the kinds say.
    """
    values, spreads = seen[:, :6], seen[:, 6:12].clamp(*_SPREADS)
    logits = seen[:, 12 : 12 + len(KINDS)].mean((2, 3))
    wanted = torch.log2(1 + batch.strengths)
    error = (values - wanted).abs()
    likelihood = error * torch.exp(-spreads) + spreads
    colors = torch.ones_like(likelihood)
    colors[batch.gray, 3:] = 0
    colors[batch.labels == 0] *= clean_weight
    local = (likelihood * colors).sum() / colors.sum()
    kinds = functional.cross_entropy(logits, batch.labels)
    right = (logits.argmax(1) == batch.labels).float().mean()
    parts = {
        "error": ((error * colors).sum() / colors.sum()).item(),
        "likelihood": local.item(),
        "kinds": kinds.item(),
        "right": right.item(),
    }
    return local + 0.5 * kinds, parts


class Run:
    """A training run: the eye, its optimizer, and how many steps are done."""

    def __init__(self, folder: str, out: Path, settings: EyeSettings) -> None:
        self._folder, self._out, self._settings = folder, out, settings
        torch.manual_seed(settings.seed)
        self.eye = EyeNet()
        self._optimizer = torch.optim.AdamW(self.eye.parameters(), weight_decay=1e-4)
        self.done = 0
        if self._checkpoint.exists():
            state = torch.load(self._checkpoint, weights_only=True)
            self.eye.load_state_dict(state["eye"])
            self._optimizer.load_state_dict(state["optimizer"])
            self.done = int(state["done"])

    @property
    def _checkpoint(self) -> Path:
        return self._out.with_suffix(".checkpoint")

    def train(self) -> None:
        """Take all steps that are left, and write the eye."""
        settings = self._settings
        per_set = settings.pictures * settings.reuse // settings.batch
        validation = make_examples(self._folder, settings, _VALIDATION)
        fixed = [draw_batch(validation, settings, np.random.default_rng(n)) for n in range(8)]
        sets = example_sets(self._folder, settings, self.done // per_set)
        examples: list[Example] = []
        steps = range(self.done, settings.steps)
        with tqdm(steps, initial=self.done, total=settings.steps, unit="step") as bar:
            for step in bar:
                if not examples or step % per_set == 0:
                    examples = next(sets)
                rng = np.random.default_rng((settings.seed, 1, step))
                batch = draw_batch(examples, settings, rng)
                set_rate(self._optimizer, settings, step)
                clean_weight = float(step < settings.clean_until)
                parts = optimizer_step(self.eye, self._optimizer, batch, clean_weight=clean_weight)
                self.done = step + 1
                bar.set_postfix(parts, refresh=False)
                if self.done % _CHECKPOINT == 0:
                    self._save()
                    bar.write(f"{self.done} steps, validation: {self._validated(fixed)}")
        sets.close()
        write_atomically(self._out, self.packed())

    def packed(self) -> bytes:
        """Return the eye as it is shipped: in half precision, which is far below its errors."""
        return save({name: values.astype(np.float16) for name, values in self.eye.export().items()})

    def _save(self) -> None:
        state = {"eye": self.eye.state_dict(), "optimizer": self._optimizer.state_dict()}
        torch.save({**state, "done": self.done}, self._checkpoint)

    def _validated(self, fixed: Sequence[Batch]) -> str:
        with torch.no_grad():
            parts = [loss_of(self.eye(batch.planes), batch, clean_weight=0)[1] for batch in fixed]
        return ", ".join(
            f"{name} {np.mean([part[name] for part in parts]):.4f}" for name in parts[0]
        )


def set_rate(optimizer: torch.optim.Optimizer, settings: EyeSettings, step: int) -> None:
    """Set the rate of a step: it rises for a short while, then falls along a cosine to 0."""
    fall = 0.5 * (1 + math.cos(math.pi * step / settings.steps))
    for group in optimizer.param_groups:
        group["lr"] = settings.rate * fall * min(1.0, (step + 1) / _WARM_UP)


def optimizer_step(
    eye: EyeNet, optimizer: torch.optim.Optimizer, batch: Batch, *, clean_weight: float = 1.0
) -> dict[str, float]:
    """Take one step, and return what its loss consisted of."""
    with torch.autocast("cpu", torch.bfloat16):
        seen = eye(batch.planes)
    loss, parts = loss_of(seen.float(), batch, clean_weight=clean_weight)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(eye.parameters(), 1.0)
    optimizer.step()
    return parts


def main(arguments: Sequence[str] | None = None) -> int:
    """Train from the shell."""
    parser = argparse.ArgumentParser(prog="python -m nlnet.training.eye", description=__doc__)
    parser.add_argument("photos", help="a folder of clean photos")
    parser.add_argument("--out", type=Path, required=True, metavar="EYE.safetensors")
    parser.add_argument("--steps", type=int, default=EyeSettings.steps)
    parser.add_argument("--threads", type=int, default=1, help="of torch (default: 1)")
    given = parser.parse_args(arguments)
    torch.set_num_threads(given.threads)
    Run(given.photos, given.out, EyeSettings(steps=given.steps)).train()
    return 0


if __name__ == "__main__":
    sys.exit(main())
