"""Correlated noise: it is found, and not in texture."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from noise_cases import KERNELS, clean, correlated_noise, estimate, octaves_of

import nlnet
from benchmarks.camera import Camera
from nlnet.noise.blocks import halve
from nlnet.noise.correlation import Evidence, Flatness, measure_flatness
from nlnet.noise.deciding import pyramid_sigmas

pytestmark = pytest.mark.numerical


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("sigma", [6, 25])
def test_correlated_noise(channels: int, kernel: str, sigma: float) -> None:
    """Without its slowest part, which flat areas have from shading: less, and more alike.

    Its strength is found to 5 and 30 percent, above and below; its octaves to 35 percent.
    """
    image = clean("scene", channels)
    noise = correlated_noise(image.shape, KERNELS[kernel], sigma)
    assert noise.std() == pytest.approx(sigma, rel=0.02)
    found = estimate(image + noise)
    assert found.kind == "camera"
    assert found.correlated
    assert found.sigma is not None
    assert 0.7 * sigma < found.sigma < 1.05 * sigma
    np.testing.assert_allclose(found.octaves, octaves_of(KERNELS[kernel]), rtol=0.35)
    assert list(found.octaves) == sorted(found.octaves)
    # At half and quarter the size, where what counts is removed, it is found to 25 percent.
    scales = found.sigma * np.array(found.octaves[1:])
    np.testing.assert_allclose(scales, sigma * octaves_of(KERNELS[kernel])[1:], rtol=0.25)


def test_noise_that_is_more_alike_has_larger_octaves() -> None:
    image = clean("scene")
    found = [
        estimate(image + correlated_noise(image.shape, kernel, 12)).octaves
        for kernel in KERNELS.values()
    ]
    for scale in (1, 2):
        assert found[0][scale] < found[1][scale] < found[2][scale]


@pytest.mark.parametrize("kernel", KERNELS)
def test_correlated_noise_of_a_photo(kernel: str) -> None:
    image = clean("cat")
    found = estimate(image + correlated_noise(image.shape, KERNELS[kernel], 20))
    assert found.kind == "camera"
    assert found.sigma == pytest.approx(20, rel=0.3)
    assert nlnet.estimate_sigma(image + correlated_noise(image.shape, KERNELS[kernel], 20)) < 12


def test_areas_that_have_no_noise_do_not_hide_that_of_the_others() -> None:
    # As JPEG and cameras leave dark and bright areas: three tenths are constant.
    image = clean("scene") + correlated_noise((320, 400), KERNELS["fives"], 6.0)
    image[:, :60], image[:, 340:] = 30.0, 200.0
    pixels = np.clip(np.rint(image), 0, 255).astype(np.uint8)
    noise = nlnet.estimate_noise(pixels)
    assert noise.kind == "camera"
    assert 4.0 < noise.strength < 8.0


@pytest.mark.parametrize("seed", [6, 7, 11, 12, 13])
def test_photos_of_simulated_cameras(seed: int) -> None:
    """Of the first cameras those of more than weak noise, at half the size still 0.85 of it.

    They are known as such; the noise is found as 0.4 to 1.3 of what it is.
    """
    picture = np.moveaxis(clean("scene" if seed % 2 else "cat", 3), -1, 0)
    rng = np.random.default_rng(seed)
    noisy, truth = Camera.draw(rng).shoot(picture, rng)
    found = estimate(noisy, channel_axis=0)
    assert found.kind == "camera"
    luma = (noisy - truth).mean(axis=0)
    half = halve(luma)
    assert half.std() > 0.8 * luma.std()
    strength = luma.std() * np.sqrt(3)  # as in white noise of three channels
    assert found.sigma is not None
    assert 0.4 * strength < found.sigma < 1.3 * strength


def test_what_is_removed_at_each_scale() -> None:
    """What is said of the correlation counts; about as much as there is, at half the size half."""
    levels = nlnet.Noise.white(10).levels
    plain = pyramid_sigmas(nlnet.Noise("camera", 10.0, levels, (1.0, 1.0, 1.0)))
    correlated = pyramid_sigmas(nlnet.Noise("camera", 10.0, levels, (1.0, 1.5, 2.0)))
    np.testing.assert_allclose(correlated, np.multiply(plain, (1.0, 1.5, 2.0)))
    np.testing.assert_allclose(np.multiply(plain, (1, 2, 4)), 10, rtol=0.5)
    assert len(pyramid_sigmas(nlnet.Noise("camera", 10.0, levels))) == 1


def soft_scene() -> np.ndarray:
    """Shades and a soft edge in color, (3, H, W): nothing as fine as grain."""
    y, x = np.mgrid[:320, :400]
    edge = 30 / (1 + np.exp((390 - x - y) / 4))
    return np.stack([110 + 60 * np.sin(x / 47 + k) * np.cos(y / 61) + edge for k in (0, 0.3, 0.6)])


@pytest.mark.parametrize("photons", [300, 1000])
@pytest.mark.parametrize("grain", [0.4, 0.6])
def test_slightly_correlated_noise(photons: float, grain: float) -> None:
    """Neighbors are correlated by 0.3 to 0.45; what fits white noise is a fifth of the noise."""
    camera = Camera(
        photons=photons,
        read=2.0,
        luma_blur=0.4,
        chroma_blur=1.2,
        grain=grain,
        blotch=1.2,
        quality=97,
    )
    noisy, truth = camera.shoot(soft_scene(), np.random.default_rng(0))
    luma = (noisy - truth).mean(axis=0)
    assert (luma[:, 1:] * luma[:, :-1]).mean() < 0.5 * luma.var()
    found = estimate(np.rint(noisy).astype(np.uint8), channel_axis=0)
    assert found.kind == "camera"
    assert found.sigma is not None
    assert 0.7 < found.sigma / (np.sqrt(3) * luma.std()) < 1.1


def blobs(std: float) -> np.ndarray:
    """Texture without noise all over an image: blurred noise, through a sine."""
    shape = (320, 400)
    rows, columns = np.fft.fftfreq(shape[0])[:, np.newaxis], np.fft.rfftfreq(shape[1])
    spectrum = np.fft.rfft2(np.random.default_rng(0).standard_normal(shape))
    field = np.fft.irfft2(
        spectrum * np.exp(-2 * (np.pi * std) ** 2 * (rows**2 + columns**2)), shape
    )
    return np.asarray(np.rint(128 + 70 * np.sin(1.5 * field / field.std())).astype(np.uint8))


@pytest.mark.parametrize("std", [2.0, 2.5, 3.0])
def test_texture_without_noise(std: float) -> None:
    """It is not taken for camera noise, let alone a strong one."""
    assert estimate(blobs(std)).kind in ("none", "white")
    assert estimate(blobs(std)).strength < 1.5


# What speaks for noise, and how much is removed

EVIDENCE = Evidence(softness=5.5, degrees=40.0, color=-0.8, dependence=0.2)
BETTER = {"softness": 6.5, "degrees": 50.0, "color": 0.0, "dependence": 0.05}


def flatness(evidence: Evidence, level: float = 5.0, channels: int = 3) -> Flatness:
    return Flatness((level, 1.6 * level, 2.2 * level), 12.0, evidence, channels)


@pytest.mark.parametrize("name", BETTER)
def test_each_sign_of_noise_makes_it_likelier(name: str) -> None:
    better = dataclasses.replace(EVIDENCE, **{name: BETTER[name]})
    assert 0.3 < flatness(EVIDENCE).certainty < flatness(better).certainty < 1


def test_the_less_sure_the_less_is_removed() -> None:
    removed = [
        flatness(dataclasses.replace(EVIDENCE, softness=softness), level=12.0).removable
        for softness in (4.0, 5.0, 6.0, 7.0, 8.0)
    ]
    assert removed == sorted(removed)
    assert removed[0] < 3 < 9 < removed[-1]
    # As much of the luminance: that of a gray image is not a mean of three channels.
    assert flatness(EVIDENCE, 12.0, 1).removable == pytest.approx(
        flatness(EVIDENCE, 12.0, 3).removable / np.sqrt(3)
    )


def test_noise_is_taken_for_a_usual_one() -> None:
    sure = dataclasses.replace(EVIDENCE, softness=8.0)
    assert 3 < flatness(sure, 3.0).removable < 6
    assert flatness(sure, 0.5).removable < 1.0  # at most twice what was measured
    assert 6 < flatness(sure, 9.0).removable < 9
    # Far stronger than usual, it is more likely to be texture.
    assert flatness(sure, 40.0).certainty < flatness(sure, 12.0).certainty
    # Unless it looks like noise in every way: then it is what was measured.
    certain = dataclasses.replace(sure, dependence=0.0)
    assert flatness(certain, 40.0).removable == 40.0


def test_white_noise_explains_it() -> None:
    sure = flatness(dataclasses.replace(EVIDENCE, softness=8.0))
    assert sure.is_correlated(white=1.0)
    assert not sure.is_correlated(white=3.0)
    assert not dataclasses.replace(sure, spectrum=1.0).is_correlated(white=1.0)
    doubtful = flatness(EVIDENCE)
    assert doubtful.is_correlated(white=1.0)
    assert not doubtful.is_correlated(white=1.5)
    slightly = dataclasses.replace(doubtful, spectrum=4.0)
    assert slightly.is_correlated(white=1.0)
    assert slightly.removable == pytest.approx(1.7 * np.sqrt(3))
    assert not dataclasses.replace(doubtful, spectrum=2.5).is_correlated(white=1.0)


def test_blotches_of_noise_have_colors() -> None:
    scene = soft_scene()
    gray = correlated_noise(scene.shape[1:], KERNELS["fives"], 6.0)
    colors = np.stack([np.roll(gray, 50 * channel, axis=1) for channel in range(3)])
    measured = [measure_flatness([scene + noise], -np.inf, np.inf) for noise in (gray, colors)]
    plain, colored = (each.evidence.color for each in measured if each is not None)
    assert plain < -1 < -0.2 < colored
