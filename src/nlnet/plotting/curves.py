"""Training curves: PSNR over time and over epochs, of the whole run and of joint training."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from nlnet.plotting.files import COLORS

Entries = Sequence[Mapping[str, Any]]

_UNITS = ((7200.0, 3600.0, "hours"), (120.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
_GRAY = "#555555"
_VALIDATION_STYLE: dict[str, Any] = {"linewidth": 1.8, "marker": "o", "markersize": 3.5}
_BANDS = ("#f3f1ec", "#ffffff")


class _Point(NamedTuple):
    """One epoch of a run."""

    phase: str
    epoch: float  # counted over all phases
    time: float  # in the unit of the figure
    train: float | None
    validation: float | None


class _Curve(NamedTuple):
    """One run."""

    name: str
    color: str
    points: list[_Point]

    def joint_part(self) -> _Curve:
        """Return joint training alone, without the crops, whose PSNR is far from the images'."""
        points = [point for point in self.points if point.phase == "joint"]
        return self._replace(points=[point._replace(train=None) for point in points])

    def line(self, axis: str, measure: str) -> tuple[list[float], list[float]]:
        """Return places and values of a measure, where there are any."""
        measured = [point for point in self.points if getattr(point, measure) is not None]
        return (
            [getattr(point, axis) for point in measured],
            [getattr(point, measure) for point in measured],
        )

    @property
    def has_greedy_part(self) -> bool:
        return len({point.phase for point in self.points}) > 1


def draw_curves(runs: Mapping[str, Entries]) -> Figure:
    """Draw the training curves of one or several runs.

    Parameters
    ----------
    runs : mapping
        Name of each run, and its log as :func:`nlnet.training.log.read_log` gives it.

    Returns
    -------
    Figure
        Left over time, right over epochs; above the whole runs with the phases marked, below the
        validation images in joint training, where greedy training came before it.
    """
    longest = max(entries[-1]["seconds"] for entries in runs.values())
    _, factor, unit = next(each for each in _UNITS if longest >= each[0])
    curves = [
        _read_curve(name, entries, color, factor)
        for (name, entries), color in zip(runs.items(), itertools.cycle(COLORS), strict=False)
    ]
    rows = [("Whole run", curves)]
    if any(curve.has_greedy_part and curve.joint_part().points for curve in curves):
        rows.append(
            (
                "Joint training",
                [curve.joint_part() for curve in curves if curve.joint_part().points],
            )
        )
    figure = Figure(figsize=(11, 3.9 * len(rows) + 0.5), layout="constrained")
    panels = figure.subplots(len(rows), 2, squeeze=False, sharey="row")
    for line, (title, shown) in zip(panels, rows, strict=True):
        for panel, axis, label in ((line[0], "time", unit), (line[1], "epoch", "epochs")):
            _draw_panel(panel, shown, axis, label)
        _set_range(line[0], shown)
        line[0].set_ylabel("PSNR (dB)")
        line[0].set_title(title, loc="left", weight="bold", fontsize=11, pad=16)
    _add_legend(figure, curves)
    return figure


def _read_curve(name: str, entries: Entries, color: str, factor: float) -> _Curve:
    points = [
        _Point(
            entry["phase"],
            float(number),
            entry["seconds"] / factor,
            entry["train_psnr"],
            entry.get("val_psnr"),
        )
        for number, entry in enumerate(entries, start=1)
    ]
    return _Curve(name, color, points)


def _draw_panel(panel: Axes, curves: Sequence[_Curve], axis: str, label: str) -> None:
    for curve in curves:
        panel.plot(*curve.line(axis, "train"), color=curve.color, alpha=0.35, linewidth=1)
        panel.plot(*curve.line(axis, "validation"), color=curve.color, **_VALIDATION_STYLE)
        if len(curves) == 1 and curve.has_greedy_part:
            _shade_phases(panel, curve, axis)
        elif curve.has_greedy_part:
            _mark_joint_training(panel, curve, axis)
    panel.set_xlabel(label)
    panel.grid(axis="y", color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)
    panel.margins(x=0.01)


def _shade_phases(panel: Axes, curve: _Curve, axis: str) -> None:
    """Give every phase a band, and its name on top."""
    start = 0.0
    for number, (phase, points) in enumerate(
        itertools.groupby(curve.points, key=lambda point: point.phase)
    ):
        end = getattr(list(points)[-1], axis)
        panel.axvspan(start, end, color=_BANDS[number % 2], zorder=0, linewidth=0)
        panel.text(
            (start + end) / 2,
            1.01,
            phase.removeprefix("greedy "),
            transform=panel.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=8,
            color="#666666",
        )
        start = end


def _mark_joint_training(panel: Axes, curve: _Curve, axis: str) -> None:
    greedy = [point for point in curve.points if point.phase != "joint"]
    panel.axvline(getattr(greedy[-1], axis), color=curve.color, linestyle=":", linewidth=1.2)


def _set_range(panel: Axes, curves: Sequence[_Curve]) -> None:
    """Show all of validation, and of training all but the extremes."""
    values = [value for curve in curves for value in curve.line("epoch", "validation")[1]]
    train = sorted(value for curve in curves for value in curve.line("epoch", "train")[1])
    if train:
        values += [train[len(train) // 20], train[-1 - len(train) // 20]]
    if not values:
        return
    room = 0.06 * (max(values) - min(values)) + 0.01
    panel.set_ylim(min(values) - room, max(values) + room)


def _add_legend(figure: Figure, curves: Sequence[_Curve]) -> None:
    handles = []
    for curve in curves:
        _, scores = curve.line("epoch", "validation")
        note = f", best {max(scores):.3f} dB" if scores else ""
        handles.append(Line2D([], [], color=curve.color, linewidth=4, label=curve.name + note))
    handles.append(Line2D([], [], color=_GRAY, label="validation images", **_VALIDATION_STYLE))
    handles.append(Line2D([], [], color=_GRAY, alpha=0.4, linewidth=1, label="training crops"))
    if len(curves) > 1:
        handles.append(Line2D([], [], color=_GRAY, linestyle=":", label="joint training begins"))
    columns = 3 if len(handles) != 4 else 4
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
