"""The code in Markdown pages: what readers copy, and what tests therefore run.

A fenced block has a language. Before one that cannot be run stands why: `<!-- not run: WHY -->`.
What a page needs but does not show, such as an image to work on, stands in comments that begin with
the language, `<!-- sh`, on lines of their own; they are run as blocks are.
"""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

_PIECES = re.compile(
    r"^[ ]*<!--[ ]not[ ]run:[ ](?P<reason>[^\n]+?)[ ]-->[ ]*$"
    r"|^[ ]*<!--[ ](?P<hidden>sh|python)\n(?P<setup>.*?)^[ ]*-->[ ]*$"
    r"|^(?P<indent>[ ]*)(?P<fence>`{3,})(?P<language>[^\n`]*)\n(?P<code>.*?)^[ ]*(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclasses.dataclass(frozen=True)
class Block:
    """A piece of code in a page; `reason` says why it is not run, if it is not."""

    page: str
    line: int
    language: str
    code: str
    reason: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def read_blocks(path: Path, name: str) -> Iterator[Block]:
    """Yield a page's blocks in their order; raise ValueError for a mark that belongs to none."""
    text = path.read_text()
    reason, marked = None, 0
    for piece in _PIECES.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if reason is not None and (piece["fence"] is None or text[marked : piece.start()].strip()):
            raise ValueError(f"{name}:{line}: 'not run' must stand right before a block.")
        if piece["fence"] is not None:
            code = textwrap.dedent(piece["code"])
            yield Block(name, line, piece["language"].strip(), code, reason)
            reason = None
        elif piece["hidden"] is not None:
            yield Block(name, line, piece["hidden"], textwrap.dedent(piece["setup"]))
        else:
            reason, marked = piece["reason"], piece.end()
    if reason is not None:
        raise ValueError(f"{name}: the last 'not run' stands before no block.")
