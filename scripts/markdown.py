"""Pieces of Markdown that scripts write into pages of ours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def insert_block(page: str, name: str, block: str) -> str:
    """Put a block between the marks of its name, in place of what is there."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"The page must have the lines {begin} and {end} once each.")
    head, rest = page.split(begin)
    _, tail = rest.split(end)
    return f"{head}{begin}\n{block}\n{end}{tail}"


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, its first column to the left and the others to the right."""
    lines = [header, ["---", *("---:" for _ in header[1:])], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
