from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from pictures import random_image
from test_family import make_family

from nlnet.images import ImageFile, write_image
from nlnet.model.family import Family
from nlnet.model.loading import load_model
from nlnet.model.model import Model
from scripts import frontier, load, markdown, real_noise, results, ship, speed, tables
from scripts.cards import format_card
from scripts.published import COLOR, GRAY, PAPER, Row
from scripts.results import PROJECT


@pytest.fixture
def shipped(gray_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that ships one small model; returns the folder of its weights."""
    weights = tmp_path / "weights"
    weights.mkdir()
    model = dataclasses.replace(
        gray_model,
        name="gray-5x5-s25",
        provenance={"recipe": "a short run", "settings": {"name": "x", "data": {"crop": 9}}},
    )
    model.save(weights / "gray-5x5-s25.safetensors")

    def load(name: str | Path) -> Model | Family:
        return load_model(weights / f"{name}.safetensors" if isinstance(name, str) else name)

    every = make_family(dataclasses.replace(gray_model.config, stages=1), name="gray")
    every.save(weights / "gray.safetensors")
    for module in (results, tables):
        monkeypatch.setattr(module, "shipped_models", lambda: ("gray", "gray-5x5-s25"))
        monkeypatch.setattr(module, "load_model", load)
    monkeypatch.setattr(results, "select_model", lambda name, sigma: load("gray-5x5-s25"))
    monkeypatch.setattr(results, "EVERY_SIGMA", (10, 25))
    monkeypatch.setattr(tables, "EVERY_SIGMA", (10, 25))
    return weights


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("bsd68/a.png", "bsd68/b.png", "set12/c.png", "open/val/d.png"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_image(path, ImageFile(random_image()))
    return tmp_path / "data"


def test_evaluations_go_into_json_tables_and_the_model_file(
    shipped: Path, data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    results.evaluate_model("gray-5x5-s25", data, folder)
    content = json.loads((folder / "gray-5x5-s25-bsd68.json").read_text())
    assert [image["name"] for image in content["images"]] == ["a.png", "b.png"]
    assert content["seed"] == 0
    psnr = content["mean"]["psnr"]

    table = tables.format_table(GRAY, ("gray-5x5", "gray-7x7"), folder).splitlines()
    assert "| NLNet 5x5, the paper [[1]] |  | 31.49 | 28.98 | 25.99 |" in table
    ours = next(line for line in table if "`gray-5x5`" in line)
    difference = psnr - PAPER["gray-5x5"][1]
    assert f"| {tables.NONE} | {psnr:.2f} ({difference:+.2f}) | {tables.NONE} |" in ours
    assert table[-1].count(tables.NONE) == 4  # the 7x7 models are not shipped

    results.record_figures("gray-5x5-s25", shipped, folder)
    model = load_model(shipped / "gray-5x5-s25.safetensors")
    assert model.figures["bsd68_psnr"] == round(psnr, 6)
    assert set(model.figures) == {"bsd68_psnr", "bsd68_ssim", "set12_psnr", "set12_ssim"}
    assert results.read_result("gray-5x5-s25", "bsd68", folder) is not None  # weights are as before


def test_a_model_for_every_sigma_is_measured_at_several(
    shipped: Path, data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "results"
    results.evaluate_model("gray", data, folder)
    content = json.loads((folder / "gray-bsd68.json").read_text())
    assert set(content["sigmas"]) == set(content["nearest"]) == {"10", "25"}
    psnr = {sigma: content["sigmas"][sigma]["mean"]["psnr"] for sigma in ("10", "25")}
    assert psnr["10"] > psnr["25"]
    assert content["nearest"]["10"]["model"] == "gray-5x5-s25"
    content["nearest"]["10"]["mean"]["psnr"] = 1.0  # what is known of the same weights is kept
    (folder / "gray-bsd68.json").write_text(json.dumps(content))
    results.evaluate_model("gray", data, folder)
    again = json.loads((folder / "gray-bsd68.json").read_text())
    assert again["nearest"] == content["nearest"]
    found = results.read_at("gray", "bsd68", 25, folder)
    assert found is not None
    assert found.psnr == psnr["25"]
    assert results.read_at("gray", "bsd68", 50, folder) is None

    row = next(
        line
        for line in tables.format_table(GRAY, ("gray", "gray-plus"), folder).splitlines()
        if "`gray`" in line
    )
    assert f"| {tables.NONE} | {psnr['25']:.2f} | {tables.NONE} |" in row
    nearest = content["nearest"]["10"]["mean"]["psnr"]
    table = tables.format_every_sigma(folder).splitlines()
    assert table[-1].startswith(f"| difference | {psnr['10'] - nearest:+.3f} | ")

    photos = json.loads((folder / "gray-open.json").read_text())["sigmas"]
    shown = " | ".join(f"{photos[sigma]['mean']['psnr']:.2f}" for sigma in ("15", "25", "50"))
    assert tables.format_photos(folder).splitlines()[-1] == f"| `gray` | {shown} |"

    results.record_figures("gray", shipped, folder)
    family = load_model(shipped / "gray.safetensors")
    assert isinstance(family, Family)
    assert family.figures["bsd68_psnr"] == {key: round(value, 6) for key, value in psnr.items()}
    card = format_card(family)
    assert "any standard deviation from 5 to 80 on the 0-255 scale" in card
    assert f"| PSNR on BSD68, dB | {psnr['10']:.3f} | {psnr['25']:.3f} |" in card
    assert f"| of the nearest model for one sigma | {nearest:.3f} |" in card
    assert "| PSNR on the validation images | 30.000 dB |" in card

    changed = dataclasses.replace(family, sets=(*family.sets[1:], family.sets[0]))
    changed.save(shipped / "gray.safetensors")
    assert results.read_at("gray", "bsd68", 25, folder) is None


def test_a_run_for_every_sigma_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    run.mkdir()
    make_family(name="gray").save(run / "best.safetensors")
    (run / "log.jsonl").write_text("{}\n")
    monkeypatch.setattr(ship, "RESULTS", tmp_path / "results")
    assert ship.ship(run, weights=tmp_path / "weights") == "gray"
    assert isinstance(load_model(tmp_path / "weights" / "gray.safetensors"), Family)
    assert (tmp_path / "results" / "training" / "gray.jsonl").read_text() == "{}\n"


def test_results_of_other_weights_do_not_count(shipped: Path, data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    results.evaluate_model("gray-5x5-s25", data, folder)
    path = shipped / "gray-5x5-s25.safetensors"
    model = load_model(path)
    stages = [dataclasses.replace(stage, step_size=0.25) for stage in model.stages]
    dataclasses.replace(model, stages=tuple(stages)).save(path)
    assert results.read_result("gray-5x5-s25", "bsd68", folder) is None


def test_a_block_replaces_what_is_between_its_marks() -> None:
    page = "before\n<!-- name:begin -->\nold\n<!-- name:end -->\nafter\n"
    once = markdown.insert_block(page, "name", "new")
    assert once == page.replace("old", "new")
    assert markdown.insert_block(once, "name", "new") == once
    with pytest.raises(SystemExit, match="once each"):
        markdown.insert_block(page, "other", "new")


@pytest.mark.parametrize("published", [GRAY, COLOR])
def test_the_best_of_every_column_is_bold(published: tuple[Row, ...], tmp_path: Path) -> None:
    table = tables.format_table(published, ("gray-5x5",), tmp_path).splitlines()[2:]
    for place in range(3):
        bold = {line.split(" | ")[2 + place] for line in table if "**" in line}
        best = max(row.psnr[place] for row in published)
        assert f"**{best:.2f}**" in {cell.removesuffix(" |") for cell in bold}
    assert sum(line.count("**") for line in table) == 6  # no other cell is


def test_a_result_as_good_as_the_paper_differs_by_nothing() -> None:
    shown = tables.Shown("ours", "", (31.4899, 28.97, None), (31.49, 28.98, 25.99))
    assert shown.cells([31.49, 30.0, 30.0])[2:] == [
        "**31.49** (0.00)",
        "28.97 (-0.01)",
        tables.NONE,
    ]


@pytest.mark.parametrize("name", ["README.md", "docs/results.md"])
def test_references_of_the_tables_resolve(name: str) -> None:
    page = (PROJECT / name).read_text()
    used = set(re.findall(r"\[\[(\d)\]\]", page))
    assert used == {"1", "2", "3", "4", "5"}
    assert used == set(re.findall(r"^\[(\d)\]: https://", page, re.MULTILINE))


def test_pages_have_the_tables_that_the_script_writes() -> None:
    readme = (PROJECT / "README.md").read_text()
    if not results.RESULTS.is_dir():
        pytest.skip("no figures here")  # the source distribution leaves them out
    assert markdown.insert_block(readme, tables.NAME, tables.format_summary()) == readme
    assert (PROJECT / "docs" / "results.md").read_text() == tables.format_page()


@pytest.mark.parametrize("name", ["README.md", "docs/performance.md", "docs/training.md"])
def test_pages_say_what_the_benchmarks_measured(name: str) -> None:
    page = (PROJECT / name).read_text()
    assert speed.fill_in(name, page) == page


def test_nlnet_models_shows_the_times_that_were_measured() -> None:
    if not frontier.BENCHMARKS.is_dir():
        pytest.skip("no figures here")  # the source distribution leaves them out
    assert json.loads(frontier.TIMES.read_text()) == frontier.relative_times()


def test_a_published_psnr_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [
        {"kind": "gray", "size": "small", "threads": 2, "method": method, "seconds": seconds}
        for method, seconds in (("nlnet gray", 0.1), ("FFDNet torch", 0.2), ("bm3d", 5.0))
    ]
    content = {"commit": "abcdefgh", "machine": {"cpu": "one"}, "sgemm_gflops": {}}
    report = frontier.Report(content | {"results": results})
    measured = {"results": {"gray": {"bm3d": {"psnr": 28.6}}, "color": {}}}
    monkeypatch.setattr(frontier, "read_benchmark", lambda name: measured)
    table = frontier.format_frontier(report)
    assert "| FFDNet in torch | 0.200 | 2.0 | 29.19* |  |  |  |" in table
    assert "| BM3D | 5.000 | 50.0 | 28.60 |" in table
    assert [point.ours for point in frontier.points(report)] == [True, False, False]


@pytest.mark.parametrize("name", load.PAGES)
def test_pages_say_what_was_measured_under_load(name: str) -> None:
    if not load.RESULTS.is_dir():
        pytest.skip("no figures here")  # the source distribution leaves them out
    page = (PROJECT / name).read_text()
    assert load.fill_in(name, page) == page


@pytest.mark.parametrize("name", ["README.md", "docs/real_noise.md"])
def test_pages_say_what_was_measured_on_real_noise(name: str) -> None:
    if not real_noise.RESULTS.is_file():
        pytest.skip("no figures here")  # the source distribution leaves them out
    page = (PROJECT / name).read_text()
    assert real_noise.fill_in(name, page) == page


def test_a_card_tells_what_the_file_knows(shipped: Path) -> None:
    model = load_model(shipped / "gray-5x5-s25.safetensors")
    card = format_card(dataclasses.replace(model, figures={"bsd68_psnr": 28.9}))
    assert card.startswith("# gray-5x5-s25\n")
    for words in ("| Trained | a short run |", "PSNR on BSD68 | 28.900 dB", "[data]\ncrop = 9"):
        assert words in card
    assert "| Commit | not recorded |" in card
