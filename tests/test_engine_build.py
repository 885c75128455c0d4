"""The engine's library and object files: what they ask for, and what they must not hold."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from paths import PROJECT

import nlnet
from engine import compilers
from engine.build import ENGINE, ROOT, Build, build_for, digest, units
from engine.targets import host
from nlnet.cli import main
from nlnet.images import read_image
from nlnet.noise import add_noise, store

# All that the engine may take from outside itself: compilers call these for copies of arrays.
LIBC = {"memcmp", "memcpy", "memmove", "memset"}

pytestmark = pytest.mark.skipif(
    compilers.system_compiler() is None or shutil.which("nm") is None or host().system != "linux",
    reason="needs a compiler, and nm for ELF files",
)


@pytest.fixture(scope="module")
def build() -> Build:
    return build_for()


def symbols(path: Path, *options: str) -> list[tuple[str, str]]:
    """Kind and name of each symbol, as nm prints them."""
    command = ["nm", "--demangle", *options, path]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"^[0-9a-f ]{16} (\w) (.+)$", told, re.MULTILINE)


def sections(path: Path) -> str:
    command = ["readelf", "--sections", "--wide", path]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_no_symbol_is_weak(build: Build) -> None:
    """A weak symbol is merged across files: code for AVX-512 could run on an older CPU."""
    for path in build.objects():
        assert [name for kind, name in symbols(path) if kind in "WwVvu"] == [], path


def test_what_is_compiled_for_a_set_is_in_its_namespace(build: Build) -> None:
    of_sets = [unit for unit in units(build.target) if unit.instructions is not None]
    assert of_sets
    for unit, path in zip(of_sets, build.objects(), strict=False):
        assert path.name.startswith(f"{unit.name}-")
        assert unit.instructions is not None
        own = f"nlnet::{unit.instructions.name}::"
        found = [(kind, name) for kind, name in symbols(path) if not name.startswith(".")]
        assert [name for kind, name in found if kind.isupper() and kind != "U"]
        outside = {name for kind, name in found if own not in name and kind in "TDBRU"}
        assert outside <= LIBC, unit.name


def test_the_library_asks_for_little(build: Build) -> None:
    library = build.library()
    found = symbols(library, "--dynamic")
    asked = {name.partition("@")[0] for kind, name in found if kind in "Uwv"}
    assert asked <= LIBC
    given = {name for kind, name in found if kind not in "Uwv"}
    header = (ENGINE / "include" / "nlnet_engine.h").read_text()
    declared = set(re.findall(r"NLNET_API [\w *]*?(nlnet_\w+)\(", header))
    assert declared
    assert given == declared


def test_nothing_runs_when_the_library_is_loaded(build: Build) -> None:
    for path in [build.library(), *build.objects()]:
        assert not re.search(r"\.(init_array|ctors|init)\b", sections(path)), path


def test_the_library_of_the_checkout_is_built_from_its_sources(build: Build) -> None:
    placed = PROJECT / "src" / "nlnet" / "engine" / build.target.library
    same = placed.exists() and placed.read_bytes() == build.library().read_bytes()
    assert same, "the engine's sources have changed: run `make engine`"


def test_the_example_in_c_denoises_as_the_package_does(build: Build, tmp_path: Path) -> None:
    """The C program, the block that ``nlnet export`` writes, and a PGM."""
    program = build.program(ENGINE / "examples" / "denoise_pgm.c")
    model, noisy, denoised = (tmp_path / name for name in ("model.bin", "in.pgm", "out.pgm"))
    assert main(["export", "gray-5x5-s25", "-o", str(model)]) == 0
    photo = np.asarray(read_image(PROJECT / "examples" / "cat.png").pixels)[100:164, 100:180]
    pixels = store(
        add_noise(photo.mean(axis=-1) if photo.ndim == 3 else photo, 25), np.dtype(np.uint8), 255
    )
    noisy.write_bytes(b"P5\n80 64\n255\n" + pixels.tobytes())
    subprocess.run([program, model, noisy, denoised], check=True, timeout=60)
    result = np.frombuffer(denoised.read_bytes()[-80 * 64 :], np.uint8).reshape(64, 80)
    expected = nlnet.denoise(pixels, 25, model="gray-5x5-s25")
    assert (result == expected).mean() > 0.999  # rounding apart


@pytest.mark.parametrize("content", [b"", b"P5\n80 64\n255\n"])
def test_the_example_in_c_refuses_what_is_no_pgm(
    build: Build, tmp_path: Path, content: bytes
) -> None:
    program = build.program(ENGINE / "examples" / "denoise_pgm.c")
    (tmp_path / "in.pgm").write_bytes(content)
    command = [program, "in.pgm", "in.pgm", "out.pgm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"denoise_pgm: the image is .+\n", done.stderr)
    assert not (tmp_path / "out.pgm").exists()


def test_what_is_compiled_is_named_by_its_content_not_its_place(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a/x.h", "b/x.h", "c/x.h")]
    for path, content in zip(files, ("int x;", "int x;", "int y;"), strict=True):
        path.parent.mkdir()
        path.write_text(content)
    names = [digest([path], "cc", f"-I{ROOT / 'include'}") for path in files]
    assert names[0] == names[1] != names[2]
    assert names[0] == digest(files[:1], "cc", "-I/include") != digest(files[:1], "cc", "-I/src")
