"""List the photos that models are trained on: ``python -m scripts.photo_list FOLDER``.

FOLDER/LICENCES.tsv says who made each photo, and its terms. With their checksums, they become
``docs/photos.tsv`` and the credits in ``docs/photos.md``.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.markdown import format_table, insert_block
from scripts.results import PROJECT

LIST = PROJECT / "docs" / "photos.tsv"
PAGE = PROJECT / "docs" / "photos.md"
COLUMNS = ("file", "artist", "terms", "as stated", "link", "sha256")
Row = Mapping[str, str]


def main() -> None:
    """Write the list and the credits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    with (folder / "LICENCES.tsv").open(encoding="utf-8", newline="") as stream:
        rows = sorted(csv.DictReader(stream, delimiter="\t"), key=lambda row: row["file"])
    for row in rows:
        row["sha256"] = hashlib.sha256((folder / row["file"]).read_bytes()).hexdigest()
    lines = ["\t".join(COLUMNS), *("\t".join(row[name] for name in COLUMNS) for row in rows)]
    LIST.write_text("\n".join(lines) + "\n", encoding="utf-8")
    PAGE.write_text(fill_in(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")
    print(f"{LIST}: {len(rows)} photos")


def read_list() -> list[Row]:
    """Read ``docs/photos.tsv``."""
    with LIST.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def fill_in(page: str, rows: Sequence[Row]) -> str:
    """Return the page with the counts and credits of these photos."""
    terms = Counter(row["terms"] for row in rows)
    counts = [(name, str(count)) for name, count in sorted(terms.items())]
    page = insert_block(page, "terms", format_table(("terms", "photos"), counts))
    works: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        # Without an artist, what the address or the file calls them.
        address = row["link"].rstrip("/").rsplit("/")[-1]
        maker = row["artist"] or address or Path(row["file"]).stem.split("-")[0]
        works.setdefault((maker, row["as stated"], row["link"]), []).append(row["file"])
    credit = [
        f"- {artist}: {', '.join(Path(file).stem for file in files)} ({stated}{_link(link)})"
        for (artist, stated, link), files in sorted(works.items())
    ]
    return insert_block(page, "credits", "\n".join(credit))


def _link(address: str) -> str:
    return f", <{address}>" if address.startswith("http") else f", {address}" if address else ""


if __name__ == "__main__":
    main()
