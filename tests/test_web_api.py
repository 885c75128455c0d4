from __future__ import annotations

import io
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pictures import noisy_pixels, random_image
from PIL import Image
from raw_cases import mosaic_of, scene, shoot, stored, write_dng
from starlette.testclient import TestClient
from web_server import client_of, post, told

import nlnet
from nlnet.images import ImageFile, decode, encode, suffix_of
from nlnet.images.formats import FORMATS
from nlnet.model.model import Model
from nlnet.noise.estimation import estimate_sigma
from nlnet.web import output, work
from nlnet.web.service import Limits


@pytest.fixture(scope="module")
def client(gray_model: Model, color_model: Model) -> Iterator[TestClient]:
    limits = {"upload_bytes": 2 * 2**20, "pixels": 100_000}
    with client_of([gray_model, color_model], **limits) as client:
        yield client


GRAY = encode(ImageFile(random_image()), ".png")


# results


@pytest.mark.parametrize("suffix", [".png", ".tif"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("shape", [(20, 24), (20, 24, 3)])
def test_the_pixels_are_those_of_python(
    client: TestClient,
    gray_model: Model,
    color_model: Model,
    suffix: str,
    dtype: type,
    shape: tuple,
) -> None:
    pixels, alpha = random_image(shape, dtype), random_image((20, 24), dtype)
    response = post(client, encode(ImageFile(pixels, alpha), suffix), sigma="25")
    assert response.status_code == 200, response.text
    result = decode(response.content, "result")
    model = gray_model if len(shape) == 2 else color_model
    sigma = 25 * np.iinfo(dtype).max / 255
    np.testing.assert_array_equal(result.pixels, nlnet.denoise(pixels, sigma, model=model))
    np.testing.assert_array_equal(result.alpha, alpha)
    assert response.headers["content-type"] == output.MEDIA_TYPES[suffix]
    assert response.headers["nlnet-model"] == model.name
    assert response.headers["nlnet-sigma"] == "25.00"
    assert 0 < float(response.headers["nlnet-seconds"]) < 60
    depth = 8 * np.dtype(dtype).itemsize
    assert response.headers["nlnet-image"].startswith(f"24 x 20, {depth}-bit ")


ONLY_READ = {".pnm", ".heic"}


@pytest.mark.parametrize("suffix", sorted({known.suffixes[0] for known in FORMATS} - ONLY_READ))
def test_every_format_comes_back_as_it_came(client: TestClient, suffix: str) -> None:
    pytest.importorskip({".jxl": "pyjpegxl", ".fits": "astropy"}.get(suffix, "numpy"))
    shape = (20, 24) if suffix in (".pgm", ".fits") else (20, 24, 3)
    data = encode(ImageFile(random_image(shape)), suffix)
    response = post(client, data, sigma="20")
    assert response.status_code == 200, response.text
    assert suffix_of(response.content, "result") == suffix
    assert response.headers["content-type"] == output.MEDIA_TYPES[suffix]
    assert decode(post(client, data, path="preview").content, "x").pixels.shape == shape


def test_floating_values(client: TestClient, gray_model: Model) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, (24, 32))
    pixels = (3 + noise).astype(np.float32)  # values beyond white stay
    response = post(client, encode(ImageFile(pixels), ".npy"), sigma="25.5")
    expected = nlnet.denoise(pixels, 0.1, model=gray_model, clip=False)
    assert "nothing is clipped" in response.headers["nlnet-notes"]
    np.testing.assert_allclose(decode(response.content, "x").pixels, expected, atol=1e-6)
    assert response.headers["nlnet-image"] == "32 x 24, 32-bit float gray NPY"
    broken = encode(ImageFile(np.full((24, 32), np.nan, np.float32)), ".npy")
    assert "masked or NaN" in told(post(client, broken, sigma="25"), 422)
    assert post(client, broken, path="preview").status_code == 200


def test_pixels_that_are_nan_are_left_out(client: TestClient, gray_model: Model) -> None:
    pixels = noisy_pixels(np.float32)
    pixels[3:6] = np.nan
    data = encode(ImageFile(pixels), ".tif")
    response = post(client, data, "noisy.tif", sigma="25", preview="no")
    assert response.status_code == 200
    assert response.headers["Nlnet-Notes"] == "96 pixels are masked or NaN: left as they are"
    result = decode(response.content, "x").pixels
    np.testing.assert_array_equal(result, nlnet.denoise(pixels, 25 / 255, model=gray_model))
    shown = post(client, data, "noisy.tif", path="preview")
    assert decode(shown.content, "x").pixels[8:].mean() == pytest.approx(127, abs=10)
    assert post(client, data, "noisy.tif").status_code == 200


def test_conversions_are_noted(client: TestClient) -> None:
    stream = io.BytesIO()
    Image.fromarray(random_image((20, 24, 3))).convert("P").save(stream, "PNG")
    response = post(client, stream.getvalue(), sigma="20")
    assert "palette" in response.headers["nlnet-notes"]
    assert "nlnet-notes" not in post(client, GRAY, sigma="20").headers


def test_jpeg_comes_back_as_jpeg(client: TestClient) -> None:
    response = post(client, encode(ImageFile(random_image((20, 24, 3))), ".jpg"), "Foto.JPG")
    assert response.headers["content-type"] == "image/jpeg"
    assert response.headers["content-disposition"] == 'attachment; filename="Foto-denoised.jpg"'
    assert decode(response.content, "result").pixels.shape == (20, 24, 3)


def test_sigma_is_measured_unless_given(client: TestClient, gray_model: Model) -> None:
    noise = np.random.default_rng(3).normal(0, 20, (64, 64))
    pixels = np.clip(128 + noise, 0, 255).astype(np.uint8)
    expected = estimate_sigma(pixels)
    for fields in ({}, {"sigma": "auto"}):
        response = post(client, encode(ImageFile(pixels), ".png"), **fields)
        estimate = float(response.headers["nlnet-noise-estimate"])
        assert estimate == pytest.approx(expected, abs=0.01)
        assert float(response.headers["nlnet-sigma"]) == estimate
        assert response.headers["nlnet-noise"] == f"white noise, about {estimate:.2g}"


def test_nothing_is_measured_where_sigma_is_given(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(*arguments: object) -> None:
        pytest.fail("the noise was measured")

    monkeypatch.setattr("nlnet.noise.estimation.find_noise", measured)
    given = post(client, GRAY, sigma="40")
    assert float(given.headers["nlnet-sigma"]) == 40
    assert "nlnet-noise-estimate" not in given.headers


def test_an_image_without_noise_comes_back_as_it_is(client: TestClient) -> None:
    pixels = np.tile(np.arange(64, dtype=np.uint8), (40, 1))
    response = post(client, encode(ImageFile(pixels), ".png"))
    np.testing.assert_array_equal(decode(response.content, "result").pixels, pixels)
    assert float(response.headers["nlnet-sigma"]) == 0
    assert response.headers["nlnet-model"] == "none"


def test_an_image_too_small_to_measure_its_noise(client: TestClient) -> None:
    tiny = encode(ImageFile(random_image((6, 6))), ".png")
    assert "give sigma" in told(post(client, tiny), 422)
    given = post(client, tiny, sigma="20")
    assert given.status_code == 200
    assert "nlnet-noise-estimate" not in given.headers


def test_the_name_to_save_under_is_harmless(client: TestClient) -> None:
    names = {
        "C:\\photos\\cat.png": 'filename="cat-denoised.png"',
        "../../etc/pass wd.png": 'filename="pass wd-denoised.png"',
        "Käse.png": "filename=\"K_se-denoised.png\"; filename*=UTF-8''K%C3%A4se-denoised.png",
        "a%22b.png": None,
        "a\r\nb.png": None,
    }
    for name, expected in names.items():
        disposition = post(client, GRAY, name, sigma="9").headers["content-disposition"]
        assert "\n" not in disposition
        assert disposition.split(";")[1].count('"') == 2
        if expected is not None:
            assert disposition == f"attachment; {expected}"


def test_preview_is_the_image_as_8_bit_png(client: TestClient) -> None:
    pixels = random_image((20, 24, 3), np.uint16)
    response = post(client, encode(ImageFile(pixels), ".tif"), path="preview")
    assert response.headers["content-type"] == "image/png"
    shown = decode(response.content, "x").pixels
    np.testing.assert_array_equal(shown, np.rint(pixels / 257))
    assert "none of" in told(post(client, b"no image", path="preview"), 422)


def test_models_and_health(client: TestClient, gray_model: Model) -> None:
    offer = client.get("/api/models").json()
    listed = {model["name"]: model for model in offer["models"]}
    assert listed["small-1"]["channels"] == 1
    assert listed["small-1"]["parameters"] == gray_model.parameter_count
    assert offer["limits"].pop("formats")[:3] == ["PNG", "TIFF", "JPEG"]
    assert offer["limits"] == {"upload_bytes": 2 * 2**20, "pixels": 100_000, "job_seconds": 300.0}
    assert client.get("/healthz").json()["version"] == nlnet.__version__


# refusals


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "is empty"),
        (b"this is no image", "none of PNG"),
        (GRAY[:60], "damaged or incomplete PNG"),
        (GRAY[:-30], "damaged or incomplete PNG"),
        (b"\xff\xd8\xff" + bytes(200), "damaged or incomplete JPEG"),
        (encode(ImageFile(random_image((4, 9))), ".png"), "9x4 pixels"),
    ],
)
def test_unusable_files(client: TestClient, data: bytes, part: str) -> None:
    assert part in told(post(client, data, sigma="25"), 422)


@pytest.mark.parametrize("sigma", ["0", "-1", "256", "nan", "inf", "much", "25,0"])
def test_bad_sigma(client: TestClient, sigma: str) -> None:
    assert repr(sigma) in told(post(client, GRAY, sigma=sigma), 422)


@pytest.mark.parametrize("model", ["gray-9x9", "/etc/passwd", "../x.safetensors", "x" * 900])
def test_unknown_models(client: TestClient, model: str) -> None:
    sentence = told(post(client, GRAY, model=model), 422)
    assert "but must be 'auto', " in sentence
    assert len(sentence) < 600


def test_a_model_file_on_the_server_is_no_model(client: TestClient, gray_model_file: str) -> None:
    told(post(client, GRAY, model=str(gray_model_file)), 422)


def test_a_model_for_the_other_kind_of_image(client: TestClient) -> None:
    assert "made for color" in told(post(client, GRAY, sigma="25", model="small-3"), 422)


def test_bad_forms(client: TestClient) -> None:
    file = {"file": ("a.png", GRAY)}
    path = "/api/denoise"
    assert "'sgima'" in told(client.post(path, files=file, data={"sgima": "25"}), 422)
    assert "no file" in told(client.post(path, files={"sigma": (None, "25")}), 422)
    assert "no file" in told(client.post(path, files={"file": (None, "text")}), 422)
    assert "no file" in told(client.post(path, files={"sigma": ("s", b"25")}), 422)
    assert "Too many files" in told(client.post(path, files={**file, "sigma": ("s", b"25")}), 400)
    twice = client.post(path, files=[("file", ("a.png", GRAY))], data={"sigma": ["25", "26"]})
    assert "more than once" in told(twice, 422)
    assert "multipart/form-data" in told(client.post(path, data={"sigma": "25"}), 415)
    assert "multipart/form-data" in told(client.post(path), 415)
    broken = {"content-type": "multipart/form-data; boundary=x"}
    told(client.post(path, content=b"--y\r\n\r\n", headers=broken), 400)
    told(client.post(path, content=b"", headers={"content-type": "multipart/form-data"}), 400)
    long = client.post(path, files=file, data={"model": "x" * 5000})
    assert "Part exceeded" in told(long, 400)


def test_uploads_that_are_too_large(client: TestClient) -> None:
    junk = bytes(2 * 2**20 + 1)
    assert "2 MB" in told(post(client, junk), 413)
    chunked = client.post(
        "/api/denoise",
        content=iter([b"--b\r\n", junk]),
        headers={"content-type": "multipart/form-data; boundary=b"},
    )
    assert "2 MB" in told(chunked, 413)


def png_header(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    data = b"IDAT" + zlib.compress(bytes(10_000))
    rest = struct.pack(">I", len(data) - 4) + data + struct.pack(">I", zlib.crc32(data))
    return b"\x89PNG\r\n\x1a\n" + chunk + rest


@pytest.mark.parametrize("size", [(60_000, 60_000), (100_001, 1)])
def test_bombs_are_refused_before_decoding(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    import pyvips

    def decoded(*arguments: object) -> None:
        pytest.fail("the image was decoded")

    monkeypatch.setattr(pyvips.Image, "numpy", decoded)
    sentence = told(post(client, png_header(*size)), 422)
    assert f"{size[0]}x{size[1]} pixels" in sentence


def test_uploads_never_touch_the_disk(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def rolled(*arguments: object) -> None:
        pytest.fail("a temporary file went to the disk")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", rolled)
    monkeypatch.setattr(tempfile, "TemporaryFile", rolled)
    told(post(client, b"x" * (2 * 2**20 - 2000)), 422)


def test_an_image_too_wide_for_the_memory(gray_model: Model, color_model: Model) -> None:
    with client_of([gray_model, color_model]) as client:
        wide = encode(ImageFile(np.zeros((6, 2_000_000, 3), np.uint8)), ".png")
        assert "turn it by 90 degrees" in told(post(client, wide, sigma="20"), 422)


def test_a_job_that_takes_too_long_is_told(gray_model: Model) -> None:
    with client_of([gray_model], job_seconds=0.02) as client:
        large = encode(ImageFile(random_image((1000, 1000))), ".png")
        assert "longer than 0.02 seconds" in told(post(client, large, sigma="20"), 504)


def test_a_bug_is_one_sentence_too(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(work, "show_file", broken)
    response = post(client, GRAY, path="preview")
    assert "secret" not in told(response, 500)
    assert "content-security-policy" in response.headers


def test_no_memory_is_told(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def starved(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(work, "show_file", starved)
    assert "memory" in told(post(client, GRAY, path="preview"), 413)


# raw files


def test_a_raw_file_comes_back_developed(client: TestClient, tmp_path: Path) -> None:
    pytest.importorskip("rawpy")
    path = tmp_path / "photo.dng"
    write_dng(path, stored(shoot(mosaic_of(scene()))))
    assert "raw files of cameras" in client.get("/api/models").json()["limits"]["formats"]
    shown = post(client, path.read_bytes(), "photo.dng", path="preview")
    noisy = decode(shown.content, "x").pixels
    answer = post(client, path.read_bytes(), "photo.dng")
    assert answer.headers["content-disposition"] == 'attachment; filename="photo-denoised.tif"'
    assert answer.headers["nlnet-noise-kind"] == "poisson"
    assert answer.headers["nlnet-image"] == "128 x 96, 16-bit color DNG"
    clean = decode(answer.content, "x").pixels
    assert clean.dtype == np.uint16
    assert clean.shape == noisy.shape
    assert (
        np.abs(np.diff(clean / 257.0, axis=1)).mean()
        < 0.6 * np.abs(np.diff(noisy.astype(float), axis=1)).mean()
    )
    problem = told(post(client, path.read_bytes(), "photo.dng", noise="white"), 422)
    assert "is a raw file" in problem
    assert "--" not in problem


def test_large_scans_are_taken() -> None:
    """24 megapixels of 16 bits in three channels, and the form around them."""
    assert Limits().upload_bytes > 24_000_000 * 3 * 2 + 2**20
    assert Limits().pixels >= 24_000_000
    assert Limits().held_bytes >= 2 * Limits().upload_bytes
