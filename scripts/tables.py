"""The paper's tables with our models in them: ``make tables DATA=...``.

Evaluates the shipped models, keeps the results in ``docs/results/``, writes the figures into the
model files, the tables into ``docs/results.md`` and the README, and a card for every model into
``docs/models/``. With names of models, only those are evaluated anew.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from nlnet.model.loading import load_model, shipped_models
from scripts import markdown
from scripts.cards import write_card
from scripts.published import COLOR, GRAY, PAPER, REFERENCES, SIGMAS, Row
from scripts.results import (
    FAMILIES,
    PROJECT,
    RESULTS,
    evaluate_model,
    read_result,
    record_figures,
)

NAME = "tables"
_SETS = {"bsd68": "BSD68", "set12": "Set12"}
NONE = "\N{EN DASH}"


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
        "Mean PSNR in dB by the protocol of `nlnet evaluate` with seed 0: noise neither clipped "
        "nor rounded, output clipped, not rounded. Written by `make tables`; the scores of every "
        "image are in `docs/results/`, and what the models are in [their cards](models/index.md). "
        f"In brackets: the difference to the paper. {NONE} stands for a model that is not shipped, "
        "or was not evaluated since it changed.",
        "## BSD68, grayscale",
        format_table(GRAY, ("gray-5x5", "gray-7x7")),
        "## BSD68, color",
        format_table(COLOR, ("color-5x5",)),
        "## Structural similarity on BSD68, and PSNR on Set12",
        format_more(),
        "## Sources",
        "Figures of others are as they published them.",
        REFERENCES,
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def format_summary() -> str:
    """Return the two tables for the README."""
    return "\n\n".join(
        [
            "Mean PSNR in dB on BSD68, in brackets the difference to the paper. "
            "[`docs/results.md`](docs/results.md) has sources, protocol and more.",
            format_table(GRAY, ("gray-5x5", "gray-7x7")),
            format_table(COLOR, ("color-5x5",)),
        ]
    )


def format_table(published: Iterable[Row], families: Iterable[str], folder: Path = RESULTS) -> str:
    """Return one of the paper's tables in Markdown, ours below the others."""
    rows = [
        [row.method, row.parameters, *(f"{value:.2f}" for value in row.psnr)] for row in published
    ]
    for family in families:
        title = f"**`{family}`, ours**"
        cells = [
            _our_cell(f"{family}-s{sigma}", paper, folder)
            for sigma, paper in zip(SIGMAS, PAPER[family], strict=True)
        ]
        rows.append([title, _parameters(family), *cells])
    return markdown.format_table(["", "parameters", *(f"sigma {sigma}" for sigma in SIGMAS)], rows)


def format_more(folder: Path = RESULTS) -> str:
    """Return SSIM, and the other test set, of our models."""
    rows = []
    for family in FAMILIES:
        for title, measure in (("bsd68", "ssim"), ("set12", "psnr")):
            if title == "set12" and family.startswith("color"):
                continue
            found = [read_result(f"{family}-s{sigma}", title, folder) for sigma in SIGMAS]
            digits = 4 if measure == "ssim" else 2
            cells = [NONE if r is None else f"{getattr(r, measure):.{digits}f}" for r in found]
            rows.append([f"`{family}`", f"{_SETS[title]}, {measure.upper()}", *cells])
    return markdown.format_table(["", "", *(f"sigma {sigma}" for sigma in SIGMAS)], rows)


def _our_cell(name: str, paper: float, folder: Path) -> str:
    result = read_result(name, "bsd68", folder)
    # The paper has two digits: the difference is that of what one reads.
    return NONE if result is None else f"**{result.psnr:.2f}** ({result.psnr - paper:+.2f})"


def _parameters(family: str) -> str:
    members = [name for name in shipped_models() if name.startswith(f"{family}-s")]
    return f"{load_model(members[0]).parameter_count / 1000:.1f}k" if members else NONE


if __name__ == "__main__":
    main()
