"""The noise of stacks, a sigma for each page or one estimate for all: files, zarr and the web."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pictures import random_image
from web_server import client_of, post, told

import nlnet
from nlnet.cli import main
from nlnet.images import ImageFile, read_pages, write_pages
from nlnet.images.content import Source
from nlnet.images.formats import format_of, read_source
from nlnet.model.model import Model

SIGMAS = (10.0, 20.0, 40.0)
PAGES = [random_image((20, 24), np.uint8) // number for number in (1, 2, 3)]
NOISY = [
    np.random.default_rng(number).normal(128, sigma, (80, 90)).clip(0, 255).astype(np.uint8)
    for number, sigma in enumerate((4.0, 8.0, 12.0))
]


def write_stack(path: Path, pages: list[np.ndarray]) -> Path:
    write_pages(path, [ImageFile(page, leading=(len(pages),)) for page in pages])
    return path


def expected(model: Model) -> list[np.ndarray]:
    return [
        nlnet.denoise(page, sigma, model=model) for page, sigma in zip(PAGES, SIGMAS, strict=True)
    ]


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    return write_stack(tmp_path / "stack.tif", PAGES)


@pytest.mark.parametrize("form", ["10,20,40", "1e1, 20.0 ,40", "sigmas.txt", "sigmas.csv"])
def test_a_sigma_for_each_page_of_a_file(
    stack: Path,
    gray_model: Model,
    gray_model_file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
) -> None:
    monkeypatch.chdir(stack.parent)
    Path("sigmas.txt").write_text("10\n20\n40\n")
    Path("sigmas.csv").write_bytes(b"\xef\xbb\xbf10, 20,40\r\n")
    command = ["denoise", str(stack), "-o", "out.tif", "--model", str(gray_model_file)]
    assert main([*command, "--sigma", form, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sigmas"] == list(SIGMAS)
    for page, whole in zip(read_pages("out.tif"), expected(gray_model), strict=True):
        np.testing.assert_array_equal(page.pixels, whole)


def test_a_number_is_a_number_even_if_a_file_is_called_so(
    stack: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stack.parent)
    Path("25").write_text("99")
    assert main(["denoise", str(stack), "-o", "out.tif", "--sigma", "25", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sigmas"] == [25.0] * 3


@pytest.mark.parametrize(
    ("sigma", "message"),
    [
        ("10,20", "stack.tif': 2 sigmas are given for 3 pages; give one, or one for each page."),
        ("10,,30", "'' must be a number above 0 and at most 255; or several with commas"),
        ("10,0,30", "'0' must be a number above 0"),
        ("nothing.txt", "cannot read 'nothing.txt': No such file"),
        ("nothing", "'nothing' must be a number above 0 and at most 255; or several with commas"),
        ("empty.txt", "the file 'empty.txt' has no number in it"),
        ("words.txt", "in the file 'words.txt', 'x' must be a number above 0"),
        ("picture.txt", "cannot read 'picture.txt': it is not a text file"),
    ],
)
def test_sigmas_that_do_not_fit(
    stack: Path,
    fails: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    sigma: str,
    message: str,
) -> None:
    monkeypatch.chdir(stack.parent)
    Path("empty.txt").write_text("\n")
    Path("words.txt").write_text("10 x 30")
    Path("picture.txt").write_bytes(stack.read_bytes() + b"\xff\xfe")
    assert message in fails("denoise", stack, "-o", "out.tif", "--sigma", sigma)
    assert not Path("out.tif").exists()


def test_sigmas_of_pages_for_an_image(noisy_file: Path, fails: Callable[..., str]) -> None:
    told = fails("denoise", noisy_file, "-o", noisy_file.with_name("out.png"), "--sigma", "10,20")
    assert "noisy.png': 2 sigmas are given for 1 page; give one." in told


def test_in_a_folder_the_files_with_other_page_counts_fail_alone(
    stack: Path, gray_model_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_stack(stack.with_name("two.tif"), PAGES[:2])
    out = stack.parent / "out"
    command = ["denoise", str(stack.parent), "-o", str(out), "--model", str(gray_model_file)]
    assert main([*command, "--sigma", "10,20,40"]) == 1
    assert [path.name for path in out.iterdir()] == ["stack.tif"]
    assert "two.tif': 3 sigmas are given for 2 pages" in capsys.readouterr().err


def test_a_sigma_for_each_page_of_zarr(
    tmp_path: Path, gray_model: Model, gray_model_file: Path, fails: Callable[..., str]
) -> None:
    zarr = pytest.importorskip("zarr")
    source = tmp_path / "in.zarr"
    # Pages on two axes are counted as they lie in memory.
    zarr.save_array(str(source), np.stack(PAGES).reshape(1, 3, 20, 24))
    command = ["denoise", str(source), "--model", str(gray_model_file)]
    told = fails(*command, "-o", tmp_path / "few.zarr", "--sigma", "10,20")
    assert "in.zarr': 2 sigmas are given for 3 pages" in told
    assert main([*command, "-o", str(tmp_path / "out.zarr"), "--sigma", "10,20,40"]) == 0
    result = zarr.open(str(tmp_path / "out.zarr"))[0]
    np.testing.assert_allclose(result, expected(gray_model), rtol=0, atol=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.zarr", "out.zarr"]


def test_one_estimate_for_all_pages_of_zarr(
    tmp_path: Path, gray_model_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zarr = pytest.importorskip("zarr")
    source = tmp_path / "in.zarr"
    zarr.save_array(str(source), np.stack(NOISY))
    options = ["--model", str(gray_model_file), "--noise", "white", "--json"]
    for name, more in (("pages", ["--per-page"]), ("stack", [])):
        target = str(tmp_path / f"{name}.zarr")
        assert main(["denoise", str(source), "-o", target, *options, *more]) == 0
    pages, whole = map(json.loads, capsys.readouterr().out.splitlines())
    assert pages["sigmas"] == pytest.approx([4, 8, 12], rel=0.1)
    (common,) = set(whole["sigmas"])
    assert 5 < common < 10
    assert whole["estimated"] is True


def test_sigmas_and_one_estimate_in_the_web_api(gray_model: Model) -> None:
    data = format_of("a.tif").codec.encode([ImageFile(page, leading=(3,)) for page in PAGES])
    noisy = format_of("a.tif").codec.encode([ImageFile(page, leading=(3,)) for page in NOISY])
    with client_of([gray_model], pixels=100_000) as client:
        answer = post(client, data, sigma="10,20,40")
        assert answer.status_code == 200, answer.text
        source = Source("x", data=answer.content)
        results = read_source(source, 10**6)
        for page, whole in zip(results, expected(gray_model), strict=True):
            np.testing.assert_array_equal(page.pixels, whole)
        assert answer.headers["nlnet-sigma"] == "40.00"
        assert "nlnet-noise-estimate" not in answer.headers
        assert "2 sigmas are given for 3 pages" in told(post(client, data, sigma="10,20"), 422)
        assert "sigma is '10,0,20', but must be" in told(post(client, data, sigma="10,0,20"), 422)
        common = post(client, noisy, noise="white").headers["nlnet-noise-estimate"]
        alone = post(client, noisy, noise="white", per_page="yes")
        strongest = alone.headers["nlnet-noise-estimate"]
        assert float(strongest) == pytest.approx(12, rel=0.1)
        assert 5 < float(common) < 10
        refused = told(post(client, noisy, sigma="5", per_page="yes"), 422)
        assert "cannot be estimated per page" in refused
        assert "'no' or 'yes'" in told(post(client, noisy, per_page="maybe"), 422)


def test_what_pages_have_in_common_is_said_once(
    tmp_path: Path, gray_model: Model, gray_model_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    pages = [rng.normal(0, number, (40, 50)).astype(np.float32) for number in (1, 2, 3)]
    pages[1][:5, :4] = np.nan
    source = write_stack(tmp_path / "z.tif", pages)
    command = ["denoise", str(source), "-o", str(tmp_path / "out.tif"), "--sigma", "25"]
    assert main([*command, "--model", str(gray_model_file)]) == 0
    unclipped = (
        "3 of 3 pages have values that noise around a range from 0 to 1 does not explain: nothing "
        "is clipped ({} says what white is)"
    )
    left_out = "20 pixels are masked or NaN: left as they are"
    lines = [f"{source}: {line}" for line in (unclipped.format("--data-range"), left_out)]
    assert capsys.readouterr().out.splitlines() == lines
    with client_of([gray_model], pixels=100_000) as client:
        notes = post(client, source.read_bytes(), sigma="25").headers["nlnet-notes"]
    assert notes == f"{unclipped.format('data_range')}; {left_out}"
