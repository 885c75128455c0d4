"""The git commit of this code, which is stored with results."""

from __future__ import annotations

import subprocess
from pathlib import Path


def checkout_commit() -> str | None:
    """Return the git commit of the package's own checkout, None outside one.

    A package installed into an environment that lies inside some other repository is not that
    repository's code: there the answer is None too.
    """
    # The first call fails unless git tracks this very file.
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("rev-parse", "HEAD")


def _git(*arguments: str) -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
