"""The figures as tables to read and as JSON to keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

QUIET_LOAD = 0.5
"""Average load up to which a machine counts as quiet."""

_COLUMNS = (
    "method",
    "seconds",
    "ratio",
    "PSNR dB",
    "cores",
    "spread",
    "MB above",
    "B/pixel",
    "of sgemm",
)


def write_json(report: dict[str, Any], path: Path) -> None:
    """Write the whole report, rounded to what the figures are worth."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_rounded(report), indent=1) + "\n", encoding="utf-8")


def format_report(report: dict[str, Any]) -> str:
    """Return all tables as text."""
    tables = [*_format_results(report), _format_notes(report)]
    return "\n\n".join([_format_head(report), *tables])


def format_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with the first column to the left and the others to the right."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _format_head(report: dict[str, Any]) -> str:
    machine, protocol = report["machine"], report["protocol"]
    rates = ", ".join(f"{rate:.0f} on {n}" for n, rate in report["sgemm_gflops"].items())
    lines = [
        f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['system']}, {report['date']}",
        f"commit {report['commit']}, load before the run {machine['load_before']}",
        f"sigma {protocol['sigma']:g}, {protocol['data']}: {', '.join(protocol['images'])}",
        f"median of {protocol['repeats']} rounds or more; sgemm GFLOP/s by threads: {rates}",
        protocol["tuning"],
        "ratio: time over that of nlnet's fast network; cores: CPU time over wall time",
        "spread: slowest over fastest call; MB above: peak memory above the input",
    ]
    if (machine["load_before"] or 0) > QUIET_LOAD:
        lines.append("WARNING: other processes were running, so the times are not to be trusted")
    return "\n".join(lines)


def _format_results(report: dict[str, Any]) -> Iterable[str]:
    rows = report["results"]
    parts = dict.fromkeys((row["kind"], row["size"], row["threads"]) for row in rows)
    for kind, size, threads in parts:
        chosen = [
            row
            for row in rows
            if (row["kind"], row["size"], row["threads"]) == (kind, size, threads)
        ]
        megapixels = chosen[0]["pixels"] / 1e6
        title = f"{kind}, {megapixels:.2f} megapixels, {threads} thread{'s' * (threads > 1)}"
        chosen.sort(key=lambda row: float(row["seconds"]))
        yield f"{title}\n{format_table(_COLUMNS, [_format_row(row) for row in chosen])}"


def _format_notes(report: dict[str, Any]) -> str:
    notes = {row["method"]: row["note"] for row in report["results"] if row["note"]}
    return "\n".join(f"{method}: {note}" for method, note in notes.items())


def _format_row(row: dict[str, Any]) -> list[str]:
    peak = row["peak_bytes"]
    return [
        row["method"],
        f"{row['seconds']:.4f}",
        f"{row['ratio']:.2f}",
        _or_dash(row["psnr"], ".2f"),
        f"{row['cores']:.2f}",
        f"{row['spread']:.2f}",
        _or_dash(None if peak is None else peak / 1e6, ".1f"),
        _or_dash(row["peak_bytes_per_pixel"], ".0f"),
        _or_dash(row["share_of_sgemm"], ".1%"),
    ]


def _or_dash(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _rounded(value: Any) -> Any:
    """Keep five significant digits."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
