"""The paper's tables with our models in them: ``make tables DATA=...``.

Evaluates the shipped models, keeps the results in ``docs/results/``, writes the figures into the
model files, the tables into ``docs/results.md`` and the README, and a card for every model into
``docs/models/``. With names of models, only those are evaluated anew.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nlnet.model.loading import load_model, shipped_models
from scripts import markdown
from scripts.cards import write_card
from scripts.published import COLOR, GRAY, PAPER, REFERENCES, SIGMAS, Row
from scripts.results import (
    EVERY_SIGMA,
    NEAREST,
    PAPERS,
    PROJECT,
    RESULTS,
    SIGMAS_OF,
    SINGLE,
    Result,
    evaluate_model,
    read_at,
    read_result,
    record_figures,
)

NAME = "tables"
_SETS = {"bsd68": "BSD68", "set12": "Set12"}
NONE = "\N{EN DASH}"
_GRAY = ("gray-5x5", "gray-7x7", "gray", "open-gray", "gray-plus")
_COLOR = ("color-5x5", "color", "open-color", "color-plus")
_ONE_MODEL = (
    "Models without numbers in their names are for every sigma. The two named plus go beyond the "
    "paper: [a refinement]({0}how_it_works.md#the-refinement) follows their stages. Those that "
    "begin with `open-` are trained on [photos under open terms]({0}photos.md) alone, all others "
    "on BSDS500, which is for non-commercial research and education."
)


def main() -> None:
    """Run the whole of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", help="models to evaluate (default: all shipped)")
    parser.add_argument("--data", type=Path, help="folder with bsd68/, set12/ and bsds500/")
    arguments = parser.parse_args()
    names = arguments.models or shipped_models()
    if arguments.data is not None:
        for name in names:
            evaluate_model(name, arguments.data)
            record_figures(name)
    for name in shipped_models():
        write_card(name)
    (PROJECT / "docs" / "results.md").write_text(format_page())
    readme = PROJECT / "README.md"
    readme.write_text(markdown.insert_block(readme.read_text(), NAME, format_summary()))


def format_page() -> str:
    """Return ``docs/results.md``."""
    parts = [
        "# Results",
        "Mean PSNR in dB, higher is better. The best of each column is bold; in parentheses, the "
        f"difference from the paper. {_ONE_MODEL.format('')}",
        "## BSD68, gray",
        format_table(GRAY, _GRAY),
        "## BSD68, color",
        format_table(COLOR, _COLOR),
        "## Every sigma",
        "The models for every sigma on BSD68, beside the nearest of the models for one sigma, "
        "for which the image is scaled:",
        format_every_sigma(),
        "## SSIM on BSD68, and PSNR on Set12",
        format_more(),
        "The fourth image of Set12 is cut from an image that our models are trained on, in "
        "BSDS500's `train`.",
        "## Sharper photos",
        "BSD68 is one kind of picture. The 24 photos that [validate the open models](photos.md) "
        "are scaled down from large ones, so they are sharper. PSNR in dB:",
        format_photos(),
        "## How it is measured",
        "Our models are measured by `nlnet evaluate` with seed 0: the noise is neither clipped nor "
        "rounded, and the output is clipped but not rounded. `make tables` writes this page. "
        "`docs/results/` has the scores of every image, and [the model cards](models/index.md) "
        f"tell how each model was trained. {NONE} means that a model is not shipped, or has not "
        "been evaluated since it changed.",
        "## Sources",
        "The numbers of other methods are as published.",
        format_references(),
        format_links(),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def format_summary() -> str:
    """Return the two tables for the README."""
    return "\n\n".join(
        [
            "Mean PSNR in dB on BSD68, higher is better. The best of each column is bold; in "
            f"parentheses, the difference from the paper. "
            f"{_ONE_MODEL.format('docs/')} "
            "[Results](docs/results.md) says how it is measured.",
            "### Gray",
            format_table(GRAY, _GRAY),
            "### Color",
            format_table(COLOR, _COLOR),
            format_links(),
        ]
    )


def format_table(published: Iterable[Row], families: Iterable[str], folder: Path = RESULTS) -> str:
    """Return one of the paper's tables in Markdown, ours below the others."""
    rows = [Shown(row.method, row.parameters, row.psnr, None) for row in published]
    for family in families:
        if family not in PAPER and family not in shipped_models():
            continue
        found = [read_at(family, "bsd68", sigma, folder) for sigma in SIGMAS]
        psnr = tuple(None if result is None else result.psnr for result in found)
        rows.append(Shown(f"nlnet `{family}` (ours)", _parameters(family), psnr, PAPER.get(family)))
    # What counts is what a reader sees: two digits, as in the papers.
    best = [
        max(round(value, 2) for value in column if value is not None)
        for column in zip(*(row.psnr for row in rows), strict=True)
    ]
    header = ["", "parameters", *(f"sigma {sigma}" for sigma in SIGMAS)]
    return markdown.format_table(header, [row.cells(best) for row in rows])


class Shown(NamedTuple):
    """A row of a table: PSNR for each of `SIGMAS`, and the paper's if it is to be compared."""

    method: str
    parameters: str
    psnr: tuple[float | None, ...]
    paper: tuple[float, ...] | None

    def cells(self, best: Sequence[float]) -> list[str]:
        """Return the row's cells, bold where it is the best of its column."""
        cells = []
        for place, value in enumerate(self.psnr):
            if value is None:
                cells.append(NONE)
                continue
            shown = round(value, 2)
            text = f"**{shown:.2f}**" if shown == best[place] else f"{shown:.2f}"
            if self.paper is not None:
                text += f" ({_signed(shown - self.paper[place])})"
            cells.append(text)
        return [self.method, self.parameters, *cells]


def _signed(difference: float) -> str:
    return "0.00" if abs(difference) < 0.005 else f"{difference:+.2f}"


def format_references() -> str:
    """Return the list of papers, each with a link to it."""
    items = []
    for number, (address, words) in enumerate(REFERENCES.values(), 1):
        text = f"{number}. {words} [{address.partition('//')[2]}]({address})"
        items.append(textwrap.fill(text, 100, subsequent_indent="   ", break_on_hyphens=False))
    return "\n".join(items)


def format_links() -> str:
    """Return what makes ``[[1]]`` in a table a link to the paper."""
    papers = enumerate(REFERENCES.items(), 1)
    return "\n".join(f'[{number}]: {address} "{title}"' for number, (title, (address, _)) in papers)


def format_more(folder: Path = RESULTS) -> str:
    """Return SSIM, and the other test set, of our models."""
    rows = []
    for family in (*PAPERS, *_every_sigma()):
        for title, measure in (("bsd68", "ssim"), ("set12", "psnr")):
            if title == "set12" and "color" in family:
                continue
            found = [read_at(family, title, sigma, folder) for sigma in SIGMAS]
            digits = 4 if measure == "ssim" else 2
            cells = [NONE if r is None else f"{getattr(r, measure):.{digits}f}" for r in found]
            rows.append([f"`{family}`", f"{_SETS[title]}, {measure.upper()}", *cells])
    return markdown.format_table(["", "", *(f"sigma {sigma}" for sigma in SIGMAS)], rows)


def format_photos(folder: Path = RESULTS) -> str:
    """Return what our models for every sigma reach on the photos."""
    sigmas = SIGMAS_OF["open"]
    rows = []
    for name in _every_sigma():
        found = [_psnr(read_result(name, "open", folder, sigma)) for sigma in sigmas]
        rows.append([f"`{name}`", *(NONE if one is None else f"{one:.2f}" for one in found)])
    return markdown.format_table(["", *(f"sigma {sigma}" for sigma in sigmas)], rows)


def format_every_sigma(folder: Path = RESULTS) -> str:
    """Return the models for every sigma, and what they gain over those for one."""
    rows = []
    for name in _every_sigma():
        found = [read_result(name, "bsd68", folder, sigma) for sigma in EVERY_SIGMA]
        nearest = [read_result(name, "bsd68", folder, sigma, NEAREST) for sigma in EVERY_SIGMA]
        pairs = list(zip(map(_psnr, found), map(_psnr, nearest), strict=True))
        single = SINGLE[load_model(name).config.channels]
        rows += [
            [f"`{name}`", *(NONE if a is None else f"{a:.2f}" for a, _ in pairs)],
            [f"nearest `{single}`", *(NONE if b is None else f"{b:.2f}" for _, b in pairs)],
            [
                "difference",
                *(NONE if a is None or b is None else f"{a - b:+.3f}" for a, b in pairs),
            ],
        ]
    return markdown.format_table(["sigma", *map(str, EVERY_SIGMA)], rows)


def _every_sigma() -> list[str]:
    """Return the names of the shipped models for every sigma."""
    return [name for name in (*_GRAY, *_COLOR) if name in shipped_models()]


def _psnr(result: Result | None) -> float | None:
    return None if result is None else result.psnr


def _parameters(family: str) -> str:
    members = [name for name in shipped_models() if name in (family, f"{family}-s25")]
    return f"{load_model(members[0]).parameter_count / 1000:.1f}k" if members else NONE


if __name__ == "__main__":
    main()
