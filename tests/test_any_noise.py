"""`denoise` with sigma, noise and clip together, and with every dtype."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from cases import denoise_planes

import nlnet
from nlnet.denoising.plan import Request, make_plan
from nlnet.errors import InputError
from nlnet.model.model import Model
from nlnet.noise.camera import Camera
from nlnet.noise.levels import Level, Nodes
from nlnet.noise.record import Curve, NoNoise, Photon
from nlnet.noise.sample import Sample
from nlnet.noise.stabilisation import Stabiliser

pytestmark = pytest.mark.numerical

CURVE = Nodes(((0.0, 8.0), (120.0, 25.0), (255.0, 12.0)))


def scene(height: int = 96, width: int = 112, seed: int = 0, sigma: float = 20.0) -> np.ndarray:
    """A noisy step on a slope, inside 0 to 255."""
    y, x = np.mgrid[:height, :width]
    clean = 90 + 0.3 * y + 60 * (x > width // 2)
    return np.asarray(clean + sigma * np.random.default_rng(seed).standard_normal(clean.shape))


def denoise(image: np.ndarray, model: Model, **options: Any) -> np.ndarray:
    return nlnet.denoise(image, model=model, **{"data_range": 255, **options})


def run_network(
    planes: np.ndarray, model: Model, sigma: float, box: tuple[float, float] | None
) -> np.ndarray:
    scale = model.sigma / sigma
    scaled = (planes * scale).astype(np.float32)
    limits = None if box is None else (box[0] * scale, box[1] * scale)
    return denoise_planes(scaled, model.config, model.stages, box=limits) / np.float32(scale)


# sigma and noise together


def test_sigma_alone_is_white_noise_to_the_bit(gray_model: Model) -> None:
    image = scene().astype(np.float32)
    expected = run_network(image[np.newaxis], gray_model, 20.0, (0.0, 255.0))[0]
    np.testing.assert_allclose(denoise(image, gray_model, sigma=20), expected, atol=1e-3)
    result = denoise(image, gray_model, sigma=20)
    for noise in ("white", None):
        np.testing.assert_array_equal(denoise(image, gray_model, sigma=20, noise=noise), result)
    record = nlnet.Noise.white(20)
    np.testing.assert_array_equal(denoise(image, gray_model, noise=record), result)


def test_noise_of_another_kind_in_every_channel_is_found_and_removed() -> None:
    ramp = np.tile(np.linspace(10, 240, 400), (320, 1))
    bump = 4 + 12 * np.exp(-(((ramp - 120) / 45) ** 2))
    sigma = np.dstack([np.sqrt(2 * ramp), bump, np.sqrt(4 * ramp)])
    noisy = ramp[..., np.newaxis] + sigma * np.random.default_rng(0).standard_normal(sigma.shape)
    assert nlnet.denoise(noisy, data_range=255, clip=False).std(axis=0).mean() < 5  # of 4 to 30


def test_white_noise_of_unknown_strength(gray_model: Model) -> None:
    image = scene()
    expected = denoise(image, gray_model, sigma=nlnet.estimate_sigma(image))
    for noise in ("white", None):
        np.testing.assert_array_equal(denoise(image, gray_model, noise=noise), expected)


def test_what_is_found_can_be_passed_on(gray_model: Model) -> None:
    rng = np.random.default_rng(0)
    clean = np.tile(np.linspace(10, 240, 256), (128, 1))
    image = 4.0 * rng.poisson(clean / 4)
    found = nlnet.estimate_noise(image, data_range=255)
    assert found.kind == "poisson"
    expected = denoise(image, gray_model, noise=nlnet.Noise.from_json(found.to_json()))
    np.testing.assert_array_equal(denoise(image, gray_model), expected)


def test_camera_noise_of_a_given_strength() -> None:
    """The correlation is found, the strength is not."""
    planes = scene(200, 240)[np.newaxis]
    request = Request("camera", 255)
    found = make_plan(Sample.of(planes), None, request).noise
    given = make_plan(Sample.of(planes), 7.0, request).noise
    assert given.kind == "camera"
    assert given.sigma == pytest.approx(7.0)
    assert given.octaves == pytest.approx(found.octaves)
    tiny = make_plan(Sample.of(planes[:, :6, :6]), 7.0, request).noise
    assert (tiny.kind, tiny.sigma, tiny.octaves) == ("camera", 7.0, (1.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": 5, "noise": "poisson"}, "sigma is given for poisson noise"),
        ({"sigma": 5, "noise": nlnet.Noise.white(5)}, "Both sigma and a noise record"),
        ({"sigma": np.ones((16, 16)), "noise": "camera"}, "A map of sigma .* as 'camera'"),
        ({"sigma": np.ones((16, 16)), "noise": "poisson"}, "A map of sigma .* poisson noise"),
        ({"sigma": np.ones((16, 16)), "noise": "pink"}, "noise is 'pink', but must be one of"),
        ({"sigma": np.ones((16, 16)), "noise": nlnet.Noise.white(5)}, "Both a map .* record"),
        ({"noise": "pink"}, "noise is 'pink', but must be one of white, poisson, camera"),
        ({"noise": "none"}, "noise is 'none'"),
        ({"noise": 5}, "noise is 5"),
        ({"noise": ["white"]}, "noise is"),
        ({"noise": np.ones(3)}, "noise is"),
        ({"noise": nlnet.Noise.white(256)}, "sigma is 256, but must be .* at most the data range"),
        ({"noise": Photon(3 * (Level(1.0),))}, "3 levels, .* grayscale"),
    ],
)
def test_what_does_not_go_together(
    gray_model: Model, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        denoise(scene(16, 16), gray_model, **options)


def test_a_record_of_no_noise(gray_model: Model) -> None:
    image = scene()
    with pytest.warns(UserWarning, match="the noise record says that there is none") as caught:
        result = denoise(image, gray_model, noise=NoNoise())
    assert len(caught) == 1
    np.testing.assert_array_equal(result, image)


def test_no_noise_is_said_in_the_units_of_the_image(gray_model: Model) -> None:
    ramp = np.linspace(0, 40_000, 64)
    image = np.rint(ramp + np.random.default_rng(0).normal(0, 40, (64, 64))).astype(np.int32)
    with pytest.warns(UserWarning, match="too little to remove"):
        result = nlnet.denoise(image, model=gray_model)
    np.testing.assert_array_equal(result, image)


# Noise that depends on the brightness


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["poisson", "curve"])
def test_it_is_evened_out_before_and_brought_back_after(
    gray_model: Model, color_model: Model, channels: int, kind: str
) -> None:
    model = gray_model if channels == 1 else color_model
    image = np.stack([scene(40, 50, seed) for seed in range(channels)], axis=-1)
    if kind == "poisson":
        levels = tuple(Level(gain, 3.0, 10.0) for gain in (2.0, 3.0, 4.0)[:channels])
        ways: list[Any] = [Stabiliser(level) for level in levels]
    else:
        levels, ways = (CURVE,), [Stabiliser(CURVE)] * channels
    noise = Photon(levels) if kind == "poisson" else Curve(levels)
    evened = np.stack([way.forward(image[..., i]) for i, way in enumerate(ways)])
    restored = run_network(evened, model, 1.0, None)
    expected = np.stack([way.inverse(restored[i]) for i, way in enumerate(ways)], axis=-1)
    result = denoise(image, model, noise=noise, channel_axis=-1)
    np.testing.assert_allclose(result, np.clip(expected, 0, 255), atol=0.01)


@pytest.mark.parametrize("gain", [1.0, 8.0, 40.0])
def test_photon_noise_is_removed_better_than_as_white_noise(gain: float) -> None:
    y, x = np.mgrid[:96, :128]
    clean = 4 + 236 * (x / 128) ** 2 * (0.6 + 0.4 * (y > 48))
    noisy = gain * np.random.default_rng(0).poisson(clean / gain)
    known = denoise(noisy, "auto", noise=nlnet.Noise.poisson(gain), clip=False)  # type: ignore[arg-type]
    white = denoise(noisy, "auto", noise="white", clip=False)  # type: ignore[arg-type]

    def error(image: np.ndarray) -> float:
        return float(np.mean((image - clean) ** 2 / clean))

    assert error(known) < 0.9 * error(white)
    assert error(known) < 0.2 * error(noisy)
    dark = clean < 20
    assert known[dark].mean() == pytest.approx(clean[dark].mean(), rel=0.1)


@pytest.mark.parametrize("gain", [1e-30, 1e-12, 1e-6])
def test_noise_that_hardly_grows_is_white(gray_model: Model, gain: float) -> None:
    image = scene(24, 24)
    white = denoise(image, gray_model, sigma=20)
    result = denoise(image, gray_model, noise=nlnet.Noise.poisson(gain, 20.0))
    np.testing.assert_allclose(result, white, atol=0.01)


# Clipping


def test_a_z_scored_photo_is_not_clipped_and_that_is_said_once(gray_model: Model) -> None:
    image = (scene() - 120) / 40
    with pytest.warns(UserWarning, match=r"values from -2\.\d+ to 3\.\d+.*nothing is clipped") as w:
        result = nlnet.denoise(image, 0.1, model=gray_model)
    assert len(w) == 1
    assert w[0].filename == __file__
    expected = run_network(image[np.newaxis], gray_model, 0.1, None)[0]
    np.testing.assert_allclose(result, expected, atol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(
            nlnet.denoise(image, 0.1, model=gray_model, clip=False), result
        )
        clipped = nlnet.denoise(image, 0.1, model=gray_model, clip=True)
    assert (clipped.min(), clipped.max()) == (0, 1)


@pytest.mark.parametrize(
    ("low", "high", "clipped"),
    [(-0.59, 1.59, True), (-0.61, 1.0, False), (0.0, 1.61, False), (0.0, 1.0, True)],
)
def test_values_within_six_sigma_are_clipped(
    gray_model: Model, low: float, high: float, clipped: bool
) -> None:
    image = scene() / 255
    image[:8, :8], image[-8:, -8:] = low, high
    with warnings.catch_warnings():
        warnings.simplefilter("error" if clipped else "ignore")
        result = nlnet.denoise(image, 0.1, model=gray_model)
    insisted = nlnet.denoise(image, 0.1, model=gray_model, clip=clipped)
    np.testing.assert_array_equal(result, insisted)
    assert (result.min() >= 0 and result.max() <= 1) == clipped


def test_photon_noise_explains_more_where_it_is_bright(gray_model: Model) -> None:
    image = scene()
    image[:8, :8] = 255 + 90
    noise = nlnet.Noise.poisson(1.0)  # sigma 16 at white, so that 96 are explained
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert denoise(image, gray_model, noise=noise).max() <= 255
    image[:8, :8] = -1  # but nothing is in the dark
    with pytest.warns(UserWarning, match="nothing is clipped"):
        denoise(image, gray_model, noise=noise)


def test_a_data_range_that_is_too_small_is_an_error(gray_model: Model) -> None:
    image = np.random.default_rng(0).integers(0, 15511, (64, 64)).astype(np.uint16)
    image[0, 0] = 15510
    for clip in (None, True):
        with pytest.raises(InputError, match=r"given as 4095, .* values up to 15510"):
            nlnet.denoise(image, 100, model=gray_model, data_range=4095, clip=clip)
    kept = nlnet.denoise(image, 100, model=gray_model, data_range=4095, clip=False)
    assert kept.max() > 12_000


def test_a_few_bright_pixels_are_no_error(gray_model: Model) -> None:
    image = np.rint(scene(100, 100) * 16).astype(np.uint16)
    image[:2, :5] = 15_510  # a thousandth
    with pytest.warns(UserWarning, match="nothing is clipped"):
        nlnet.denoise(image, 300, model=gray_model, data_range=4095)
    image[2, 0] = 15_510
    with pytest.raises(InputError, match="given as 4095"):
        nlnet.denoise(image, 300, model=gray_model, data_range=4095)


# Dtypes


@pytest.mark.parametrize(
    ("dtype", "factor", "shift"),
    [
        (np.int8, 0.5, -60),
        (np.int16, 1, -1000),
        (np.int16, 100, -20_000),
        (np.int32, 1000, -100_000),
        (np.uint32, 1000, 1000),
    ],
)
def test_integers_without_a_range_of_their_own(
    gray_model: Model, dtype: type, factor: float, shift: float
) -> None:
    image = np.rint(scene() * factor + shift).astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = nlnet.denoise(image, 20 * factor, model=gray_model)
    assert result.dtype == dtype
    expected = run_network(image[np.newaxis].astype(np.float64), gray_model, 20 * factor, None)[0]
    np.testing.assert_allclose(result, expected, atol=0.51 + 1e-4 * factor)
    assert result.min() < 0 or shift > 0


def test_float16(gray_model: Model) -> None:
    image = (scene() / 255).astype(np.float16)
    result = nlnet.denoise(image, 20 / 255, model=gray_model)
    assert result.dtype == np.float16
    expected = nlnet.denoise(image.astype(np.float32), 20 / 255, model=gray_model)
    np.testing.assert_array_equal(result, expected.astype(np.float16))


def test_integers_stay_in_what_their_dtype_holds(gray_model: Model) -> None:
    """What overshoots the largest int32 does not become the least."""
    image = np.full((24, 24), np.iinfo(np.int32).max, np.int32)
    image[:, 12:] = np.iinfo(np.int32).min
    result = nlnet.denoise(image, 1e9, model=gray_model)
    assert (result[:, :6] > 0).all()
    assert (result[:, -6:] < 0).all()


@pytest.mark.parametrize("dtype", ["u2", "i2", "u4", "i4", "f2", "f4", "f8"])
@pytest.mark.parametrize("noise", ["white", "poisson", "camera"])
def test_the_byte_order_stays(gray_model: Model, dtype: str, noise: str) -> None:
    records = {
        "white": nlnet.Noise.white(20.0),
        "poisson": nlnet.Noise.poisson(2.0),
        "camera": Camera.even(20.0, (1.0, 1.5)),
    }
    native = np.rint(scene(33, 36)).astype(dtype)
    expected = denoise(native, gray_model, noise=records[noise])
    for order in "<>":
        swapped = native.astype(order + dtype)
        result = denoise(swapped, gray_model, noise=records[noise])
        assert result.dtype.str == swapped.dtype.str
        np.testing.assert_array_equal(result, expected)
        assert denoise(swapped, gray_model, sigma=1e-30).dtype.str == swapped.dtype.str


@pytest.mark.parametrize(("certainty", "share"), [(0.95, 1.0), (0.45, 0.5)])
def test_doubtful_noise_is_removed_in_part_and_said_so(certainty: float, share: float) -> None:
    image = scene(64, 64)
    sure = nlnet.denoise(image, noise=Camera.even(10.0), data_range=255, clip=False)
    doubtful = Camera.even(10.0, certainty=certainty)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = nlnet.denoise(image, noise=doubtful, data_range=255, clip=False)
    np.testing.assert_allclose(found - image, share * (sure - image), atol=1e-3)
    assert any("texture" in str(each.message) for each in said) == (share < 1)
