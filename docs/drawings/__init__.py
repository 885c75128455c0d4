"""The figures of ``docs/how_it_works.md``, drawn from the shipped models and the bundled photo.

They are drawn when the documentation is built, so that they show the models as they are, and are
not kept in the repository.
"""

from __future__ import annotations

from pathlib import Path

import nlnet
from drawings.groups import draw_groups
from drawings.photo import PATCHES, read_photo
from drawings.stage import draw_stage
from drawings.steps import draw_steps
from nlnet.plotting.files import save_figure
from nlnet.plotting.inspection import draw_model

_GRAY, _COLOR = "gray-5x5-s25", "color-5x5-s25"


def draw_all(folder: Path) -> None:
    """Draw every figure into a folder, which is made if there is none."""
    folder.mkdir(parents=True, exist_ok=True)
    gray, photo = nlnet.load_model(_GRAY), read_photo()
    figures = {
        "groups": draw_groups(photo, PATCHES, gray.config),
        "stage": draw_stage(photo, gray),
        "steps": draw_steps(photo, gray),
        "learned": draw_model(gray),
        "learned-color": draw_model(nlnet.load_model(_COLOR)),
    }
    for name, figure in figures.items():
        save_figure(figure, folder / f"{name}.png")
