"""The table of ablations: ``python -m scripts.ablation``.

Writes what ``docs/results/ablation.json`` (``python -m benchmarks.ablation``) says into
``docs/ablations.md``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.ablation import RESULTS
from scripts.markdown import format_table, insert_block
from scripts.results import PROJECT

PAGE = PROJECT / "docs" / "ablations.md"


def main() -> None:
    """Write the page."""
    PAGE.write_text(fill_in(PAGE.read_text(), json.loads(RESULTS.read_text())))


def fill_in(page: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the page with a table of these rows."""
    header = ("network", "parameters", "steps", "seed", "validation PSNR, dB")
    table = format_table(
        header,
        (
            (
                row["name"],
                f"{row['parameters']:,}",
                str(row["steps"]),
                str(row["seed"]),
                f"{row['validation_psnr']:.3f}",
            )
            for row in rows
        ),
    )
    return insert_block(page, "ablations", table)


if __name__ == "__main__":
    main()
