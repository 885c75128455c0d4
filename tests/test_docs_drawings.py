"""The figures of "How it works" show what the network really does."""

from __future__ import annotations

import numpy as np
import pytest
from paths import PROJECT

import nlnet

pytest.importorskip("torch")
pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def docs_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROJECT / "docs"))


def test_what_passes_through_the_drawn_stage_is_the_networks() -> None:
    from drawings import photo, stage, steps

    part = photo.read_photo().crop(105, 65, 60, 50)
    model = nlnet.load_model("gray-5x5-s25")
    passage = stage.pass_through(part, model)
    noisy, first, *_, last = steps.estimates(part.noisy, model)
    np.testing.assert_array_equal(noisy, part.noisy)
    np.testing.assert_allclose(passage.output, first, atol=0.05)
    whole = nlnet.denoise(part.noisy, 25, model=model, data_range=255)
    np.testing.assert_allclose(last, whole, atol=0.01)


def test_formulas_are_drawn_with_their_words() -> None:
    pytest.importorskip("sphinx")
    from extensions.formulas import draw_formula

    plain, fraction = draw_formula("x"), draw_formula(r"\frac{x}{y}")
    assert 'aria-label="x"' in plain
    assert "nan" not in plain + fraction
    assert len(fraction) > len(plain)
