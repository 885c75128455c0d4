"""What a result has to say about where it was measured."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

from nlnet.engine import describe_engine
from nlnet.evaluation.datasets import checkout_commit
from nlnet.parallel import available_cpus

PACKAGES = (
    "nlnet",
    "numpy",
    "bm3d",
    "opencv-python-headless",
    "scikit-image",
    "torch",
)


def describe_run() -> dict[str, Any]:
    """Return date, commit, machine and versions as plain values."""
    return {
        "date": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "commit": checkout_commit(),
        "machine": {
            "cpu": _cpu_model(),
            "cpus": available_cpus(),
            "engine": describe_engine(),
            "system": f"{platform.system()} {platform.machine()}",
            "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        },
        "versions": {
            "python": platform.python_version(),
            **{package: _version(package) for package in PACKAGES},
        },
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
