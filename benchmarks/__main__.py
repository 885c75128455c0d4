"""Measure nlnet and its peers on this machine: ``python -m benchmarks``."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.pictures import find_data

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "speed.json"


def main() -> None:
    """Parse the arguments, run the suite, and report."""
    arguments = _parse()

    from benchmarks.report import format_report, write_json
    from benchmarks.suite import Settings, run_suite

    report = run_suite(
        Settings(
            sigma=arguments.sigma,
            threads=tuple(sorted(set(arguments.threads))),
            repeats=arguments.repeats or (2 if arguments.quick else 5),
            images=1 if arguments.quick else arguments.images,
            sizes=("small", "2mp", "24mp") if arguments.large else ("small",),
            data=arguments.data,
        )
    )
    print(format_report(report))
    # A quick look is no result: it leaves the committed ones alone unless told otherwise.
    results = arguments.json or (None if arguments.quick else RESULTS)
    if results:
        write_json(report, results)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--sigma", type=float, default=25.0, help="noise, 0-255 scale (25)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers (1 2)")
    parser.add_argument("--repeats", type=int, help="rounds; the median is reported (5, quick 2)")
    parser.add_argument(
        "--images", type=int, default=3, help="small images PSNR is the mean of (3)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=find_data(),
        help="folder with bsd68 and bsds500/val; without it the bundled photo is taken",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--large", action="store_true", help="also images of 2 and 24 megapixels")
    length.add_argument("--quick", action="store_true", help="one image, two rounds, no files")
    parser.add_argument("--json", type=Path, help="where the figures go (benchmarks/results)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
