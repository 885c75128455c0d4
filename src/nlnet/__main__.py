"""``python -m nlnet`` is the command line."""

import sys

from nlnet.cli import main

if __name__ == "__main__":
    sys.exit(main())
