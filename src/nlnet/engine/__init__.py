"""The native engine from Python: what ``engine/`` at the root of the repository computes.

`library` loads it, `memory` provides what it works in, `network` makes networks and eyes from
parameter blocks, `jobs` runs its threads, and `tasks` are what it can do: denoise an image, find
groups, run stages forward and backward, and look at tiles. `estimates` finds out what the noise of
an image is.
"""

from nlnet.engine.library import describe_engine

__all__ = ["describe_engine"]
