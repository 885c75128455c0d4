"""Stacks denoised along an axis: better than page by page, and never worse."""

from __future__ import annotations

import numpy as np
import pytest

import nlnet
from nlnet.errors import Cancelled, InputError
from nlnet.noise.record import NoNoise

pytestmark = pytest.mark.numerical

SIDE = 80
SIGMA = 20.0


def scene(dy: float = 0.0, dx: float = 0.0, seed: int = 0) -> np.ndarray:
    """A picture with edges, texture and smooth areas that has moved, from about 20 to 230."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:SIDE, :SIDE]
    y, x = y - dy, x - dx
    picture = 120 + 30 * np.sin(x / 17 + seed) + 20 * np.sin(y / 23)
    for _ in range(12):
        top, left = random.uniform(-10, SIDE, 2)
        radius, height = random.uniform(5, 14), random.uniform(-45, 45)
        distance = np.hypot(y - top, x - left)
        picture += height / (1 + np.exp(2 * (distance - radius)))
    picture += 12 * np.sin(1.3 * x + 0.5 * y) * (np.sin(x / 11) > 0)
    return picture.astype(np.float32)


def with_noise(clean: np.ndarray, sigma: float = SIGMA, seed: int = 1) -> np.ndarray:
    noise = np.random.default_rng(seed).standard_normal(clean.shape)
    return (clean + sigma * noise).astype(np.float32)


def scores(result: np.ndarray, clean: np.ndarray) -> np.ndarray:
    """PSNR of every page."""
    axes = tuple(range(1, clean.ndim))
    return 10 * np.log10(255**2 / np.mean((result - clean) ** 2, axis=axes))


def both(noisy: np.ndarray, sigma: float | None = SIGMA, **more) -> tuple[np.ndarray, np.ndarray]:
    """The result along the first axis, and that of every page by itself."""
    how = {"data_range": 255.0, "clip": False, **more}
    alone = nlnet.denoise_stack(noisy, sigma, **how)
    return nlnet.denoise_stack(noisy, sigma, along=0, **how), alone


def film(step: float = 0.6, count: int = 7) -> np.ndarray:
    return np.stack([scene(step * t, -step * t) for t in range(count)])


@pytest.fixture(scope="module")
def moving():
    """A film that moves, its noisy frames, and both results."""
    clean = film()
    noisy = with_noise(clean)
    return clean, noisy, *both(noisy)


# --- Better than page by page ----------------------------------------------------------------


def test_every_page_of_a_film_gains_the_first_and_the_last_as_well(moving):
    clean, _, along, alone = moving
    gain = scores(along, clean) - scores(alone, clean)
    assert gain.min() > 0.5
    assert gain.mean() > 1.5


def test_pages_that_are_alike_come_near_their_mean():
    clean = np.repeat(scene()[np.newaxis], 9, axis=0)
    noisy = with_noise(clean)
    along, _ = both(noisy)
    mean = scores(noisy.mean(axis=0, keepdims=True), clean[:1])
    assert scores(along, clean)[4] > mean[0] - 0.3


@pytest.mark.parametrize("step", [0.0, 2.5, 6.0])
def test_slow_and_fast_films_gain(step):
    clean = film(step, 5)
    along, alone = both(with_noise(clean))
    assert (scores(along, clean) - scores(alone, clean)).mean() > 0.8


def test_bleaching_is_allowed_for():
    clean = film(0.4) * (0.85 ** np.arange(7, dtype=np.float32))[:, None, None]
    along, alone = both(with_noise(clean))
    assert (scores(along, clean) - scores(alone, clean)).min() > 0.4


def test_photon_noise_is_merged_without_bias():
    clean = film(0.5) / 10
    counts = np.random.default_rng(3).poisson(clean).astype(np.float32)
    noise = nlnet.Noise.poisson(1.0)
    along, alone = both(counts, None, noise=noise, data_range=25.5)
    assert (scores(along, clean) - scores(alone, clean)).mean() > 1.0
    assert abs(along.mean() / clean.mean() - 1) < 0.01


def test_colors_and_integers():
    clean = np.clip(np.stack([film(), film()[:, ::-1], film()[:, :, ::-1]], axis=-1), 0, 255)
    noisy = np.clip(np.rint(with_noise(clean)), 0, 255).astype(np.uint8)
    along, alone = both(noisy, clip=None, data_range=None)
    assert along.dtype == np.uint8
    gain = scores(along.astype(float), clean) - scores(alone.astype(float), clean)
    assert gain.mean() > 1.0


def test_camera_noise():
    clean = film(0.5, 5)
    rough = np.random.default_rng(5).standard_normal((5, SIDE + 1, SIDE + 1))
    blotches = (rough[:, 1:, 1:] + rough[:, :-1, 1:] + rough[:, 1:, :-1] + rough[:, :-1, :-1]) / 2
    noisy = (clean + 12 * blotches).astype(np.float32)
    along, alone = both(noisy, 12.0, noise="camera")
    assert (scores(along, clean) - scores(alone, clean)).min() > 0.3


def test_noise_that_varies_over_the_pages():
    sigma = np.broadcast_to(np.linspace(10, 30, SIDE), (SIDE, SIDE))
    clean = film(0.5, 5)
    noise = np.random.default_rng(5).standard_normal(clean.shape)
    along, alone = both((clean + sigma * noise).astype(np.float32), sigma)
    assert (scores(along, clean) - scores(alone, clean)).min() > 0.3


def test_noise_that_is_estimated_gives_nearly_the_same(moving):
    clean, noisy, along, _ = moving
    found = nlnet.denoise_stack(noisy, noise="white", along=0, data_range=255, clip=False)
    assert (scores(along, clean) - scores(found, clean)).mean() < 0.1


def test_stacks_whose_structure_grows_and_fades():
    height, depths = scene(seed=3) / 25, np.arange(10)[:, None, None]
    clean = (scene() * np.exp(-((height - depths) ** 2) / 8)).astype(np.float32)
    along, alone = both(with_noise(clean))
    gain = scores(along, clean) - scores(alone, clean)
    assert gain.mean() > 1.2
    assert (gain > 0.3).sum() >= 9
    assert gain.min() > -0.05


def test_brightness_that_changes_in_one_part_is_kept():
    y, x = np.mgrid[:SIDE, :SIDE]
    bump = np.exp(-((y - 40) ** 2 + (x - 40) ** 2) / 600)
    clean = np.stack([scene() + 30 * (t % 2) * bump for t in range(7)]).astype(np.float32)
    along, alone = both(with_noise(clean))
    assert (scores(along, clean) - scores(alone, clean)).min() > 0.3
    middle = slice(34, 46), slice(34, 46)
    for t in range(7):
        assert abs((along[t] - clean[t])[middle].mean()) < 4


# --- Never worse -----------------------------------------------------------------------------


def worst(clean: np.ndarray, **more) -> float:
    """The least gain of a page, in dB."""
    along, alone = both(with_noise(clean), **more)
    return float((scores(along, clean) - scores(alone, clean)).min())


def test_a_cut():
    other = np.stack([scene(0.6 * t, 0, seed=7) for t in range(4)])
    assert worst(np.concatenate([film(count=4), other])) > -0.05


def test_a_film_of_pictures_that_have_nothing_in_common():
    turned = [np.rot90(scene(seed=number), number) for number in range(4)]
    assert worst(np.stack([*turned, *(250 - each for each in turned)])) > -0.05


def test_a_flash():
    clean = film()
    clean[3] = 1.6 * clean[3] + 20
    assert worst(clean) > -0.05


def test_things_that_pass_and_hide_what_is_behind():
    clean = film(0.3)
    for t in range(7):
        clean[t, 20:50, 6 + 9 * t : 22 + 9 * t] = scene(seed=4)[20:50, 20:36][:, : SIDE - 6 - 9 * t]
    assert worst(clean) > -0.05


def test_a_cut_between_scenes_that_move():
    """Pages of another scene do not tell whether this one moves."""
    other = np.stack([scene(0.6 * t, -0.6 * t, seed=7) for t in range(4)])
    clean = np.concatenate([film(count=3), other])
    along, alone = both(with_noise(clean))
    assert (scores(along, clean) - scores(alone, clean)).min() > 0.5


def test_where_nothing_is_averaged_a_page_is_as_by_itself():
    turned = [np.rot90(scene(seed=number), number) for number in range(3)]
    along, alone = both(with_noise(np.stack(turned)))
    np.testing.assert_allclose(along, alone, atol=0.05)


def test_a_page_that_is_missing():
    clean = film()
    noisy = with_noise(clean)
    noisy[3] = np.nan
    along = nlnet.denoise_stack(noisy, SIGMA, along=0, data_range=255, clip=False)
    assert np.isnan(along[3]).all()
    there = [0, 1, 2, 4, 5, 6]
    alone = nlnet.denoise_stack(noisy[there], SIGMA, data_range=255, clip=False)
    assert (scores(along[there], clean[there]) - scores(alone, clean[there])).min() > 0.4
    found = nlnet.denoise_stack(noisy, noise="white", along=0, data_range=255, clip=False)
    assert np.isnan(found[3]).all()


def test_masked_pixels_come_back_and_do_not_spread(moving):
    clean, noisy, along, _ = moving
    broken = noisy.copy()
    broken[3, 30:36, 40:46] = np.nan
    result = nlnet.denoise_stack(broken, SIGMA, along=0, data_range=255, clip=False)
    assert np.isnan(result[3, 30:36, 40:46]).all()
    assert np.isfinite(np.delete(result, 3, axis=0)).all()
    gap = scores(along, clean) - scores(np.where(np.isnan(result), along, result), clean)
    assert gap.max() < 0.1


def test_a_spark_in_one_page_stays_as_bright_and_leaves_no_trace():
    clean = np.repeat(scene()[np.newaxis] / 2, 7, axis=0)
    spot = np.exp(-(np.hypot(*(np.mgrid[:SIDE, :SIDE] - 41)) ** 2) / 4)
    lit = clean.copy()
    lit[3] += 120 * spot
    along, alone = both(with_noise(lit))
    near = slice(39, 44), slice(39, 44)
    brightness = [float((result[3] - clean[3])[near].mean()) for result in (along, alone)]
    assert brightness[0] == pytest.approx(brightness[1], rel=0.01)
    for neighbour in (2, 4):
        assert abs((along[neighbour] - clean[neighbour])[near].mean()) < 5


# --- The axis, and everything else -----------------------------------------------------------


def test_any_number_of_threads_gives_the_same_bits(moving):
    _, noisy, _, _ = moving
    one, three = (
        nlnet.denoise_stack(noisy[:4], SIGMA, along=0, data_range=255, threads=threads)
        for threads in (1, 3)
    )
    assert np.array_equal(one, three)


def test_other_axes_are_not_neighbours(moving):
    _, noisy, _, _ = moving
    stack = np.stack([noisy[:3], noisy[2:5, ::-1]], axis=1)  # time, channel
    result = nlnet.denoise_stack(stack, SIGMA, along=0, data_range=255)
    for channel in range(2):
        alone = nlnet.denoise_stack(stack[:, channel], SIGMA, along=0, data_range=255)
        assert np.array_equal(result[:, channel], alone)
    turned = nlnet.denoise_stack(stack.swapaxes(0, 1), SIGMA, along=1, data_range=255)
    assert np.array_equal(turned.swapaxes(0, 1), result)


def test_one_page_is_that_page_by_itself(moving):
    clean, noisy, _, alone = moving
    along = nlnet.denoise_stack(noisy[:1], SIGMA, along=0, data_range=255, clip=False)
    assert abs(scores(along, clean[:1]) - scores(alone[:1], clean[:1])) < 0.05


def test_no_noise_is_no_change():
    noisy = with_noise(film(count=3))
    with pytest.warns(UserWarning, match="comes back as it is"):
        result = nlnet.denoise_stack(noisy, noise=NoNoise(), along=0, data_range=255)
    assert np.array_equal(result, noisy)


@pytest.mark.parametrize("along", [1, -1, 2.0, "t"])
def test_an_axis_that_is_not_there_is_an_error(along):
    with pytest.raises(InputError, match=r"along is .* must be an axis in front of the pages"):
        nlnet.denoise_stack(np.zeros((2, 20, 20), np.float32), 1.0, along=along)


def test_progress_grows_to_one_and_can_stop_the_work(moving):
    _, noisy, _, _ = moving
    told: list[float] = []
    nlnet.denoise_stack(noisy[:3], SIGMA, along=0, data_range=255, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1
    with pytest.raises(Cancelled):
        nlnet.denoise_stack(
            noisy[:3], SIGMA, along=0, data_range=255, progress=lambda share: share < 0.4
        )
