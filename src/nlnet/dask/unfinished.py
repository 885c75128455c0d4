"""Unfinished zarr outputs: which run they belong to, and which blocks are written.

This is stored in a folder inside the unfinished output.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import nlnet
from nlnet.dask.volumes import Volume
from nlnet.denoising.plan import Plan
from nlnet.files.settings import Settings
from nlnet.noise.record import Noise

_FOLDER = ".nlnet"
_RUN, _PLANS, _BLOCKS = "run", "plans.json", "blocks"
_NO_MATTER = ("threads", "max_memory", "max_pixels")
"""Settings that do not change the result; the shape of the blocks is part of the fingerprint."""


def fingerprint(volume: Volume, settings: Settings, blocks: Sequence[int]) -> str:
    """Return a hash that is equal for two runs if one can continue with the blocks of the other."""
    model = Path(settings.model)
    told = {
        "nlnet": nlnet.__version__,
        "source": dataclasses.asdict(volume),
        "settings": {
            name: value for name, value in vars(settings).items() if name not in _NO_MATTER
        },
        "model": hashlib.sha256(model.read_bytes()).hexdigest() if model.is_file() else str(model),
        "blocks": list(blocks),
    }

    def in_words(value: object) -> str:
        return value.to_json() if isinstance(value, Noise) else repr(value)

    return hashlib.sha256(json.dumps(told, default=in_words, sort_keys=True).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Unfinished:
    """What an unfinished output knows about itself."""

    path: Path

    @property
    def _folder(self) -> Path:
        return self.path / _FOLDER

    def fits(self, run: str) -> bool:
        """Tell whether the output was begun by a run with that fingerprint."""
        try:
            return (self._folder / _RUN).read_text("utf-8") == run
        except OSError:
            return False

    def begin(self, run: str) -> None:
        """Note the run's fingerprint, once the output has been made."""
        (self._folder / _BLOCKS).mkdir(parents=True)
        (self._folder / _RUN).write_text(run, "utf-8")

    def mark(self, block: Sequence[int]) -> None:
        """Note that a block is written."""
        (self._folder / _BLOCKS / "-".join(map(str, block))).touch()

    def blocks(self) -> set[tuple[int, ...]]:
        """Return the blocks that are written."""
        try:
            names = os.listdir(self._folder / _BLOCKS)
        except OSError:
            return set()
        return {tuple(map(int, name.split("-"))) for name in names}

    def keep_plans(self, plans: Sequence[Plan]) -> None:
        """Keep what was found out about the pages, which takes a while."""
        place = self._folder / _PLANS
        unfinished = place.with_suffix(".tmp")
        unfinished.write_text(json.dumps([plan.to_json() for plan in plans]), "utf-8")
        os.replace(unfinished, place)

    def plans(self) -> list[Plan] | None:
        """Return what an earlier run found out, None if there is nothing."""
        try:
            kept = json.loads((self._folder / _PLANS).read_text("utf-8"))
        except OSError:
            return None
        return [Plan.from_json(plan) for plan in kept]

    def forget(self) -> None:
        """Leave nothing but the output: it is finished."""
        shutil.rmtree(self._folder)
        # Pieces that zarr was writing when a process was killed.
        for piece in self.path.rglob("*.partial"):
            with contextlib.suppress(OSError):
                piece.unlink()
