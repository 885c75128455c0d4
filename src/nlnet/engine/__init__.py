"""The native engine from Python: what ``engine/`` at the root of the repository computes.

`library` loads it, `memory` is what it works in, `network` makes networks of parameter blocks,
`jobs` lets threads work, and `tasks` says what there is to do: denoise an image, find groups, and
run stages forward and backward.
"""

from __future__ import annotations

from nlnet.engine.library import describe_engine

__all__ = ["describe_engine"]
