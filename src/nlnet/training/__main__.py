"""``python -m nlnet.training``: what ``nlnet train`` does, as a module that torchrun can start."""

import sys

from nlnet.cli import main

sys.exit(main(["train", *sys.argv[1:]]))
