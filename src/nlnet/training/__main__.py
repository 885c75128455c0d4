"""``python -m nlnet.training``, for torchrun."""

import sys

from nlnet.training.command import main

sys.exit(main())
