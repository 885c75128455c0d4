"""Films and stacks, denoised with their neighbours: ``python -m benchmarks.films``.

The films of `benchmarks.film_scenes`, made of photos under open terms, each twice: the constants of
the method were chosen on one half, and the table shows the other, which is of other photos. Given
the noise, PSNR over all frames, page by page and along the film, fast and best, and of BM4D (after
the same stabilisation of photon noise) for the films that ``--bm4d`` names. Times are CPU seconds,
of all threads, and compare only if ``--again --bm4d 0 1 2 ...`` measures all in one run. Writes
``docs/results/films.json`` and the table of
``docs/series.md``, after every film; what is there already is kept, unless ``--again``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import nlnet
from benchmarks.film_scenes import FILMS, Film
from benchmarks.machine import describe_run
from benchmarks.pictures import PROJECT, require_data
from nlnet.arrays import FloatArray
from nlnet.atomic import write_atomically
from nlnet.noise.levels import Level
from nlnet.noise.stabilisation import Stabiliser
from scripts.markdown import format_table, insert_block

OUTPUT = PROJECT / "docs" / "results" / "films.json"
PAGE = PROJECT / "docs" / "series.md"
NAME = "films"
COLUMNS = {
    "noisy": "noisy",
    "pages": "page by page",
    "pages best": "page by page, best",
    "series": "along",
    "series best": "along, best",
    "found": "along, noise unknown",
    "bm4d": "BM4D",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the results and the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.films", description=__doc__)
    parser.add_argument("--half", choices=("held", "chosen"), default="held")
    parser.add_argument("--films", type=int, nargs="+", default=list(range(len(FILMS))))
    parser.add_argument(
        "--methods", nargs="+", choices=list(COLUMNS)[:-1], default=list(COLUMNS)[:-1]
    )
    parser.add_argument(
        "--bm4d", type=int, nargs="*", default=[], help="films for BM4D: minutes each"
    )
    parser.add_argument("--again", action="store_true", help="measure everything anew")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="OUT.json")
    options = parser.parse_args(arguments)
    photos = sorted((require_data() / "open" / "val").glob("*.jpg"))
    found: dict[str, Any] = {"films": {}}
    if options.output.exists():
        found = json.loads(options.output.read_text())
    for number in sorted({*options.films, *options.bm4d}):
        film, held = FILMS[number], options.half == "held"
        methods = options.methods if number in options.films else []
        methods = [*methods, *(["bm4d"] if number in options.bm4d else [])]
        name = film.name if held else f"{film.name} (chosen on)"
        row = found["films"].setdefault(
            name, {"kind": film.kind, "held": held, "psnr": {}, "seconds": {}}
        )
        missing = [each for each in methods if options.again or each not in row["psnr"]]
        if not missing:
            continue
        clean, noisy = film.render(photos[(2 * number + held) % len(photos)], 100 * number + held)
        for method in missing:
            start = time.process_time()
            result = METHODS[method](film, noisy)
            row["seconds"][method] = round(time.process_time() - start, 2)
            row["psnr"][method] = round(mean_psnr(film, result, clean), 3)
        print(film.name, row["psnr"], flush=True)
        found["run"] = describe_run()
        write_atomically(options.output, (json.dumps(found, indent=1) + "\n").encode())
    if options.output == OUTPUT:
        PAGE.write_text(fill_in(PAGE.read_text()))
    return 0


def with_nlnet(film: Film, noisy: FloatArray, **how: Any) -> FloatArray:
    """Denoise a film, given its noise unless it is said otherwise."""
    noise = nlnet.Noise.poisson(1.0) if film.photons else nlnet.Noise.white(film.sigma)
    how = {"noise": noise, "data_range": film.photons or 255.0, "clip": True, **how}
    return np.asarray(nlnet.denoise_stack(noisy, **how))


def with_bm4d(film: Film, noisy: FloatArray) -> FloatArray:
    """Denoise a film by BM4D, as a volume of frames."""
    import bm4d

    way = Stabiliser(Level(gain=1.0))
    even = way.forward(noisy) if film.photons else noisy / film.sigma
    # Scaled to a noise of 0.1, as of images from 0 to 1.
    volume = np.moveaxis(even.astype(np.float64) * 0.1, 0, -1)
    denoised = np.moveaxis(bm4d.bm4d(volume, 0.1), -1, 0) / 0.1
    return way.inverse(denoised) if film.photons else denoised * film.sigma


METHODS: dict[str, Callable[[Film, FloatArray], FloatArray]] = {
    "noisy": lambda film, noisy: noisy,
    "pages": with_nlnet,
    "pages best": lambda film, noisy: with_nlnet(film, noisy, quality="best"),
    "series": lambda film, noisy: with_nlnet(film, noisy, along=0),
    "series best": lambda film, noisy: with_nlnet(film, noisy, along=0, quality="best"),
    "found": lambda film, noisy: with_nlnet(film, noisy, along=0, noise=None),
    "bm4d": with_bm4d,
}


def mean_psnr(film: Film, frames: FloatArray, clean: FloatArray) -> float:
    """Return the mean over the frames, of values from 0 to 255."""
    scaled = np.clip(frames * (255 / film.photons if film.photons else 1.0), 0, 255)
    errors = np.mean((scaled - clean) ** 2, axis=(1, 2))
    return float(np.mean(10 * np.log10(255**2 / errors)))


def fill_in(page: str) -> str:
    """Return the page with the table of the films that were held back."""
    films = json.loads(OUTPUT.read_text())["films"]
    held = {name: row for name, row in films.items() if row["held"]}
    rows = [
        [name, *(_figure(row["psnr"].get(method)) for method in COLUMNS)]
        for name, row in held.items()
    ]
    for title, figure, kinds in (
        ("mean of slow ones", "psnr", {"slow"}),
        ("mean of fast ones", "psnr", {"fast"}),
        ("mean of those with photon noise", "psnr", {"photons"}),
        ("mean of all", "psnr", {"slow", "fast", "photons"}),
        ("CPU seconds, mean", "seconds", {"slow", "fast", "photons"}),
    ):
        chosen = [row[figure] for row in held.values() if row["kind"] in kinds]
        means = [
            statistics.mean(row[method] for row in chosen)
            if chosen and all(method in row for row in chosen)
            else None
            for method in COLUMNS
        ]
        rows.append([f"**{title}**", *map(_figure, means)])
    alone = means[list(COLUMNS).index("pages")]  # of the seconds, which are last
    ratios = [None if not each or not alone else each / alone for each in means]
    rows.append(["**times page by page**", *map(_figure, ratios)])
    return insert_block(page, NAME, format_table(["film", *COLUMNS.values()], rows))


def _figure(psnr: float | None) -> str:
    return "" if psnr is None else f"{psnr:.2f}"


if __name__ == "__main__":
    sys.exit(main())
