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
from nlnet.noise.camera import Camera
from nlnet.noise.record import AnyLevel, Curve, Level, Nodes, NoNoise, Photon, White

pytestmark = [pytest.mark.numerical, pytest.mark.engineless]

CURVE = Curve((Nodes(((0.0, 2.0), (100.0, 6.0), (300.0, 4.0))),))
CAMERA = Camera.even(12.0, (1.0, 1.5, 2.5), certainty=0.7)


def positive(least: float = 1e-3) -> st.SearchStrategy[float]:
    return st.floats(least, 1e6)


@st.composite
def levels(draw: Callable[..., Any], curve: bool) -> AnyLevel:
    if curve:
        # So far apart that they still are when scaled: denormal numbers would become equal.
        whole = st.integers(-(10**6), 10**6)
        places = draw(st.lists(whole, min_size=2, max_size=5, unique=True))
        return Nodes(tuple((place / 8, draw(positive())) for place in sorted(places)))
    return Level(draw(positive()), draw(positive(0)), draw(st.floats(-1e6, 1e6)))


@st.composite
def maps(draw: Callable[..., Any]) -> np.ndarray:
    height, width = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    values = draw(st.lists(positive(), min_size=6, max_size=6))
    strengths = np.array(values, np.float32).reshape(2, 3, 1, 1)
    return strengths * np.linspace(0.5, 1.5, height * width, dtype=np.float32).reshape(
        height, width
    )


@st.composite
def records(draw: Callable[..., Any]) -> Noise:
    kind = draw(st.sampled_from(["none", "white", "poisson", "curve", "camera"]))
    certainty = draw(st.floats(0, 1))
    if kind == "camera":
        return Camera(draw(maps()), certainty=certainty)
    if kind == "white":
        return White(draw(positive()), certainty=certainty)
    if kind == "none":
        return NoNoise(draw(positive(0)), certainty=certainty)
    count = draw(st.sampled_from([1, 3]))
    found = tuple(draw(levels(kind == "curve")) for _ in range(count))
    return (Curve if kind == "curve" else Photon)(found, certainty=certainty)  # type: ignore[arg-type]


# What it says


def test_white_noise_is_as_strong_everywhere() -> None:
    noise = Noise.white(12)
    assert (noise.kind, noise.sigma, noise.octaves) == ("white", 12.0, (1.0, 1.0, 1.0))
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
    noise = Photon((Level(1.0), Level(4.0), Level(2.0)))
    assert noise.sigma_at(100.0) == 20.0


@pytest.mark.parametrize(
    ("noise", "text"),
    [
        (Noise.white(12.3456), "white noise, sigma 12.3"),
        (Noise.poisson(0.25, 3), "photon noise, gain 0.25, read noise 3"),
        (Noise.poisson(2, 0, 64), "photon noise, gain 2, read noise 0, black at 64"),
        (CURVE, "noise that depends on the brightness, sigma 2 to 6"),
        (CAMERA, "camera noise, correlated, about 12"),
        (NoNoise(), "no noise worth removing"),
    ],
)
def test_it_prints_as_a_sentence(noise: Noise, text: str) -> None:
    assert str(noise) == text


@given(noise=records(), factor=st.floats(1e-3, 1e3))
def test_the_noise_of_a_scaled_image_is_scaled(noise: Noise, factor: float) -> None:
    scaled = noise.scaled(factor)
    for before, after in zip(noise.levels, scaled.levels, strict=True):
        values = (
            np.array([x for x, _ in before.nodes])
            if isinstance(before, Nodes)
            else np.linspace(before.black, before.black + 1e3, 7)
        )
        atol = 1e-5 * factor * float(before.sigma(values).max())  # black may be large
        np.testing.assert_allclose(
            after.sigma(values * factor), before.sigma(values) * factor, rtol=1e-5, atol=atol
        )
    assert scaled.kind == noise.kind
    assert scaled.octaves == pytest.approx(noise.octaves)


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


def test_maps_are_saved_as_short_numbers() -> None:
    strengths = np.full((2, 3, 1, 2), 0.1, np.float32)
    assert json.loads(Camera(strengths).to_json())["strengths"][0][0] == [[0.1, 0.1]]


FIRST_LEVEL = {"gain": 0.0, "read": 12.0, "black": 0.0, "nodes": []}
FIRST = {
    "format": 1,
    "kind": "camera",
    "sigma": 12.0,
    "levels": [FIRST_LEVEL],
    "octaves": [1.0, 1.5, 2.5],
    "certainty": 0.7,
}


def first(**values: Any) -> str:
    """A record as earlier versions wrote them."""
    return json.dumps({**FIRST, **values})


def first_level(**values: Any) -> str:
    return first(levels=[{**FIRST_LEVEL, **values}])


LINE = {"gain": 2.0, "read": 3.0, "black": 1.0, "nodes": []}
NODES = {**FIRST_LEVEL, "read": 0.0, "nodes": [[0.0, 2.0], [100.0, 6.0], [300.0, 4.0]]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (first(), CAMERA),
        (first(octaves=[1.0, 1.5]), Camera.even(12.0, (1.0, 1.5), 0.7)),
        (first(sigma=None), CAMERA),
        (first(kind="white", octaves=[1.0]), White(12.0, certainty=0.7)),
        (first(kind="none", sigma=0.3), NoNoise(0.3, certainty=0.7)),
        (
            first(kind="poisson", sigma=None, levels=[LINE]),
            Photon((Level(2.0, 3.0, 1.0),), certainty=0.7),
        ),
        (
            first(kind="curve", sigma=None, levels=[LINE, NODES, LINE]),
            Curve((Level(2.0, 3.0, 1.0), CURVE.levels[0], Level(2.0, 3.0, 1.0)), certainty=0.7),
        ),
    ],
)
def test_records_of_earlier_versions_are_read(text: str, expected: Noise) -> None:
    assert Noise.from_json(text) == expected


def changed(**values: Any) -> str:
    return json.dumps({**json.loads(CAMERA.to_json()), **values})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "is not one that"),
        ("3", "is not one that"),
        ("{}", "is not one that"),
        (first(format=3), "is not one that"),
        (first(format=[1]), "is not one that"),
        (first(extra=1), "is not one that"),
        (first(sigma="12"), "is not one that"),
        (first(sigma=True), "is not one that"),
        (first(sigma=10**400), "is not one that"),
        (first(octaves=3), "is not one that"),
        (first(levels=[3]), "is not one that"),
        (first_level(gain=None), "is not one that"),
        (first_level(nodes=[[1, 2, 3]]), "is not one that"),
        (first(kind="pink"), "kind of noise is 'pink'"),
        (first(kind=["white"]), "kind of noise is"),
        (first(sigma=float("nan")), "not finite"),
        (first(sigma=0), "sigma is 0, but must be above 0"),
        (first(octaves=[]), "must begin with 1"),
        (first(octaves=[1, 0]), "above 0"),
        (first(certainty=1.5), "certainty is 1.5"),
        (first(levels=[]), "is not one that"),
        (first_level(read=-1), "below 0"),
        (first_level(gain=float("inf")), "not finite"),
        (first_level(nodes=[[0, 1], [5, 2]]), "cannot have a curve"),
        (first(kind="poisson"), "gain is 0, but must be above 0"),
        (first(kind="poisson", levels=[NODES]), "cannot have a curve"),
        (first(kind="curve", levels=[LINE]), "has no curve"),
        (first(kind="curve", levels=[{**LINE, "nodes": [[0, 1]]}]), "both a curve and a gain"),
        (changed(extra=1), "is not one that"),
        (changed(kind="pink"), "kind of noise is 'pink'"),
        (changed(kind="white"), "kind of noise is 'white'"),
        (changed(strengths=3), r"are \(\), but must be"),
        (changed(strengths=[[3]]), r"are \(1, 1\), but must be"),
        (changed(strengths="3"), "is not one that"),
        (changed(strengths=[[[[-1]]] * 3] * 2), "negative"),
        (changed(strengths=[[[[0]]] * 3] * 2), "sigma is 0, but must be above 0"),
        ('{"format": 2, "kind": "white", "certainty": 1, "sigma": "3"}', "is not one that"),
        ('{"format": 2, "kind": "white", "certainty": 1, "sigma": -3}', "sigma is -3"),
        ('{"format": 2, "kind": "none", "certainty": 1, "sigma": -3}', "sigma is -3"),
        ('{"format": 2, "kind": "poisson", "certainty": 1, "levels": [{"gian": 3}]}', "is not one"),
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
        Curve((Nodes(nodes),))


def test_channels_may_have_a_curve_and_a_line() -> None:
    noise = Curve((Level(gain=2.0), CURVE.levels[0], Level(gain=1.0)))
    assert str(noise) == str(CURVE)
    assert Noise.from_json(noise.to_json()) == noise
    with pytest.raises(InputError, match="has no curve"):
        Curve((Level(gain=2.0),))
