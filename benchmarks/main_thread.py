"""How long a page keeps its main thread busy at a time, in chromium."""

from __future__ import annotations

import json

CATEGORIES = ["toplevel"]
"""What ``browser.start_tracing(categories=...)`` has to note."""

LONG = 50
"""Milliseconds from which on people may notice that a page does not answer."""


def longest_task(trace: bytes) -> float:
    """Return the milliseconds that the longest task takes of a CPU, from what was noted.

    Not those that pass meanwhile: work on other threads, or of other programs, may interrupt it.
    """
    events = json.loads(trace)["traceEvents"]
    names = [event for event in events if event["name"] == "thread_name"]
    main = [event for event in names if event["args"]["name"] == "CrRendererMain"]
    threads = {(event["pid"], event["tid"]) for event in main}
    taken = [
        event.get("tdur", 0) / 1000  # none: less than a microsecond
        for event in events
        if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) in threads
    ]
    return max(taken)
