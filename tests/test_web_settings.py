"""The fields of a form: strength, noise, white, format, preview, stacks; and how far a job is."""

from __future__ import annotations

import email
from collections.abc import Iterator

import httpx2 as httpx
import numpy as np
import pytest
from pictures import random_image
from starlette.testclient import TestClient
from web_server import client_of, post, told

import nlnet
from nlnet.defaults import QUALITIES
from nlnet.files.data_range import Range
from nlnet.images import ImageFile, decode, encode, suffix_of
from nlnet.images.formats import format_of
from nlnet.model.loading import choose_model
from nlnet.model.model import Model
from nlnet.network import color
from nlnet.web.output import to_8_bits

GRAY = encode(ImageFile(random_image()), ".png")
COLOR = encode(ImageFile(random_image((20, 24, 3))), ".png")


@pytest.fixture(scope="module")
def client(gray_model: Model, color_model: Model) -> Iterator[TestClient]:
    with client_of([gray_model, color_model], pixels=10_000) as client:
        yield client


def pixels_of(response: httpx.Response) -> np.ndarray:
    assert response.status_code == 200, response.text
    return decode(response.content, "result").pixels


def parts_of(response: httpx.Response) -> dict[str, bytes]:
    """The files of an answer that is a form, as a parser of mail reads them."""
    assert response.status_code == 200, response.text
    head = f"Content-Type: {response.headers['content-type']}\r\n\r\n".encode()
    message = email.message_from_bytes(head + response.content)
    return {
        part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
        for part in message.get_payload()
    }


# strength


def test_strength_puts_noise_back(client: TestClient) -> None:
    noisy = decode(GRAY, "x").pixels.astype(float)
    whole = pixels_of(post(client, GRAY, sigma="25")).astype(float)
    half = pixels_of(post(client, GRAY, sigma="25", strength="0.5"))
    assert np.abs(half - (noisy + whole) / 2).max() <= 1
    np.testing.assert_array_equal(pixels_of(post(client, GRAY, sigma="25", strength="0")), noisy)


def test_luma_and_chroma_have_strengths_of_their_own(client: TestClient) -> None:
    # Away from the limits of the values, at which clipping would mix the two.
    noise = np.random.default_rng(4).normal(0, 12, (40, 48, 3))
    noisy = np.clip(128 + noise, 0, 255).astype(np.uint8)
    data = encode(ImageFile(noisy), ".png")
    whole = pixels_of(post(client, data, sigma="20"))

    def opponent(pixels: np.ndarray) -> np.ndarray:
        return pixels @ color.OPPONENT.T

    chroma_only = opponent(pixels_of(post(client, data, sigma="20", strength="0,1")))
    np.testing.assert_allclose(chroma_only[..., 0], opponent(noisy)[..., 0], atol=1)
    np.testing.assert_allclose(chroma_only[..., 1:], opponent(whole)[..., 1:], atol=1)
    luma_only = opponent(pixels_of(post(client, data, sigma="20", strength="1,0")))
    np.testing.assert_allclose(luma_only[..., 0], opponent(whole)[..., 0], atol=1)
    np.testing.assert_allclose(luma_only[..., 1:], opponent(noisy)[..., 1:], atol=1)


def test_a_gray_image_has_no_color_to_blend(client: TestClient) -> None:
    pair = post(client, GRAY, sigma="25", strength="0.5,1")
    assert "gray" in pair.headers["nlnet-notes"]
    alone = post(client, GRAY, sigma="25", strength="0.5")
    np.testing.assert_array_equal(pixels_of(pair), pixels_of(alone))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("strength", "3"),
        ("strength", "0.5,1,1"),
        ("strength", "nan"),
        ("strength", ""),
        ("noise", "pink"),
        ("data_range", "-1"),
        ("data_range", "nan"),
        ("data_range", "1e-30"),
        ("data_range", "1e30"),
        ("format", "gif"),
        ("jpeg_quality", "0"),
        ("jpeg_quality", "101"),
        ("jpeg_quality", "²"),
        ("quality", "good"),
        ("quality", "95"),
        ("preview", "maybe"),
        ("job", "short"),
        ("job", "../../etc/passwd"),
    ],
)
def test_bad_fields(client: TestClient, field: str, value: str) -> None:
    sentence = told(post(client, GRAY, **{"sigma": "25", field: value}), 422)
    assert sentence.startswith(f"{field} is {value!r}, but must ")


def test_the_strength_of_photon_noise_is_never_given(client: TestClient) -> None:
    assert "leave sigma out" in told(post(client, GRAY, sigma="25", noise="poisson"), 422)


# quality


def test_quality_chooses_among_the_shipped_models() -> None:
    with client_of([], pixels=10_000) as shipped:
        for quality in QUALITIES:
            response = post(shipped, GRAY, sigma="25", quality=quality)
            chosen = choose_model("auto", 1, 25.0, quality)
            assert response.headers["nlnet-model"] == chosen.name
            expected = nlnet.denoise(decode(GRAY, "x").pixels, 25, quality=quality)
            np.testing.assert_array_equal(pixels_of(response), expected)


def test_a_model_of_the_server_is_its_own_at_any_quality(client: TestClient) -> None:
    response = post(client, GRAY, sigma="25", quality="best")
    np.testing.assert_array_equal(pixels_of(response), pixels_of(post(client, GRAY, sigma="25")))


def test_a_model_and_a_quality_are_not_both_given(client: TestClient, gray_model: Model) -> None:
    response = post(client, GRAY, sigma="25", quality="fast", model=gray_model.name)
    assert "Both the model" in told(response, 422)


# kinds of noise


@pytest.mark.parametrize("kind", ["white", "poisson", "camera"])
def test_a_kind_of_noise_can_be_insisted_on(
    client: TestClient, gray_model: Model, kind: str
) -> None:
    ramp = np.linspace(10, 60, 96) * np.ones((96, 1))
    pixels = np.clip(4 * np.random.default_rng(6).poisson(ramp), 0, 255).astype(np.uint8)
    response = post(client, encode(ImageFile(pixels), ".png"), noise=kind)
    expected = nlnet.denoise(pixels, noise=kind, model=gray_model)
    np.testing.assert_array_equal(pixels_of(response), expected)
    found = nlnet.estimate_noise(pixels, kind=kind)
    assert response.headers["nlnet-noise-kind"] == found.kind
    words = {"white": "white noise", "poisson": "photon noise", "camera": "camera noise"}
    assert response.headers["nlnet-noise"].startswith(words[found.kind])
    # The gain is 4, and so the variance 4 times the mean of 140.
    if kind == "poisson":
        assert float(response.headers["nlnet-noise-estimate"]) == pytest.approx(23.7, rel=0.15)


def test_camera_noise_of_a_given_strength(client: TestClient) -> None:
    response = post(client, GRAY, noise="camera", sigma="20")
    assert response.headers["nlnet-noise"] == "camera noise, correlated, about 20"
    assert "nlnet-noise-estimate" not in response.headers


# white


def test_the_value_of_white(client: TestClient, gray_model: Model) -> None:
    pixels = (random_image((20, 24), np.uint16) >> 4).astype(np.uint16)
    data = encode(ImageFile(pixels), ".tif")
    result = pixels_of(post(client, data, sigma="25", data_range="4095"))
    expected = nlnet.denoise(pixels, 25 * 4095 / 255, model=gray_model, data_range=4095)
    np.testing.assert_array_equal(result, expected)
    shown = post(client, data, path="preview", data_range="4095")
    np.testing.assert_array_equal(pixels_of(shown), to_8_bits(pixels, Range(0, 4095)))


@pytest.mark.parametrize("white", ["2e-9", "1e12"])
@pytest.mark.parametrize("wanted", ["same", "jpeg", "tiff", "npy"])
def test_extreme_values_of_white(client: TestClient, white: str, wanted: str) -> None:
    pixels = np.zeros((20, 24), np.float32)
    data = encode(ImageFile(pixels), ".npy")
    fields = {"data_range": white, "format": wanted, "preview": "yes", "strength": "0.5"}
    for sigma in ("25", "1e-6", "255"):
        assert post(client, data, sigma=sigma, **fields).status_code == 200
    assert post(client, data, path="preview", data_range=white).status_code == 200


def test_dark_data_is_stretched_to_be_seen(client: TestClient) -> None:
    dark = (random_image((20, 24), np.uint16) >> 4).astype(np.uint16)
    shown = post(client, encode(ImageFile(dark), ".tif"), path="preview")
    assert shown.headers["nlnet-stretched"] == "yes"
    assert pixels_of(shown).max() == 255
    usual = post(client, encode(ImageFile(random_image()), ".tif"), path="preview")
    assert usual.headers["nlnet-stretched"] == "no"


# formats


@pytest.mark.parametrize(
    ("wanted", "suffix"), [("png", ".png"), ("jpeg", ".jpg"), ("webp", ".webp"), ("tiff", ".tif")]
)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_other_formats(client: TestClient, wanted: str, suffix: str, dtype: type) -> None:
    values = np.random.default_rng(1).uniform(0, 1, (20, 24, 3))
    kind = np.dtype(dtype)
    white = 1 if kind.kind == "f" else np.iinfo(kind).max
    data = encode(ImageFile((values * white).astype(kind)), ".npy")
    response = post(client, data, "data.npy", sigma="25", format=wanted)
    assert suffix_of(response.content, "x") == suffix
    assert f'"data-denoised{suffix}"' in response.headers["content-disposition"]
    result = decode(response.content, "x").pixels
    if kind.name not in format_of(f"a{suffix}").depths:
        assert f"become {result.dtype}" in response.headers["nlnet-notes"]
    plain = decode(post(client, data, sigma="25").content, "x").pixels / white
    scale = 1 if result.dtype.kind == "f" else np.iinfo(result.dtype).max
    loss = 0.06 if suffix == ".jpg" else 0.003
    assert np.sqrt(np.mean((result / scale - plain) ** 2)) < loss


def test_transparency_is_laid_on_white_for_jpeg(client: TestClient) -> None:
    alpha = np.zeros((20, 24), np.uint8)
    data = encode(ImageFile(random_image((20, 24, 3)), alpha), ".png")
    response = post(client, data, sigma="25", format="jpeg")
    assert "laid on white" in response.headers["nlnet-notes"]
    assert pixels_of(response).min() > 250


def test_the_quality_of_jpeg(client: TestClient) -> None:
    sizes = [
        len(post(client, COLOR, sigma="25", format="jpeg", jpeg_quality=quality).content)
        for quality in ("20", "60", "95")
    ]
    assert sizes == sorted(sizes)
    assert sizes[2] > 1.5 * sizes[0]


# results with their preview


def test_a_result_brings_its_preview(client: TestClient) -> None:
    pixels = random_image((20, 24, 3), np.uint16)
    data = encode(ImageFile(pixels), ".tif")
    plain = post(client, data, "Käse.tif", sigma="25")
    form = post(client, data, "Käse.tif", sigma="25", preview="yes")
    parts = parts_of(form)
    assert parts["file"] == plain.content
    assert form.headers["nlnet-model"] == plain.headers["nlnet-model"]
    result = decode(plain.content, "x").pixels
    shown = decode(parts["preview"], "x").pixels
    np.testing.assert_array_equal(shown, to_8_bits(result, Range(0, 65535)))


def test_a_preview_that_fails_costs_no_result(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starved(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("nlnet.web.output.to_png", starved)
    parts = parts_of(post(client, GRAY, sigma="25", preview="yes"))
    assert set(parts) == {"file"}
    assert decode(parts["file"], "x").pixels.shape == (20, 24)


# stacks


@pytest.mark.parametrize("suffix", [".tif", ".npy"])
def test_stacks_are_denoised_page_by_page(
    client: TestClient, gray_model: Model, suffix: str
) -> None:
    pages = [random_image((20, 24), np.uint16) // number for number in (1, 2, 3)]
    data = format_of(f"a{suffix}").codec.encode(
        [ImageFile(page, leading=(len(pages),)) for page in pages]
    )
    response = post(client, data, sigma="25")
    assert response.status_code == 200, response.text
    assert response.headers["nlnet-pages"] == "3"
    assert response.headers["nlnet-image"].endswith(", 3 pages")
    from nlnet.images.content import Source
    from nlnet.images.formats import read_source

    source = Source("x", data=response.content)
    results = read_source(source, 10**6)
    assert len(results) == 3
    for result, page in zip(results, pages, strict=True):
        expected = nlnet.denoise(page, 25 * 257, model=gray_model)
        np.testing.assert_array_equal(result.pixels, expected)
    assert "stacks (3 pages)" in told(post(client, data, sigma="25", format="png"), 422)
    assert pixels_of(post(client, data, path="preview")).shape == (20, 24)


def test_a_stack_counts_with_all_its_pages(client: TestClient) -> None:
    pages = [ImageFile(random_image((60, 60)), leading=(3,))] * 3
    data = format_of("a.tif").codec.encode(pages)
    assert "3 pages of 60x60" in told(post(client, data, sigma="25"), 422)


# how far it is


def test_a_job_that_is_not_there(client: TestClient) -> None:
    answer = client.get("/api/jobs/12345678-abc")
    assert answer.json() == {"state": "absent", "ahead": 0, "share": 0.0}
    told(client.get("/api/jobs/short"), 422)
    assert post(client, GRAY, sigma="25", job="12345678-abc").status_code == 200
    assert client.get("/api/jobs/12345678-abc").json()["state"] == "absent"
