"""The example of plug-and-play deblurring gains what it says."""

from __future__ import annotations

import runpy

import pytest
from paths import PROJECT

pytest.importorskip("torch")
plt = pytest.importorskip("matplotlib.pyplot")


def test_plug_and_play_gains_what_the_example_says(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    script = PROJECT / "examples" / "6_deblurring.py"
    monkeypatch.setattr(plt, "show", lambda: drawn.append(plt.gcf()))
    monkeypatch.setattr("sys.argv", [str(script)])
    with plt.rc_context():
        plt.switch_backend("agg")
        names = runpy.run_path(str(script))
        plt.close("all")
    quality = names["quality"]
    gain = quality(names["estimate"]) - quality(names["blurred"])
    gain_over_filter = quality(names["estimate"]) - quality(names["filtered"])
    assert quality(names["filtered"]) > quality(names["blurred"]) + 3  # it is a fair rival
    assert gain > 6
    assert gain_over_filter > 2
    assert "gains more than 6 dB over the blurred photo, and more than 2 dB" in script.read_text()
    assert len(drawn) == 1
