from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlnet import Noise
from nlnet.errors import InputError
from nlnet.noise.record import Level

pytestmark = [pytest.mark.numerical, pytest.mark.engineless]

CURVE = Noise("curve", None, (Level(nodes=((0.0, 2.0), (100.0, 6.0), (300.0, 4.0))),))
CAMERA = Noise("camera", 12.0, (Level(read=12.0),), (1.0, 1.5, 2.5), certainty=0.7)


def positive(least: float = 1e-3) -> st.SearchStrategy[float]:
    return st.floats(least, 1e6)


@st.composite
def levels(draw: Callable[..., Any], kind: str, sigma: float) -> Level:
    if kind == "curve":
        # So far apart that they still are when scaled: denormal numbers would become equal.
        whole = st.integers(-(10**6), 10**6)
        places = draw(st.lists(whole, min_size=2, max_size=5, unique=True))
        return Level(nodes=tuple((place / 8, draw(positive())) for place in sorted(places)))
    if kind == "poisson":
        return Level(draw(positive()), draw(positive(0)), draw(st.floats(-1e6, 1e6)))
    return Level(read=sigma)


@st.composite
def records(draw: Callable[..., Any]) -> Noise:
    kind = draw(st.sampled_from(["none", "white", "poisson", "curve", "camera"]))
    sigma = draw(positive())
    count = draw(st.sampled_from([1, 3]))
    return Noise(
        kind,
        sigma if kind in ("white", "camera") or draw(st.booleans()) else None,
        tuple(draw(levels(kind, sigma)) for _ in range(count)),
        (1.0, *draw(st.lists(positive(), max_size=3))),
        draw(st.floats(0, 1)),
    )


# What it says


def test_white_noise_is_as_strong_everywhere() -> None:
    noise = Noise.white(12)
    assert (noise.kind, noise.sigma, noise.correlated) == ("white", 12.0, False)
    np.testing.assert_array_equal(noise.levels[0].sigma(np.array([-5, 0, 99])), 12)


def test_photon_noise_grows_with_the_light() -> None:
    level = Noise.poisson(gain=2, read=3, black=10).levels[0]
    expected = [3, 3, np.sqrt(2 * 8 + 9), np.sqrt(2 * 90 + 9)]  # no light below black
    np.testing.assert_allclose(level.sigma(np.array([0.0, 10.0, 18.0, 100.0])), expected)
    assert level.offset == 3**2 - 2 * 10


def test_a_curve_is_of_straight_lines_and_constant_outside() -> None:
    sigmas = CURVE.levels[0].sigma(np.array([-9.0, 0.0, 50.0, 200.0, 300.0, 999.0]))
    np.testing.assert_allclose(sigmas, [2, 2, 4, 5, 4, 4])


def test_the_noisiest_channel_counts() -> None:
    noise = Noise("poisson", None, (Level(1.0), Level(4.0), Level(2.0)))
    assert noise.sigma_at(100.0) == 20.0


@pytest.mark.parametrize(
    ("noise", "text"),
    [
        (Noise.white(12.3456), "white noise, sigma 12.3"),
        (Noise.poisson(0.25, 3), "photon noise, gain 0.25, read noise 3"),
        (Noise.poisson(2, 0, 64), "photon noise, gain 2, read noise 0, black at 64"),
        (CURVE, "noise that depends on the brightness, sigma 2 to 6"),
        (CAMERA, "camera noise, correlated, about 12"),
        (Noise("none", 0.0, (Level(),)), "no noise worth removing"),
    ],
)
def test_it_prints_as_a_sentence(noise: Noise, text: str) -> None:
    assert str(noise) == text


@given(noise=records(), factor=st.floats(1e-3, 1e3))
def test_the_noise_of_a_scaled_image_is_scaled(noise: Noise, factor: float) -> None:
    scaled = noise.scaled(factor)
    for before, after in zip(noise.levels, scaled.levels, strict=True):
        values = np.linspace(before.black, before.black + 1e3, 7)
        if before.nodes:
            values = np.array([x for x, _ in before.nodes])
        atol = 1e-5 * factor * float(before.sigma(values).max())  # black may be large
        np.testing.assert_allclose(
            after.sigma(values * factor), before.sigma(values) * factor, rtol=1e-5, atol=atol
        )
    assert (scaled.octaves, scaled.kind) == (noise.octaves, noise.kind)


# JSON


@given(noise=records())
def test_json_brings_every_record_back(noise: Noise) -> None:
    text = noise.to_json()
    assert "\n" not in text
    assert Noise.from_json(text) == noise


@given(text=st.text(max_size=40))
def test_any_other_text_is_a_sentence(text: str) -> None:
    with pytest.raises(InputError, match="The noise record is not"):
        Noise.from_json(text)


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(CAMERA.to_json()), **values})


def changed_level(**values: Any) -> str:
    level = json.loads(CAMERA.to_json())["levels"][0]
    return changed(levels=[{**level, **values}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "is not one that"),
        ("3", "is not one that"),
        ("{}", "is not one that"),
        (changed(format=2), "is not one that"),
        (changed(extra=1), "is not one that"),
        (changed(sigma="12"), "is not one that"),
        (changed(sigma=True), "is not one that"),
        (changed(sigma=10**400), "is not one that"),
        (changed(octaves=3), "is not one that"),
        (changed(levels=[3]), "is not one that"),
        (changed_level(gain=None), "is not one that"),
        (changed_level(nodes=[[1, 2, 3]]), "is not one that"),
        (changed(kind="pink"), "kind of noise is 'pink'"),
        (changed(kind=["white"]), "kind of noise is"),
        (changed(sigma=float("nan")), "negative or not finite"),
        (changed(sigma=0), "sigma is 0, but must be above 0"),
        (changed(octaves=[]), "must begin with 1"),
        (changed(octaves=[1, 0]), "above 0"),
        (changed(certainty=1.5), "certainty is 1.5"),
        (changed(levels=[]), "has 0 levels"),
        (changed_level(read=-1), "below 0"),
        (changed_level(gain=float("inf")), "not finite"),
        (changed_level(nodes=[[0, 1], [5, 2]]), "cannot have a curve"),
        (changed(kind="poisson"), "gain is 0, but must be above 0"),
        (changed(kind="curve"), "has 0 points, but must have at least 2"),
    ],
)
def test_bad_records_are_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Noise.from_json(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


# Bad values


@pytest.mark.parametrize("sigma", [0, -1, float("nan"), float("inf"), "5", None, True, 1j])
def test_bad_sigma(sigma: Any) -> None:
    with pytest.raises(InputError):
        Noise.white(sigma)


@pytest.mark.parametrize(
    "arguments",
    [(0,), (-1,), (float("nan"),), (1, -1), (1, float("inf")), (1, 0, float("nan")), ("1",)],
)
def test_bad_photon_noise(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InputError):
        Noise.poisson(*arguments)


@pytest.mark.parametrize(
    "nodes",
    [((1.0, 2.0),), ((1.0, 2.0), (1.0, 3.0)), ((2.0, 1.0), (1.0, 1.0)), ((0.0, 0.0), (9.0, 0.0))],
)
def test_bad_curves(nodes: tuple[tuple[float, float], ...]) -> None:
    with pytest.raises(InputError, match="curve"):
        Noise("curve", None, (Level(nodes=nodes),))


def test_channels_may_have_a_curve_and_a_line() -> None:
    noise = Noise("curve", None, (Level(gain=2.0), CURVE.levels[0], Level(gain=1.0)))
    assert str(noise) == str(CURVE)
    assert Noise.from_json(noise.to_json()) == noise
    with pytest.raises(InputError, match="has no curve"):
        Noise("curve", None, (Level(gain=2.0),))
    with pytest.raises(InputError, match="both a curve and a gain"):
        Noise("curve", None, (Level(gain=2.0, nodes=CURVE.levels[0].nodes),))


def test_white_noise_says_one_thing() -> None:
    with pytest.raises(InputError, match="say something else"):
        Noise("white", 5.0, (Level(read=6.0),))
    with pytest.raises(InputError, match="say something else"):
        Noise("white", 5.0, (Level(gain=1.0, read=5.0),))
