"""Training curves: PSNR over time and over epochs, of the whole run and of joint training."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nlnet.arrays import Array
from nlnet.plotting.files import COLORS, SMALL_TEXT, style_panel

Entries = Sequence[Mapping[str, Any]]

_UNITS = ((7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
_GRAY = "#555555"
_VALIDATION_STYLE: dict[str, Any] = {"linewidth": 1.8, "marker": "o", "markersize": 3.5}
_BANDS = ("#f3f1ec", "#ffffff")


class _Curve:
    """One run, and what its log says of each epoch: NaN for what was not measured."""

    def __init__(self, name: str, color: str, entries: Entries) -> None:
        self.name, self.color, self.entries = name, color, entries
        self.phases: Array = np.array([entry["phase"] for entry in entries])
        self.has_greedy_part = len(set(self.phases)) > 1
        self.time, self.place, self.train, self.val = (
            np.array([entry.get(key) for entry in entries], float)
            for key in ("time", "place", "train_psnr", "val_psnr")
        )

    def joint_part(self) -> "_Curve":
        """Return joint training alone, without the crops, whose PSNR is far from the images'."""
        joint = [entry for entry in self.entries if entry["phase"] == "joint"]
        return _Curve(self.name, self.color, [{**entry, "train_psnr": None} for entry in joint])


def draw_curves(runs: Mapping[str, Entries]) -> Figure:
    """Draw the training curves of one or several runs.

    Parameters
    ----------
    runs : mapping
        Name of each run, and its log as :func:`nlnet.training.progress.read_log` gives it.

    Returns
    -------
    Figure
        Left over time, right over epochs; above the whole runs with the phases marked, below the
        validation images in joint training, where greedy training came before it.
    """
    longest = max(entries[-1]["seconds"] for entries in runs.values())
    _, factor, unit = next(each for each in _UNITS if longest >= each[0])
    curves = []
    for (name, entries), color in zip(runs.items(), itertools.cycle(COLORS), strict=False):
        numbered = enumerate(entries, start=1)
        counted = [{**e, "place": number, "time": e["seconds"] / factor} for number, e in numbered]
        curves.append(_Curve(name, color, counted))
    rows = [("Whole run", curves)]
    joint = [curve.joint_part() for curve in curves if "joint" in curve.phases]
    if joint and any(curve.has_greedy_part for curve in curves if "joint" in curve.phases):
        rows.append(("Joint training", joint))
    figure = Figure(figsize=(11, 3.9 * len(rows) + 0.5), layout="constrained")
    panels = figure.subplots(len(rows), 2, squeeze=False, sharey="row")
    for line, (title, shown) in zip(panels, rows, strict=True):
        for panel, axis, label in ((line[0], "time", unit), (line[1], "place", "epochs")):
            _draw_panel(panel, shown, axis, label)
        _set_range(line[0], shown)
        line[0].set_ylabel("PSNR (dB)")
        line[0].set_title(title, loc="left", weight="bold", fontsize=11, pad=16)
    _add_legend(figure, curves)
    return figure


def _draw_panel(panel: Axes, curves: Sequence[_Curve], axis: str, label: str) -> None:
    for curve in curves:
        places = curve.time if axis == "time" else curve.place
        for values, style in (
            (curve.train, {"alpha": 0.35, "linewidth": 1}),
            (curve.val, _VALIDATION_STYLE),
        ):
            measured = np.isfinite(values)
            panel.plot(places[measured], values[measured], color=curve.color, **style)
        if curve.has_greedy_part:
            if len(curves) == 1:
                _shade_phases(panel, curve.phases, places)
            else:
                begin = places[curve.phases != "joint"][-1]
                panel.axvline(begin, color=curve.color, linestyle=":", linewidth=1.2)
    panel.set_xlabel(label)
    style_panel(panel, grid="y")
    panel.margins(x=0.01)


def _shade_phases(panel: Axes, phases: Array, places: Array) -> None:
    """Give every phase a band, and its name on top."""
    start = 0.0
    for number, phase in enumerate(dict.fromkeys(phases.tolist())):
        end = float(places[phases == phase][-1])
        panel.axvspan(start, end, color=_BANDS[number % 2], zorder=0, linewidth=0)
        place = panel.get_xaxis_transform()
        name = phase.removeprefix("greedy ")
        panel.text((start + end) / 2, 1.01, name, transform=place, ha="center", **SMALL_TEXT)
        start = end


def _set_range(panel: Axes, curves: Sequence[_Curve]) -> None:
    """Show all of validation, and of training all but the extremes."""
    train = np.concatenate([curve.train for curve in curves])
    values = np.concatenate([curve.val for curve in curves])
    if np.isfinite(train).any():
        values = np.append(values, np.nanquantile(train, (0.05, 0.95)))
    if np.isfinite(values).any():
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        room = 0.06 * (high - low) + 0.01
        panel.set_ylim(low - room, high + room)


def _add_legend(figure: Figure, curves: Sequence[_Curve]) -> None:
    handles = []
    for curve in curves:
        measured = curve.val[np.isfinite(curve.val)]
        note = f", best {measured.max():.3f} dB" if measured.size else ""
        handles.append(Line2D([], [], color=curve.color, linewidth=4, label=curve.name + note))
    handles.append(Line2D([], [], color=_GRAY, label="validation images", **_VALIDATION_STYLE))
    handles.append(Line2D([], [], color=_GRAY, alpha=0.4, linewidth=1, label="training crops"))
    if len(curves) > 1:
        handles.append(Line2D([], [], color=_GRAY, linestyle=":", label="joint training begins"))
    columns = 3 if len(handles) != 4 else 4
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
