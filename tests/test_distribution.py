"""What is shipped: a small wheel that denoises in an environment with nothing but its needs."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
import yaml
from paths import PROJECT

import nlnet
from engine.build import BUILT
from engine.targets import host_wheel_tag
from nlnet.images import ImageFile, read_image, write_image
from nlnet.model.loading import shipped_models
from nlnet.noise import add_noise, store

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with wheel and sdist, built as ``make dist`` does: the wheel from the sdist."""
    pytest.importorskip("build", reason="building needs the extra 'dev'")
    pytest.importorskip("hatchling", reason="building needs the extra 'dev'")
    folder = tmp_path_factory.mktemp("dist")
    # What `make engine` has compiled from the same sources is not compiled once more.
    environment = {**os.environ, "NLNET_ENGINE_BUILD": str(BUILT)}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, PROJECT]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (path,) = built.glob("*.whl")
    return path


def test_the_wheel_is_small_and_for_every_python(wheel: Path) -> None:
    assert wheel.name == f"nlnet-{nlnet.__version__}-py3-none-{host_wheel_tag()}.whl"
    assert wheel.stat().st_size < 5 * MEGABYTE


def test_the_wheel_holds_the_package_and_no_more(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata_name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = BytesParser().parsebytes(archive.read(metadata_name))
    weights = {f"nlnet/model/weights/{name}.safetensors" for name in shipped_models()}
    assert weights
    assert weights <= set(names)
    assert {
        "nlnet/py.typed",
        "nlnet/plotting/fonts/DejaVuSans.ttf",
        "nlnet/web/static/index.html",
    } <= {*names}
    assert {name.split("/")[0].split("-")[0] for name in names} == {"nlnet"}
    assert not [name for name in names if name.endswith((".pyc", ".nbc", ".nbi"))]
    assert metadata["Version"] == nlnet.__version__
    needed = [line for line in metadata.get_all("Requires-Dist") if "extra ==" not in line]
    assert not [line for line in needed if line.startswith(("torch", "scipy", "matplotlib"))]


def test_the_sdist_leaves_results_out(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        weights = [each.size for each in archive if each.name.endswith(".safetensors")]
    # All but the weights, which hardly shrink: code, tests, docs, and mostly their pictures.
    assert path.stat().st_size - sum(weights) < 2.5 * MEGABYTE
    assert max(weights) < MEGABYTE
    for name in ("src/nlnet/__init__.py", "tests/conftest.py", "LICENSE", "CITATION.cff"):
        assert name in names
    assert {f"src/nlnet/model/weights/{name}.safetensors" for name in shipped_models()} <= names
    assert not [name for name in names if "results/" in name or name.startswith(("runs", "build"))]


def pip(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


DENOISE = """
import sys
from importlib.util import find_spec
from nlnet.cli import main

code = main(["denoise", sys.argv[1], "-o", sys.argv[2], "--sigma", "25"])
extras = ("torch", "matplotlib", "scipy", "fastapi", "dask")
print("there:", [name for name in extras if find_spec(name)], code)
"""


def test_the_wheel_denoises_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    if pip("download", "--no-deps", "--dest", tmp_path / "probe", "shtab").returncode != 0:
        pytest.skip("pip cannot download packages here")
    environment = tmp_path / "environment"
    venv.create(environment)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = pip("--python", python, "install", "--no-compile", "--no-warn-script-location", wheel)
    assert done.returncode == 0, done.stderr

    photo = read_image(PROJECT / "examples" / "cat.png").pixels[100:164, 100:180]
    noisy, clean = tmp_path / "noisy.png", tmp_path / "clean.png"
    pixels = store(add_noise(photo, 25), photo.dtype, data_range=255)
    write_image(noisy, ImageFile(pixels))
    outside = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [python, "-I", "-c", DENOISE, noisy, clean],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=outside,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "there: [] 0"
    expected = nlnet.denoise(pixels, 25)
    assert (read_image(clean).pixels == expected).mean() > 0.999  # rounding apart
    script = python.with_name("nlnet.exe" if os.name == "nt" else "nlnet")
    told = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith(f"nlnet {nlnet.__version__} (nlnet engine 3, ")


# Citation


def test_the_citation_names_the_paper_and_the_software() -> None:
    """What cffconvert's schema asks for, of the fields we use."""
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["title"] == "nlnet"
    assert "version" not in citation  # it stands in one place, the package
    paper = citation["preferred-citation"]
    assert {"type", "title", "authors"} <= set(paper)
    assert paper["title"] in " ".join((PROJECT / "README.md").read_text().split())
    assert paper["authors"] == [{"family-names": "Lefkimmiatis", "given-names": "Stamatios"}]
    assert paper["year"] == 2017
