"""How often the eye is right about noise: ``python -m benchmarks.certainty``.

Pictures with and without noise, of the kinds that are hard to tell apart, made from photos that the
eye was not trained on. The two numbers that calibrate its odds, in
``engine/src/estimates/decisions.h``, are fitted to every other picture, and the table shows the
rest: of the pictures whose noise was given some probability, the share that has noise. Prints the
numbers, and writes the table into ``docs/real_noise.md``.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from benchmarks.everyday_cases import SIDE
from benchmarks.machine import describe_run
from benchmarks.pictures import PROJECT, require_data
from nlnet.atomic import write_atomically
from nlnet.engine import estimates
from nlnet.masks import read_planes
from nlnet.network.block import prepare_eye
from nlnet.noise.estimation import shipped_eye
from nlnet.noise.sample import Sample
from nlnet.training.simulation.recipes import draw_recipe
from nlnet.training.simulation.scenes import Photos
from scripts.markdown import format_table, insert_block

OUTPUT = PROJECT / "docs" / "results" / "certainty.json"
PAGE = PROJECT / "docs" / "real_noise.md"
NAME = "certainty"
KINDS = (("clean", 0.4), ("camera", 0.4), ("grain", 0.2))
COUNT = 400
SEED = 7777
EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
ROUNDS = 50

Values = npt.NDArray[np.float64]


def main() -> int:
    """Measure, write and print."""
    pairs = list(tqdm(look_at(require_data() / "open" / "val"), total=COUNT, unit="picture"))
    record = {**describe_run(), "odds of none, has noise": pairs}
    write_atomically(OUTPUT, (json.dumps(record) + "\n").encode())
    slope, shift = fit(pairs[::2])
    print(f"slope {slope:.2f}, shift {shift:.2f}")
    PAGE.write_text(fill_in(PAGE.read_text()))
    return 0


def look_at(folder: Path) -> Iterator[tuple[float, bool]]:
    """Yield the eye's odds of no noise, and whether a picture has noise."""
    photos = Photos(folder)
    for index in range(COUNT):
        recipe = draw_recipe(photos, SIDE, np.random.default_rng((SEED, index)), kinds=KINDS)
        picture = np.clip(np.rint(recipe.render((SEED, index))), 0, 255).astype(np.uint8)
        sample = Sample.of(read_planes(picture, None, -1 if picture.ndim == 3 else None).planes)
        eye = prepare_eye(shipped_eye())
        found, _ = sample.for_engine().estimate_noise(eye, sample.measures, None)
        if found.looked:
            yield round(found.odds[estimates.KINDS.index("none")], 5), recipe.kind != "clean"


def fit(pairs: list[tuple[float, bool]]) -> tuple[float, float]:
    """Return slope and shift of the logistic function that tells best whether there is no noise."""
    odds, noisy = np.array(pairs, np.float64).T
    design = np.stack([_logit(odds), np.ones_like(odds)], axis=1)
    line = np.array([1.0, 0.0])
    for _ in range(ROUNDS):  # Newton's method
        shares = 1 / (1 + np.exp(-design @ line))
        curvature = (design.T * (shares * (1 - shares) + 1e-6)) @ design
        line -= np.linalg.solve(curvature, design.T @ (shares - (1 - noisy)))
    return float(line[0]), float(line[1])


def fill_in(page: str) -> str:
    """Return the page with the table of pictures that nothing was fitted to."""
    pairs = json.loads(OUTPUT.read_text())["odds of none, has noise"]
    slope, shift = fit(pairs[::2])
    odds, noisy = np.array(pairs[1::2], np.float64).T
    told = 1 / (1 + np.exp(slope * _logit(odds) + shift))
    rows = []
    for low, high in itertools.pairwise(EDGES):
        inside = (told >= low) & (told < high if high < 1 else told <= 1)
        if inside.any():
            said, true = told[inside].mean(), noisy[inside].mean()
            rows.append(
                [f"{low:.0%} to {high:.0%}", str(inside.sum()), f"{said:.0%}", f"{true:.0%}"]
            )
    heads = ["certainty of noise", "pictures", "told on average", "have noise"]
    return insert_block(page, NAME, format_table(heads, rows))


def _logit(odds: Values) -> Values:
    inside = np.clip(odds, 1e-6, 1 - 1e-6)
    return np.asarray(np.log(inside / (1 - inside)))


if __name__ == "__main__":
    sys.exit(main())
