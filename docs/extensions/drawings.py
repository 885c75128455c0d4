"""Draws the figures of "How it works" before the pages are read, from the shipped models."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from drawings import draw_all

_logger = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw when the build begins."""
    app.connect("builder-inited", _draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _draw(app: Sphinx) -> None:
    _logger.info("drawing the figures ...")
    draw_all(Path(app.srcdir) / "generated")
