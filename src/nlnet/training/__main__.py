"""``python -m nlnet.training``: the same as ``nlnet train``, as a module for torchrun."""

import sys

from nlnet.cli import main

sys.exit(main(["train", *sys.argv[1:]]))
