"""The tables of ablations: ``python -m scripts.ablation``.

Writes what ``docs/results/ablation.json`` (``python -m benchmarks.ablation``), ``refinements.json``
(``python -m benchmarks.refinements``) and ``controls.json`` (``python -m benchmarks.controls``) say
into ``docs/ablations.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.ablation import RESULTS
from benchmarks.controls import RESULTS as CONTROLS
from benchmarks.refinements import RESULTS as REFINEMENTS
from benchmarks.rows import read_rows
from scripts.markdown import format_table, insert_block
from scripts.results import PROJECT

PAGE = PROJECT / "docs" / "ablations.md"
_Rows = Sequence[Mapping[str, Any]]


def main() -> None:
    """Write the page."""
    known = (read_rows(path).values() for path in (RESULTS, REFINEMENTS, CONTROLS))
    PAGE.write_text(fill_in(PAGE.read_text(), *map(list, known)))


def fill_in(page: str, stages: _Rows, refinements: _Rows, controls: _Rows = ()) -> str:
    """Return the page with a table of each kind of rows."""
    table = "Not measured yet."
    if controls:
        table = _table("network", ("parameters", "epochs", "steps", "seed"), controls)
    page = insert_block(page, "controls", table)
    page = insert_block(
        page, "ablations", _table("network", ("parameters", "steps", "seed"), stages)
    )
    counts = ("parameters", "multiplications", "epochs", "steps", "seed")
    return insert_block(page, "refinements", _table("refinement", counts, refinements))


def _table(what: str, counts: Sequence[str], rows: _Rows) -> str:
    header = (what, *(_HEADINGS.get(name, name) for name in counts), "validation PSNR, dB")
    return format_table(
        header,
        (
            (row["name"], *(f"{row[name]:,}" for name in counts), f"{row['validation_psnr']:.3f}")
            for row in rows
        ),
    )


_HEADINGS = {"multiplications": "multiply-adds a pixel"}


if __name__ == "__main__":
    main()
