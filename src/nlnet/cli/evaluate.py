"""Measure a model on a folder of clean images.

Add noise to every image of a folder, denoise it, and compare the result with the original. The
noise depends only on the seed and on a file's position in sorted order, so results can be repeated.

Examples
--------
  nlnet evaluate photos/ --sigma 25 --model gray-5x5
  nlnet evaluate photos/ --sigma 25 --model color-5x5 --ids test.txt --json result.json

Gray models read color files as luma. Seconds are those of a warm call, without reading files and
adding noise.
"""

import argparse
import itertools
import json
from pathlib import Path

from nlnet.cli.arguments import SIGMA, THREADS, argument, whole_number
from nlnet.cli.messages import progress_bar, table
from nlnet.cli.output import check_output

ARGUMENTS = (
    argument("folder DIR", "folder of clean 8-bit images", Path),
    SIGMA,
    argument("--model M", "family, model name or model file", required=True),
    argument("--ids FILE", "use only the images named in FILE, one per line, without suffix", Path),
    argument("--seed N", "seed of the first image's noise", whole_number, 0),
    argument(
        "--json OUT", "also write the results to this file; an existing one is replaced", Path
    ),
    THREADS,
)


def run(arguments: argparse.Namespace) -> None:
    """Evaluate a model, print the table, and write the JSON if asked."""
    from nlnet.atomic import write_atomically
    from nlnet.evaluation.datasets import list_images, read_ids
    from nlnet.evaluation.protocol import evaluate_folder
    from nlnet.model.loading import select_model

    if arguments.json is not None:
        # An older result may be replaced, so a slip must not name an image or the ids.
        check_output(arguments.json, overwrite=True, suffixes=[".json"])
    ids = None if arguments.ids is None else read_ids(arguments.ids)
    total = len(list_images(arguments.folder, ids))
    done = itertools.count(1)
    with progress_bar("evaluate", total) as bar:
        evaluation = evaluate_folder(
            arguments.folder,
            select_model(arguments.model, arguments.sigma),
            arguments.sigma,
            seed=arguments.seed,
            ids=ids,
            threads=arguments.threads,
            report=lambda name, score: bar.report(next(done)),
        )
    print(f"{evaluation.model}, sigma {evaluation.sigma:g}, seed {evaluation.seed}")
    scores = {**evaluation.images, "mean": evaluation.mean}
    rows = [
        (name, f"{score.psnr:.3f}", f"{score.ssim:.4f}", f"{score.seconds:.3f}")
        for name, score in scores.items()
    ]
    header, *images, mean = table([("image", "PSNR", "SSIM", "seconds"), *rows])
    print("\n".join((header, *images, "-" * len(header), mean)))
    if arguments.json is not None:
        text = json.dumps(evaluation.to_json(), indent=2) + "\n"
        write_atomically(arguments.json, text.encode())
