"""Write the fingerprints of the test images: ``python -m scripts.fingerprints --data DATA``.

`nlnet train` leaves out images that show one of them, whatever their names.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import nlnet.evaluation.datasets
from nlnet.evaluation.datasets import list_images, read_clean

FILE = Path(nlnet.evaluation.datasets.__file__).with_suffix(".txt")
SETS = {"bsd68": "BSD68", "set12": "Set12"}


def main() -> None:
    """Fingerprint the test sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with bsd68/ and set12/")
    arguments = parser.parse_args()
    lines = [
        f"{title} {path.stem} {nlnet.evaluation.datasets.fingerprint(planes):064x}\n"
        for folder, title in SETS.items()
        for path in list_images(arguments.data / folder)
        for planes in [read_clean(path, 1)[None]]
    ]
    FILE.write_text("".join(lines), encoding="utf-8")
    print(f"{FILE}: {len(lines)} images")


if __name__ == "__main__":
    main()
