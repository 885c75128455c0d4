"""Formulas as SVG, drawn by matplotlib: no script from elsewhere, no LaTeX, no font to install."""

from __future__ import annotations

import html

import numpy as np
from docutils import nodes
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

_SIZE = 100
"""Units in one em."""

_COMMANDS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer, and make it the one in use."""
    app.add_html_math_renderer("svg", (_inline, None), (_block, None))
    app.config.html_math_renderer = "svg"
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def draw_formula(latex: str) -> str:
    """Return a formula as an SVG element in the color and size of the text around it."""
    outline = TextPath((0, 0), f"${latex.strip()}$", size=_SIZE)
    box = outline.get_extents()
    left, bottom = min(0.0, box.x0), min(0.0, box.y0)
    width, height = box.x1 - left, box.y1 - bottom
    steps = []
    for points, code in outline.iter_segments(simplify=False):
        places = np.reshape(points, (-1, 2)) * (1, -1)  # SVG's y axis points down
        numbers = " ".join(f"{value:.1f}" for value in places.ravel())
        steps.append("Z" if code == Path.CLOSEPOLY else f"{_COMMANDS[code]}{numbers}")
    return (
        f'<svg class="formula" role="img" aria-label="{html.escape(latex.strip())}" '
        f'viewBox="{left:.1f} {-box.y1:.1f} {width:.1f} {height:.1f}" '
        f'style="width: {width / _SIZE:.3f}em; height: {height / _SIZE:.3f}em; '
        f'vertical-align: {bottom / _SIZE:.3f}em">'
        f'<path fill="currentColor" d="{"".join(steps)}"/></svg>'
    )


def _inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(draw_formula(node.astext()))
    raise nodes.SkipNode


def _block(writer: HTML5Translator, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math">{draw_formula(node.astext())}</div>')
    raise nodes.SkipNode
