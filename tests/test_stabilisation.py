from __future__ import annotations

import math

import numpy as np
import pytest

from nlnet.noise.levels import Level, Nodes
from nlnet.noise.stabilisation import Stabiliser

pytestmark = pytest.mark.numerical

SAMPLES = 200_000


def noisy(photons: float, gain: float, read: float, black: float, seed: int = 0) -> np.ndarray:
    """Values of a pixel of that many photons on average."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(photons, SAMPLES)
    return np.asarray(gain * counts + black + read * rng.standard_normal(SAMPLES))


def transform(gain: float, read: float, black: float) -> Stabiliser:
    return Stabiliser(Level(gain, read, black))


def curve_of(places: list[float], sigmas: list[float]) -> Stabiliser:
    return Stabiliser(Nodes(tuple(zip(places, sigmas, strict=True))))


def start(gain: float, read: float, black: float) -> float:
    """The transform of the value 0 as it is in the article; 0 if 0 is below black."""
    return 2 / gain * math.sqrt(max(3 / 8 * gain**2 + read**2 - gain * black, 0))


@pytest.mark.parametrize(("gain", "read", "black"), [(1, 0, 0), (3, 4, 0), (2, 5, 3), (4, 1, 64)])
def test_it_is_that_of_the_article(gain: float, read: float, black: float) -> None:
    values = np.linspace(-50, 2000, 999)
    squares = gain * (values - black) + 3 / 8 * gain**2 + read**2
    article = 2 / gain * np.sqrt(np.maximum(squares, 0))
    way = transform(gain, read, black)
    np.testing.assert_allclose(way.forward(values), article - start(gain, read, black), atol=1e-9)


@pytest.mark.parametrize("gain", [1e-30, 1e-12, 1e-6, 1e-5])
def test_noise_that_hardly_grows_is_scaled(gain: float) -> None:
    """In float32, too, where the transform of the article has no digits left."""
    way = transform(gain, 4.0, 0.0)
    values = np.linspace(-20, 255, 99, dtype=np.float32)
    np.testing.assert_allclose(way.forward(values), values / 4, atol=0.01)
    np.testing.assert_allclose(way.inverse(way.forward(values)), values, atol=1e-3)


@pytest.mark.parametrize("photons", [10, 40, 1000])
@pytest.mark.parametrize("gain", [0.01, 1.0, 50.0])
@pytest.mark.parametrize("read", [0.0, 2.0])
@pytest.mark.parametrize("black", [0.0, 100.0])
def test_the_variance_becomes_one(photons: float, gain: float, read: float, black: float) -> None:
    """From 10 photons on, to 2 percent; `read` is in photons."""
    values = noisy(photons, gain, read * gain, black * gain)
    evened = transform(gain, read * gain, black * gain).forward(values)
    assert evened.var() == pytest.approx(1, abs=0.02 + 4 * math.sqrt(2 / SAMPLES))


@pytest.mark.parametrize("photons", [0.5, 1, 2, 5, 20, 200])
@pytest.mark.parametrize(("gain", "read", "black"), [(1, 0, 0), (1, 2, 0), (4, 2, 64), (0.1, 0, 5)])
def test_the_inverse_is_unbiased(photons: float, gain: float, read: float, black: float) -> None:
    """The mean of transformed values comes back as the mean of the values.

    To 0.02 photons without read noise, as the closed form promises for Poisson noise, and to 0.05
    with it; the plain inverse is a quarter of a photon off.
    """
    way = transform(gain, read * gain, black)
    mean = way.forward(noisy(photons, gain, read * gain, black)).mean()
    found = (way.inverse(np.array([mean]))[0] - black) / gain
    sampling = 4 * math.sqrt((photons + read**2) / SAMPLES)
    assert found == pytest.approx(photons, abs=(0.05 if read else 0.02) + sampling)
    plain = (mean + start(gain, read * gain, black)) ** 2 / 4 - 3 / 8 - read**2
    assert abs(found - photons) < abs(plain - photons) + sampling


@pytest.mark.parametrize("photons", [1, 2, 5])
def test_the_plain_inverse_would_be_too_dark(photons: float) -> None:
    way = transform(1.0, 0.0, 0.0)
    mean = way.forward(noisy(photons, 1, 0, 0)).mean()
    exact, plain = way.inverse(np.array([mean]))[0], (mean + start(1, 0, 0)) ** 2 / 4 - 3 / 8
    assert plain - photons < -0.1
    assert abs(exact - photons) < 0.1 * abs(plain - photons)


@pytest.mark.parametrize("level", [Level(2.0, 3.0), Level(0.5, 0.0, 40.0)])
def test_both_ways_are_monotone(level: Level) -> None:
    way = Stabiliser(level)
    brighter = np.linspace(-level.offset / level.gain, 1e4, 5000)
    assert (np.diff(way.forward(brighter)) > 0).all()
    assert (np.diff(way.inverse(np.linspace(-5, 300, 5000))) >= 0).all()
    assert way.inverse(np.array([0.0, -5.0]))[1] < way.inverse(np.array([0.0]))[0]


def test_bright_values_come_back_almost_as_they_were() -> None:
    """The inverse differs from the plain one by a quarter of a photon there."""
    way = transform(3.0, math.sqrt(5.0), 0.0)
    values = np.linspace(1e4, 1e6, 50)
    np.testing.assert_allclose(way.inverse(way.forward(values)), values + 0.25 * 3, atol=0.02)


@pytest.mark.parametrize("level", [Level(2.0, 3.0), Nodes(((0.0, 1.0), (100.0, 3.0)))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_stays(level: Level | Nodes, dtype: type) -> None:
    way = Stabiliser(level)
    values = np.linspace(0, 200, 9).astype(dtype)
    assert way.forward(values).dtype == dtype
    assert way.inverse(way.forward(values)).dtype == dtype


@pytest.mark.parametrize("level", [Level(2.0, 3.0), Nodes(((0.0, 1.0), (100.0, 3.0)))])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int16])
def test_integers_become_the_same_floats(level: Level | Nodes, dtype: type) -> None:
    way = Stabiliser(level)
    values = np.arange(0, 120, dtype=dtype)
    np.testing.assert_array_equal(way.forward(values), way.forward(values.astype(np.float64)))


# Curves


@pytest.mark.parametrize(
    ("places", "sigmas"),
    [
        ([0.0, 100.0], [1.0, 3.0]),
        ([-50.0, 0.0, 20.0, 400.0], [5.0, 0.5, 2.0, 1.0]),
        ([0.0, 1.0], [0.01, 0.01]),
        ([0.0, 10.0, 1000.0], [0.0, 2.0, 9.0]),
    ],
)
def test_a_curve_leads_back(places: list[float], sigmas: list[float]) -> None:
    curve = curve_of(places, sigmas)
    span = places[-1] - places[0]
    values = np.linspace(places[0] - span, places[-1] + span, 777)
    evened = curve.forward(values)
    assert (np.diff(evened) > 0).all()
    np.testing.assert_allclose(curve.inverse(evened), values, atol=1e-9 * span)


def test_a_curve_is_the_integral_of_one_over_sigma() -> None:
    """Sigma of 1 + x / 50 has the integral 50 log(1 + x / 50)."""
    curve = curve_of([0.0, 100.0], [1.0, 3.0])
    values = np.array([0.0, 25.0, 50.0, 100.0, 106.0])
    exact = 50 * np.log(1 + np.minimum(values, 100) / 50) + np.maximum(values - 100, 0) / 3
    np.testing.assert_allclose(curve.forward(values), exact, atol=1e-4)


@pytest.mark.parametrize("at", [10.0, 60.0, 180.0])
def test_a_curve_evens_its_noise_out(at: float) -> None:
    level = Nodes(((0.0, 2.0), (100.0, 6.0), (200.0, 3.0)))
    values = at + level.sigma(at) * np.random.default_rng(0).standard_normal(SAMPLES)
    evened = Stabiliser(level).forward(values)
    assert evened.std() == pytest.approx(1, abs=0.06)
