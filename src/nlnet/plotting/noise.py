"""Figures of the noise of images: its strength over the brightness, and its spectrum."""

import itertools
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nlnet.noise.record import Noise
from nlnet.plotting.files import COLORS, SMALL_TEXT, style_panel

_CHANNELS = (("red", "#c0392b"), ("green", "#2a9d5c"), ("blue", "#1f6fb4"))
_MOST_NAMES = 12
"""Images that a legend names; it would be larger than the figure with more."""


def draw_noise(records: Mapping[str, Noise]) -> Figure:
    """Draw the noise of one or several images.

    Parameters
    ----------
    records : mapping
        Name of each image, and its noise if white is 255.

    Returns
    -------
    Figure
        Left its standard deviation over the brightness, by channels where they differ; right its
        power over the frequency, relative to that of white noise.

    Examples
    --------
    >>> figure = draw_noise({"cells.tif": Noise.poisson(gain=2.0, read=3.0)})
    >>> [panel.get_xlabel() for panel in figure.axes]
    ['brightness (white is 255)', 'frequency (cycles per pixel)']
    """
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    levels, spectra = figure.subplots(1, 2)
    for (name, noise), color in zip(records.items(), itertools.cycle(COLORS), strict=False):
        _draw_levels(levels, name, noise, color, alone=len(records) == 1)
        octaves = [] if noise.kind == "none" else [octave for octave in noise.octaves if octave]
        # Averaging squares of 2, 4, ... pixels leaves the frequencies below 1/4, 1/8, ...
        frequencies = [0.5 / 2**scale for scale in range(len(octaves))]
        if octaves:
            spectra.plot(frequencies, np.square(octaves), "o-", color=color, linewidth=1.8)
    levels.set_title("How strong it is", loc="left", weight="bold", fontsize=11)
    levels.set_xlabel("brightness (white is 255)")
    levels.set_ylabel("standard deviation (white is 255)")
    levels.set_xlim(0, 255)
    levels.set_ylim(0, max(1.0, 1.15 * levels.get_ylim()[1]))
    style_panel(levels)
    _finish_spectra(spectra)
    if len(levels.get_lines()) > 1 and len(records) <= _MOST_NAMES:
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    if len(records) == 1:
        figure.suptitle("".join(f"{name}: {noise}" for name, noise in records.items()), fontsize=11)
    return figure


def _draw_levels(panel: Axes, name: str, noise: Noise, color: str, *, alone: bool) -> None:
    brightness = np.linspace(0, 255, 256)
    by_channel = alone and len(noise.levels) > 1
    for number, level in enumerate(noise.levels):
        sigmas = np.zeros(256) if noise.kind == "none" else level.sigma(brightness)
        label, shade = (name if number == 0 else None), color
        if by_channel:
            label, shade = _CHANNELS[number]
        panel.plot(brightness, sigmas, color=shade, linewidth=1.8, label=label)


def _finish_spectra(panel: Axes) -> None:
    panel.set_title("How correlated it is", loc="left", weight="bold", fontsize=11)
    panel.axhline(1, color="#999999", linestyle=":", linewidth=1.2)
    panel.text(0.02, 1.03, "white noise", transform=panel.get_yaxis_transform(), **SMALL_TEXT)
    panel.set_xlabel("frequency (cycles per pixel)")
    panel.set_ylabel("mean power below this frequency,\nrelative to all frequencies")
    panel.set_xscale("log")
    panel.set_xticks([0.125, 0.25, 0.5], ["1/8", "1/4", "1/2"])
    panel.minorticks_off()
    panel.set_xlim(0.1, 0.6)
    panel.set_ylim(0, max(2.0, 1.1 * panel.get_ylim()[1]))
    style_panel(panel)
