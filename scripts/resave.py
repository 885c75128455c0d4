"""Write model files in the present format, their values unchanged: ``python -m scripts.resave``.

Without arguments it takes the shipped models.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from nlnet.model.loading import load_model
from scripts.results import WEIGHTS


def main() -> None:
    """Write some models anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    for path in parser.parse_args().models or sorted(WEIGHTS.glob("*.safetensors")):
        load_model(path).save(path)
        print(path)


if __name__ == "__main__":
    main()
