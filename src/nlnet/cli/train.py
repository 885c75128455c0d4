"""Train a model.

Train a model from a recipe: first greedily, stage by stage, then all stages jointly. The folder RUN
gets a checkpoint, the log (log.jsonl) and the best model on val/ (best.safetensors). This needs
torch: pip install 'nlnet[train]'.

Examples
--------
  nlnet train configs/toy.toml --data bsds500/ --out runs/toy
  nlnet train configs/toy.toml --data bsds500/ --out runs/toy --resume
  torchrun --nproc-per-node 4 -m nlnet.training configs/toy.toml --data bsds500/ --out runs/toy

Ctrl-C saves a checkpoint and stops. With --resume, the run continues, even after a crash, and ends
with bit-identical weights. The 68 test images of BSD68 are always excluded.
"""

import argparse
import sys
from pathlib import Path

from nlnet.cli.arguments import THREADS, argument
from nlnet.cli.output import needs_extra

ARGUMENTS = (
    argument("config CONFIG", "the recipe, a TOML file", Path),
    argument("--data DIR", "folder with train/, test/ and val/", Path, required=True),
    argument("--out RUN", "folder for the results", Path, required=True),
    argument("--resume", "continue the run in RUN"),
    argument(
        "--exclude IDS",
        "file with names of more images to exclude, one per line, without suffix",
        Path,
    ),
    THREADS,
    argument("--device D", "where to compute: cpu, cuda, mps", default="cpu"),
)


def run(arguments: argparse.Namespace) -> None:
    """Train a model."""
    from nlnet.cli import EXIT_INTERRUPTED

    with needs_extra("train", "torch", "tomli"):
        from nlnet.training.run import run_training

    finished = run_training(
        arguments.config,
        arguments.data,
        arguments.out,
        resume=arguments.resume,
        exclude=arguments.exclude,
        threads=arguments.threads,
        device=arguments.device,
    )
    if not finished:
        print(
            f"nlnet: interrupted; the run is saved in {str(arguments.out)!r}, go on with --resume",
            file=sys.stderr,
        )
        sys.exit(EXIT_INTERRUPTED)
