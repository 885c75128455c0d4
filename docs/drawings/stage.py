"""One stage of the network as a diagram, with what really passes through it."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from drawings.photo import Photo
from nlnet.model.model import Model
from nlnet.plotting.inspection import mean_frequencies, psi_curves
from nlnet.torch import NLNet, plain

_PART = (105, 65, 110, 100)
"""Left, top, width and height of what passes through."""

_SHOWN = 3
"""Filters whose features are drawn."""

_BLUE, _RED, _INK = "#1f5f99", "#b5462b", "#333333"
_WIDTH, _HEIGHT = 15.0, 7.2


@dataclasses.dataclass(frozen=True)
class Passage:
    """What passes through a stage: (H, W) images, and (filters, H, W) stacks of them."""

    estimate: np.ndarray
    features: np.ndarray
    responses: np.ndarray
    correction: np.ndarray
    output: np.ndarray


def pass_through(photo: Photo, model: Model) -> Passage:
    """Run the first stage of a gray model, and keep all that lies between."""
    network = NLNet.from_model(model, backend="plain")
    noisy = torch.from_numpy(photo.noisy)[None, None]
    with torch.no_grad():
        members = plain.flat_members(network.find_groups(noisy))
        filters, weights, _, _ = network.stages[0].tensors()
        features = plain.analysis(noisy, filters, weights, members)[0, 0].numpy()
        responses = _psi(features, model)
        spread = torch.from_numpy(responses)[None, None]
        correction = plain.synthesis(spread, filters, weights, members, noisy.shape)[0, 0].numpy()
    stack = (len(features), *photo.noisy.shape)
    # Here x is y, so that (1 - gamma) x + gamma y is the noisy image itself.
    output = np.clip(photo.noisy - correction, 0, 255)
    return Passage(
        photo.noisy, features.reshape(stack), responses.reshape(stack), correction, output
    )


def _psi(features: np.ndarray, model: Model) -> np.ndarray:
    """Apply each filter's psi, (filters, pixels), by a fine table of it."""
    limit = model.config.rbf_range
    places = np.linspace(-limit, limit, 4001)
    curves = psi_curves(model.stages[0], model.config, places)[0]
    rows = [np.interp(line, places, curve) for line, curve in zip(features, curves, strict=True)]
    return np.stack(rows).astype(np.float32)


def draw_stage(photo: Photo, model: Model) -> Figure:
    """Draw the first stage of a gray model at work on a part of the photo."""
    passage = pass_through(photo.crop(*_PART), model)
    parameters = model.stages[0]
    order = np.argsort(mean_frequencies(parameters.filters))
    chosen = order[[0, len(order) // 3, len(order) - 3]]
    figure = Figure(figsize=(_WIDTH * 0.8, _HEIGHT * 0.8))
    board = figure.add_axes((0, 0, 1, 1))
    board.set_xlim(0, _WIDTH)
    board.set_ylim(0, _HEIGHT)
    board.set_axis_off()

    diagram = _Diagram(figure, board)
    diagram.image(0.3, 2.7, 1.75, passage.estimate, "estimate $x$")
    diagram.image(12.95, 2.7, 1.75, passage.output, "next estimate")
    size = model.config.patch_size
    for number, row in zip(chosen, (4.75, 2.95, 1.15), strict=True):
        scale = 2.5 * float(passage.features[number].std())
        filter_ = parameters.filters[number].reshape(size, size)
        diagram.signed(3.35, row + 0.25, 0.8, filter_, float(np.abs(filter_).max()))
        diagram.signed(4.75, row, 1.3, passage.features[number], scale)
        diagram.curve(6.6, row + 0.1, 1.35, model, int(number))
        response = passage.responses[number]
        diagram.signed(8.45, row, 1.3, response, 2.5 * float(response.std()))
        middle = row + 0.65
        diagram.arrow((2.15, 3.5), (3.3, middle))
        diagram.arrow((4.2, middle), (4.7, middle))
        diagram.arrow((6.1, middle), (6.55, middle))
        diagram.arrow((8.0, middle), (8.4, middle))
        diagram.arrow((9.85, middle), (10.65, 3.5))
    spread = 2.5 * float(passage.correction.std())
    diagram.signed(10.7, 2.85, 1.3, passage.correction, spread)
    diagram.arrow((12.05, 3.5), (12.9, 3.5))
    diagram.text(12.45, 3.62, "$-$", 18, _RED)
    diagram.bypass()
    diagram.heading(3.75, "filters $F$")
    diagram.heading(5.4, "$L_r x$:\nsums over groups")
    diagram.heading(7.27, "$\\psi$, one\nper filter")
    diagram.heading(9.1, "$\\psi(L_r x)$")
    diagram.text(11.35, 4.5, "$\\sum_r L_r^{\\top}\\psi(L_r x)$", 11, _INK)
    diagram.text(11.35, 2.5, "what is subtracted", 9, "#666666")
    diagram.text(6.6, 0.6, f"... and {len(order) - _SHOWN} more filters", 10, "#666666")
    return figure


class _Diagram:
    """Pictures and arrows on a board whose unit is the same in both directions."""

    def __init__(self, figure: Figure, board: Axes) -> None:
        self.figure = figure
        self.board = board

    def image(self, x: float, y: float, side: float, pixels: np.ndarray, title: str) -> None:
        """Place a gray image, with its name below."""
        panel = self._panel(x, y, side)
        panel.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
        self.text(x + side / 2, y - 0.25, title, 10, _INK)

    def signed(self, x: float, y: float, side: float, pixels: np.ndarray, scale: float) -> None:
        """Place an image of values around 0: below blue, above red."""
        panel = self._panel(x, y, side)
        panel.imshow(pixels, cmap="RdBu_r", vmin=-scale, vmax=scale, interpolation="nearest")

    def curve(self, x: float, y: float, side: float, model: Model, number: int) -> None:
        """Place the graph of one filter's psi."""
        panel = self._panel(x, y, side, 0.8 * side)
        limit = model.config.rbf_range
        places = np.linspace(-limit, limit, 201)
        panel.axhline(0, color="#bbbbbb", linewidth=0.8)
        panel.axvline(0, color="#bbbbbb", linewidth=0.8)
        panel.plot(places, psi_curves(model.stages[0], model.config, places)[0, number], c=_BLUE)
        panel.set_ylim(-2.2, 2.2)
        panel.set_facecolor("#f7f9fb")

    def arrow(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Draw an arrow."""
        style = {"arrowstyle": "-|>", "mutation_scale": 11, "color": "#888888", "linewidth": 1.3}
        self.board.add_patch(FancyArrowPatch(start, end, **style))

    def bypass(self) -> None:
        """Draw the way of the estimate around the filters, and the noisy image that joins it."""
        line = {"color": "#888888", "linewidth": 1.3, "solid_capstyle": "round", "zorder": 1}
        self.board.plot([1.17, 1.17, 13.82, 13.82], [4.4, 6.8, 6.8, 5.3], **line)
        self.arrow((13.82, 5.2), (13.82, 4.4))
        shape = {"boxstyle": "round,pad=0.04", "facecolor": "white", "edgecolor": _BLUE}
        self.board.add_patch(FancyBboxPatch((12.72, 5.35), 2.2, 0.6, zorder=2, **shape))
        self.text(13.82, 5.65, "$(1-\\gamma)\\,x + \\gamma\\,y$", 11, _BLUE)

    def heading(self, x: float, words: str) -> None:
        """Write above a column."""
        self.text(x, 6.3, words, 10, _INK)

    def text(self, x: float, y: float, words: str, size: float, color: str) -> None:
        """Write, centred."""
        self.board.text(x, y, words, ha="center", va="center", fontsize=size, color=color)

    def _panel(self, x: float, y: float, width: float, height: float | None = None) -> Axes:
        area = (
            x / _WIDTH,
            y / _HEIGHT,
            width / _WIDTH,
            (width if height is None else height) / _HEIGHT,
        )
        panel = self.figure.add_axes(area)
        panel.set_xticks([])
        panel.set_yticks([])
        for spine in panel.spines.values():
            spine.set(color="#999999", linewidth=0.8)
        return panel
