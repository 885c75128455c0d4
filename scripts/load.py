"""What pages tell of load: ``python -m scripts.load``.

Writes what ``load.json`` (``make load``), ``web_memory.json`` (``make bench-web-memory``),
``site.json`` (``make bench-site``) and ``busy.json`` (``make bench-busy``) in
``benchmarks/results`` say into ``docs/web.md`` and ``docs/performance.md``.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any

from benchmarks.busy import MOST_TIMES
from scripts.markdown import format_table, insert_block
from scripts.results import PROJECT

WIDTH = 100
RESULTS = PROJECT / "benchmarks" / "results"
PAGES = ("docs/web.md", "docs/performance.md")


def main() -> None:
    """Write all pages."""
    for name in PAGES:
        page = PROJECT / name
        page.write_text(fill_in(name, page.read_text()))


def fill_in(name: str, page: str) -> str:
    """Return a page with the figures of the committed results."""
    if name == "docs/performance.md":
        return insert_block(page, "busy", format_busy(_read("busy")))
    page = insert_block(page, "load", format_load(_read("load")))
    page = insert_block(page, "site", format_site(_read("site")))
    return insert_block(page, "memory", format_memory(_read("web_memory")))


def format_load(content: dict[str, Any]) -> str:
    """Return what many clients at once have met with."""
    answers = content["answers"]
    latency, waited = content["latency"], content["latency_with_retries"]
    memory = content["memory_mb"]
    others = sum(count for status, count in answers.items() if status not in ("200", "503"))
    wrong = "all of them correct" if content["wrong"] == 0 else f"{content['wrong']} of them wrong"
    source = (
        f"Measured with {content['clients']} clients for {content['seconds'] / 60:.1f} minutes on "
        f"{_machine(content['run'])} (`benchmarks/results/load.json`):"
    )
    rows = [
        ["results", f"{answers['200']:,}, {wrong}"],
        ["images per second", f"{content['images_per_second']:.1f}"],
        ["requests refused with 503", f"{answers.get('503', 0):,}"],
        ["any other answer, or none", f"{others}"],
        ["response time", _percentiles(latency)],
        ["time to a result, with retries after a 503", _percentiles(waited)],
        [
            "memory",
            f"{memory['before']:.0f} MB before, at most {memory['peak']:.0f} MB, "
            f"{memory['after']:.0f} MB after",
        ],
    ]
    return "\n\n".join([textwrap.fill(source, WIDTH), format_table(["", ""], rows)])


def format_site(content: dict[str, Any]) -> str:
    """Return what the page without a server takes, beside the native command."""
    differing = max(content["differing"].values())
    machine, size = content["run"]["machine"], content["first_visit_bytes"] / 1e6
    source = (
        f"A first visit loads {size:.2f} MB. JPEG photos take so many "
        "times as long in Chromium as by the command, from file to file, with "
        f"{content['threads']} threads each (`make bench-site` on {_machine(content['run'])}, at a "
        f"load of {machine['load_before']:.0f}, `benchmarks/results/site.json`; of its "
        f"{len(content['differing'])} PNG files, at most {differing:.1e} of the values differ from "
        "Python's):"
    )
    rows = [
        [
            photo["name"],
            *(f"{photo[name]:.2f}" for name in ("times_sse2", "times_best")),
            f"{photo['peak_mb']:,} MB",
        ]
        for photo in content["photos"]
    ]
    head = ["", "with SSE2", "with the CPU's best instructions", "memory of the whole browser"]
    return "\n\n".join([textwrap.fill(source, WIDTH), format_table(head, rows)])


def format_memory(content: dict[str, Any]) -> str:
    """Return what large photos take of the server's memory, and what it keeps of that."""
    source = (
        "With photos near the limits, one after the other, the server takes at most, and keeps "
        "when it is idle again, beyond what it had before the first of them (`make "
        f"bench-web-memory` on {_machine(content['run'])}, `benchmarks/results/web_memory.json`):"
    )
    rows = [
        [f"`/api/{row['request']}`".replace(",", "`,", 1).rstrip("`"), *_megabytes(row)]
        for row in content["requests"]
    ]
    table = format_table(["request", "at most, MB", "kept, MB"], rows)
    return "\n\n".join([textwrap.fill(source, WIDTH), table])


def format_busy(content: dict[str, Any]) -> str:
    """Return how much longer everything takes beside busy loops."""
    entries = content["entries"]
    slowest = max(entries, key=lambda entry: entry["times"])
    source = (
        f"`make bench-busy` times {len(entries)} public functions, commands and requests alone, "
        "and beside as many endless loops as there are CPUs. Half of the machine is left then, so "
        "twice the time is fair; more than three times is a failure. On "
        f"{_machine(content)}, the most is {slowest['times']:.2f} times, for "
        f"{slowest['entry']}{_too_slow(entries)} (`benchmarks/results/busy.json`):"
    )
    rows = [
        [
            entry["entry"],
            *(f"{entry[key]:.3f}" for key in ("idle_seconds", "busy_seconds")),
            f"{entry['times']:.1f}",
        ]
        for entry in entries
    ]
    table = format_table(["", "alone, s", "beside busy loops, s", "times"], rows)
    return "\n\n".join([textwrap.fill(source, WIDTH), table])


def _too_slow(entries: list[dict[str, Any]]) -> str:
    count = sum(entry["times"] > MOST_TIMES for entry in entries)
    return f", and {count} of them failed" if count else ""


def _machine(run: dict[str, Any]) -> str:
    return f"{run['machine']['cpus']} cores, commit {run['commit'][:7]}"


def _percentiles(latency: dict[str, float]) -> str:
    return f"median {latency['p50']:.2f} s, 99th percentile {latency['p99']:.2f} s"


def _megabytes(row: dict[str, Any]) -> list[str]:
    return [f"{row[key]:,.0f}" for key in ("peak_mb", "kept_mb")]


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return content


if __name__ == "__main__":
    main()
