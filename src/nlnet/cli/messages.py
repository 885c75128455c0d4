"""What commands say: errors, what was done to a file, tables, and progress bars.

Bars are on standard error, only on a terminal, and only if the work takes a while.
"""

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm

    from nlnet.files.findings import Findings


def error_line(message: object) -> str:
    """Return an error as one line, whatever names with line breaks it quotes."""
    return "nlnet: error: " + " ".join(str(message).split())


def outcome_lines(
    source: object, target: object, findings: "Findings", *, as_json: bool
) -> list[str]:
    """Say what was done to a file: lines for people, or one of JSON for scripts."""
    if as_json:
        return [json_line("written", source, target=target, **dataclasses.asdict(findings))]
    return [f"{source}: {line}" for line in (*_estimate(findings), *findings.notes)]


def json_line(status: str, source: object = None, **more: Any) -> str:
    """Return a line for scripts: the status, the file that it is about, and what belongs to it."""
    about = {} if source is None else {"source": source}
    return json.dumps({"status": status, **about, **more}, default=str)


def _estimate(findings: "Findings") -> list[str]:
    """Say what noise was found, and how many pages stay as they are."""
    if not findings.estimated:
        return []
    kinds = dict.fromkeys(findings.noise)
    if len(kinds) == 1:
        lines = [f"found {next(iter(kinds))}"]
    else:
        sigmas = findings.sigmas
        lines = [f"found noise of {min(sigmas):.2f} to {max(sigmas):.2f}"]
    clean = sum(sigma == 0 for sigma in findings.sigmas)
    if clean:
        which = "" if len(findings.sigmas) == 1 else f"{clean} of {len(findings.sigmas)} pages "
        lines.append(f"{which}left as it is (--sigma S removes noise anyway)")
    return lines


def table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    """Return rows as lines, with the columns of these numbers on the left and others on the right.

    Examples
    --------
    >>> table([("image", "PSNR"), ("a.png", "30.123")])
    ['image    PSNR', 'a.png  30.123']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    pads = [str.ljust if number in left else str.rjust for number in range(len(widths))]
    lines = (zip(pads, row, widths, strict=True) for row in rows)
    return ["  ".join(pad(cell, width) for pad, cell, width in line).rstrip() for line in lines]


_DELAY = 1.5
"""Seconds before a bar appears."""

_SHARE = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}"
_FILES = "{desc}: {n:.0f}/{total}|{bar}| {elapsed}, {remaining} left"


class Bar:
    """A bar, and lines of text above it."""

    def __init__(self, shown: "tqdm[Any] | None") -> None:
        self._shown = shown

    def report(self, done: float) -> None:
        """Show how much is done."""
        if self._shown is not None:
            self._shown.update(done - self._shown.n)

    def say(self, line: str, stream: TextIO | None = None) -> None:
        """Print a line, on standard output unless said otherwise."""
        write = print if self._shown is None else self._shown.write
        write(line, file=stream or sys.stdout)


@contextmanager
def progress_bar(title: str, files: int | None = None) -> Iterator[Bar]:
    """Show how many files are done or, without a number of them, the share of the work."""
    if not sys.stderr.isatty():
        yield Bar(None)  # without a terminal, do not even load tqdm
        return
    from tqdm import tqdm

    total, layout = (1.0, _SHARE) if files is None else (files, _FILES)
    with tqdm(total=total, desc=title, delay=_DELAY, leave=False, bar_format=layout) as shown:
        yield Bar(shown)
