"""What a model has learned, stage by stage: filters, psi, potentials and group weights."""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from nlnet.arrays import FloatArray
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters
from nlnet.network.potentials import gaussians

_POINTS = 401
_CHANNELS = {1: ("",), 3: (", luminance", ", red-blue", ", green-magenta")}


def draw_model(model: Model, title: str | None = None) -> Figure:
    """Draw all that a model has learned, one column per stage.

    The filters are in the order of their mean frequency, and a function has the color of its
    filter. A potential is the integral of its psi, 0 at 0. Rows share their scale.
    """
    config = model.config
    heights = [0.85 if config.patch_size < 7 else 1.0, *([1.0, 1.0] * config.channels), 0.8]
    figure = Figure(figsize=(2.35 * config.stages + 0.9, 2.0 * sum(heights)), layout="constrained")
    panels = figure.subplots(
        len(heights), config.stages, squeeze=False, sharey="row", height_ratios=heights
    )
    figure.suptitle(title or str(model), fontsize=11)
    shades = ScalarMappable(Normalize(0.1, 0.5), "viridis")
    x = np.linspace(-config.rbf_range, config.rbf_range, _POINTS)
    for column, stage in enumerate(model.stages):
        frequencies = mean_frequencies(stage.filters)
        order = np.argsort(frequencies)
        colors = shades.to_rgba(frequencies[order])
        filters, *functions, weights = panels[:, column]
        filters.set_title(f"stage {column + 1}, $\\gamma$ = {stage.step_size:.3f}", fontsize=10)
        _draw_filters(filters, stage.filters[order], colors)
        curves = [
            curve
            for psi in psi_curves(stage, config, x)[:, order]
            for curve in (psi, potential(psi, x))
        ]
        for panel, values in zip(functions, curves, strict=True):
            _draw_functions(panel, x, values, colors)
        _draw_weights(weights, stage.group_weights)
    names = [
        f"{name}{plane}"
        for plane in _CHANNELS[config.channels]
        for name in ("$\\psi$", "potential")
    ]
    for line, name in zip(panels, ["filters", *names, "group weights"], strict=True):
        line[0].set_ylabel(name, fontsize=10)
    bar = figure.colorbar(shades, ax=list(panels[0]), fraction=0.02, pad=0.01)
    bar.set_label("mean frequency\n(cycles per pixel)", fontsize=7)
    bar.ax.tick_params(labelsize=7)
    return figure


def mean_frequencies(filters: FloatArray) -> npt.NDArray[np.float64]:
    """Return the mean length of each filter's frequencies, in cycles per pixel, by its spectrum."""
    size = int(filters.shape[1] ** 0.5)
    spectra = np.abs(np.fft.fft2(filters.reshape(-1, size, size), s=(32, 32))) ** 2
    line = np.fft.fftfreq(32)
    length = np.hypot(line[:, None], line)
    mean: npt.NDArray[np.float64] = (spectra * length).sum((1, 2)) / spectra.sum((1, 2))
    return mean


def psi_curves(stage: StageParameters, config: NetworkConfig, x: FloatArray) -> FloatArray:
    """Return psi of every channel and filter at `x`: (C, F, len(x))."""
    return np.asarray(stage.coefficients.astype(np.float64) @ gaussians(x, config).T)


def potential(psi: FloatArray, x: FloatArray) -> FloatArray:
    """Integrate psi along its last axis by trapezoids, with 0 at the middle of `x`."""
    steps = np.diff(x) * (psi[..., 1:] + psi[..., :-1]) / 2
    total = np.concatenate([np.zeros((*psi.shape[:-1], 1)), np.cumsum(steps, axis=-1)], axis=-1)
    difference: FloatArray = total - total[..., len(x) // 2, None]
    return difference


def _draw_filters(panel: Axes, filters: FloatArray, colors: FloatArray) -> None:
    columns = 6 if len(filters) <= 24 else 8
    size = int(filters.shape[1] ** 0.5)
    for place, (tile, color) in enumerate(zip(filters, colors, strict=True)):
        row, column = divmod(place, columns)
        left, right = column + 0.08, column + 0.92
        limit = np.abs(tile).max()
        panel.imshow(
            tile.reshape(size, size),
            cmap="gray",
            vmin=-limit,
            vmax=limit,
            extent=(left, right, row + 0.84, row),
            interpolation="nearest",
        )
        below = [row + 0.9, row + 0.9]
        panel.plot([left, right], below, color=color, linewidth=2.2, solid_capstyle="butt")
    panel.set_xlim(0, columns)
    panel.set_ylim(-(-len(filters) // columns), -0.05)
    panel.set_aspect("equal")
    panel.set(xticks=[], yticks=[])
    panel.spines[:].set_visible(False)


def _draw_functions(panel: Axes, x: FloatArray, values: FloatArray, colors: FloatArray) -> None:
    panel.axvline(0, color="#bbbbbb", linewidth=0.6)
    for curve, color in zip(values, colors, strict=True):
        panel.plot(x, curve, color=color, linewidth=0.9, alpha=0.85)
    panel.set_xlim(x[0], x[-1])
    panel.set_xticks([x[0], 0, x[-1]])
    _style(panel)


def _draw_weights(panel: Axes, weights: FloatArray) -> None:
    places = list(range(1, len(weights) + 1))
    panel.bar(places, weights.tolist(), color="#33638d", width=0.75)
    panel.set_xticks(places)
    panel.set_xlabel("patch of the group", fontsize=8)
    _style(panel)


def _style(panel: Axes) -> None:
    panel.axhline(0, color="#bbbbbb", linewidth=0.6)
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
