"""What is known about models: how good they are, and how long they take."""

import json
from pathlib import Path

from nlnet.model.family import Family
from nlnet.model.loading import family_of
from nlnet.model.model import Model

TIMES = Path(__file__).with_name("relative_times.json")
"""Times by family, beside that of the fast model for such images; `make bench` writes it."""


def psnr_by_sigma(model: Model | Family) -> dict[float, float]:
    """Return the mean PSNR in dB on BSD68 at the sigmas where it was measured.

    Examples
    --------
    >>> from nlnet.model.loading import load_model
    >>> psnr_by_sigma(load_model("gray-5x5-s25"))
    {25.0: 28.983}
    """
    measured = model.figures.get("bsd68_psnr")
    if measured is None:
        return {}
    if model.sigmas:
        return {float(sigma): psnr for sigma, psnr in measured.items()}
    return {model.sigma: measured}


def relative_time(name: str) -> float | None:
    """Return how long a shipped model takes, in times of the fast model for such images.

    It is measured on 481x321 pixels with two threads, on one machine; None if it was not.
    """
    times: dict[str, float] = json.loads(TIMES.read_text(encoding="utf-8"))
    return times.get(family_of(name))
