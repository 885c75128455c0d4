"""What a model has learned, stage by stage: filters, psi, potentials and group weights."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure

from nlnet.arrays import FloatArray
from nlnet.model.model import Model
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters
from nlnet.network.potentials import gaussians

_POINTS = 401
_FREQUENCIES = Normalize(0.1, 0.5)
_CHANNELS = {1: ("",), 3: (", luminance", ", red-blue", ", green-magenta")}


def draw_model(model: Model, title: str | None = None) -> Figure:
    """Draw all that a model has learned, one column per stage.

    The filters are in the order of their mean frequency, and a function has the color of its
    filter. A potential is the integral of its psi, 0 at 0. Rows share their scale.
    """
    config = model.config
    colors = mpl.colormaps["viridis"].resampled(256)
    heights = [0.85 if config.patch_size < 7 else 1.0, *([1.0, 1.0] * config.channels), 0.8]
    figure = Figure(figsize=(2.35 * config.stages + 0.9, 2.0 * sum(heights)), layout="constrained")
    panels = figure.subplots(
        len(heights), config.stages, squeeze=False, sharey="row", height_ratios=heights
    )
    figure.suptitle(title or str(model), fontsize=11)
    x = np.linspace(-config.rbf_range, config.rbf_range, _POINTS)
    for column, stage in enumerate(model.stages):
        frequencies = mean_frequencies(stage.filters)
        shades = _FREQUENCIES(frequencies)
        top = panels[0][column]
        top.set_title(f"stage {column + 1}, $\\gamma$ = {stage.step_size:.3f}", fontsize=10)
        _draw_filters(top, stage, np.argsort(frequencies), colors, shades)
        for channel, psi in enumerate(psi_curves(stage, config, x)):
            row = 1 + 2 * channel
            _draw_functions(panels[row][column], x, psi, colors, shades)
            _draw_functions(panels[row + 1][column], x, potential(psi, x), colors, shades)
        _draw_weights(panels[-1][column], stage.group_weights)
    names = ["filters"]
    for plane in _CHANNELS[config.channels]:
        names += [f"$\\psi${plane}", f"potential{plane}"]
    for line, name in zip(panels, [*names, "group weights"], strict=True):
        line[0].set_ylabel(name, fontsize=10)
    _add_frequency_scale(figure, panels[0], colors)
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


def _draw_filters(
    panel: Axes,
    stage: StageParameters,
    order: npt.NDArray[np.intp],
    colors: Colormap,
    shades: FloatArray,
) -> None:
    count = len(order)
    columns = 6 if count <= 24 else 8
    size = int(stage.filters.shape[1] ** 0.5)
    for place, number in enumerate(order):
        row, column = divmod(place, columns)
        tile = stage.filters[number].reshape(size, size)
        limit = np.abs(tile).max()
        panel.imshow(
            tile,
            cmap="gray",
            vmin=-limit,
            vmax=limit,
            extent=(column + 0.08, column + 0.92, row + 0.84, row),
            interpolation="nearest",
        )
        panel.plot(
            [column + 0.08, column + 0.92],
            [row + 0.9, row + 0.9],
            color=colors(shades[number]),
            linewidth=2.2,
            solid_capstyle="butt",
        )
    panel.set_xlim(0, columns)
    panel.set_ylim(-(-count // columns), -0.05)
    panel.set_aspect("equal")
    panel.set_xticks([])
    panel.set_yticks([])
    for spine in panel.spines.values():
        spine.set_visible(False)


def _draw_functions(
    panel: Axes, x: FloatArray, values: FloatArray, colors: Colormap, shades: FloatArray
) -> None:
    panel.axhline(0, color="#bbbbbb", linewidth=0.6)
    panel.axvline(0, color="#bbbbbb", linewidth=0.6)
    for number in np.argsort(shades):
        panel.plot(x, values[number], color=colors(shades[number]), linewidth=0.9, alpha=0.85)
    panel.set_xlim(x[0], x[-1])
    panel.set_xticks([x[0], 0, x[-1]])
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)


def _draw_weights(panel: Axes, weights: FloatArray) -> None:
    places = range(1, len(weights) + 1)
    panel.axhline(0, color="#bbbbbb", linewidth=0.6)
    panel.bar(places, weights.tolist(), color="#33638d", width=0.75)
    panel.set_xticks(list(places))
    panel.tick_params(labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlabel("patch of the group", fontsize=8)


def _add_frequency_scale(figure: Figure, row: Sequence[Axes], colors: Colormap) -> None:
    bar = figure.colorbar(
        ScalarMappable(_FREQUENCIES, colors), ax=list(row), fraction=0.02, pad=0.01
    )
    bar.set_label("mean frequency\n(cycles per pixel)", fontsize=7)
    bar.ax.tick_params(labelsize=7)
