"""The models as files for browsers, in ``js/models``: ``python -m scripts.browser_models``.

A file holds the engine's parameter block without what is redundant in it, so that it loads quickly,
and gives it back to the bit (``js/src/worker/unpack.js``). Odd mixtures are stored by half, values
that float16 holds in float16, and equal bytes of all values together, before all is compressed.
"""

from __future__ import annotations

import gzip
import json
import struct
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from nlnet.cli import main as nlnet_command
from nlnet.defaults import FAMILIES
from nlnet.noise.estimation import shipped_eye

PROJECT = Path(__file__).resolve().parent.parent
MODELS = PROJECT / "js" / "models"

_HEAD = struct.Struct("<8s10I3dQ")
_REFINEMENT_HEAD = 80
_EYE_HEAD = 64


def main() -> None:
    """Write all models."""
    MODELS.mkdir(parents=True, exist_ok=True)
    for name in (name for models in FAMILIES.values() for name in models.values()):
        block = family_block(name)
        save(name, packed(block, stages_of(block)))
    block = shipped_eye().pack()
    save("eye", packed(block, [(_EYE_HEAD, 1, (len(block) - _EYE_HEAD) // 4)]))


def save(name: str, data: bytes) -> None:
    """Write a model file, and print how large it is."""
    (MODELS / f"{name}.nlnet").write_bytes(data)
    print(f"{name}: {len(data):,} bytes")


def family_block(name: str) -> bytes:
    """Return the parameter block of a family, which has values at several sigmas."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "block"
        if nlnet_command(["export", name, "--every-sigma", "-o", str(path)]) != 0:
            raise SystemExit(1)
        return path.read_bytes()


def stages_of(block: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield where the arrays of a family's block are: start, rows and columns of floats."""
    _, _, _, channels, stages, patch, group, _, rbf_count, flags, sets, *_ = _HEAD.unpack_from(
        block
    )
    filters = patch * patch - 1
    at = _HEAD.size + 8 * sets
    for _ in range(sets * stages):
        at += 8  # the step size
        for rows, columns in (
            (filters, patch * patch),
            (1, group),
            (channels * filters, rbf_count),
        ):
            yield at, rows, columns
            at += (4 * rows * columns + 7) // 8 * 8
    if flags & 2:
        at += _REFINEMENT_HEAD
        yield at, 1, (len(block) - at) // 4


def packed(block: bytes, arrays: Iterable[tuple[int, int, int]]) -> bytes:
    """Return a block as a file, given where its arrays of floats are."""
    parts: list[list[object]] = []
    streams: dict[str, list[bytes]] = {"raw": [], "half": [], "single": []}

    def add_raw(start: int, end: int) -> None:
        if end > start:
            parts.append(["raw", end - start])
            streams["raw"].append(block[start:end])

    last = 0
    for start, rows, columns in arrays:
        add_raw(last, start)
        last = start + 4 * rows * columns
        values = np.frombuffer(block[start:last], "<f4").reshape(rows, columns)
        odd = columns > 2 and bool((values == -values[:, ::-1]).all())
        kept = values[:, : columns // 2] if odd else values
        with np.errstate(over="ignore"):
            half = bool((kept.astype("<f2").astype("<f4") == kept).all())
        stream = "half" if half else "single"
        streams[stream].append(np.ascontiguousarray(kept, "<f2" if half else "<f4").tobytes())
        parts.append([stream, rows, columns, odd])
    add_raw(last, len(block))
    whole = {name: b"".join(data) for name, data in streams.items()}
    head = {"parts": parts, **{name: len(data) for name, data in whole.items()}}
    text = json.dumps(head, separators=(",", ":")).encode()
    planes = _planes(whole["half"], 2) + _planes(whole["single"], 4)
    data = struct.pack("<I", len(text)) + text + whole["raw"] + planes
    return gzip.compress(data, 9, mtime=0)


def _planes(data: bytes, size: int) -> bytes:
    """Put the first bytes of all values first, then the second ones: they are alike."""
    return np.frombuffer(data, np.uint8).reshape(-1, size).T.tobytes()


if __name__ == "__main__":
    main()
