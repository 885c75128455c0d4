"""The engine from Python: loading it, its instruction sets, what it is given, and its memory."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cases import denoise_planes, noise, random_stages
from messages import refused

import nlnet
from engine.build import build_for
from nlnet.engine import describe_engine, library, memory
from nlnet.engine.library import CANCELLED, DONE, IDLE, RAN, SET_VARIABLE, SETS, available_sets
from nlnet.errors import EngineError, InputError, ModelError
from nlnet.network.block import pack
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import find_groups

CONFIG = NetworkConfig(stages=3)
STAGES = [stage.astype(np.float32) for stage in random_stages(CONFIG)]


# --- Loading ---------------------------------------------------------------------------------


def _forget() -> None:
    library.load.cache_clear()
    library._load.cache_clear()


def test_threads_that_come_at_once_get_one_interface():
    code = """
import threading
from nlnet.engine.library import load
found = []
threads = [threading.Thread(target=lambda: found.append(load())) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(set(map(id, found))) == 1
"""
    for _ in range(3):
        subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch):
    """The library as if nobody had loaded it yet."""
    loaded = library.load()
    _forget()
    yield monkeypatch
    _forget()
    # As before: other tests may hold its structures.
    monkeypatch.setattr(library, "_load", lambda: loaded)
    library.load()


def test_a_missing_library_is_one_sentence_that_says_how_to_build_it(unloaded, tmp_path):
    unloaded.setattr(library, "_path", lambda: tmp_path / "libnlnet_engine.so")
    with refused(EngineError, "missing", ".so'", "engine.build"):
        nlnet.denoise(noise(20, 20), 25, data_range=255)


def test_a_library_that_is_none_is_an_error(unloaded, tmp_path):
    path = tmp_path / "libnlnet_engine.so"
    path.write_bytes(b"no library")
    path.with_name("nlnet_engine.h").touch()
    unloaded.setattr(library, "_path", lambda: path)
    with refused(EngineError, "cannot be loaded"):
        library.load()


def test_a_library_of_another_version_is_an_error(unloaded):
    unloaded.setattr(library, "VERSION", 99)
    with refused(EngineError, "has version 3 of the interface,", "needs version 99"):
        library.load()


def test_a_library_without_its_header_is_missing(unloaded, tmp_path):
    path = tmp_path / library._path().name
    shutil.copy(library._path(), path)
    unloaded.setattr(library, "_path", lambda: path)
    with refused(EngineError, "missing", "nlnet_engine.h'"):
        library.load()


HEADER = Path(__file__).parent.parent / "engine" / "include" / "nlnet_engine.h"


def test_the_interface_is_that_of_the_header():
    """All names of the header are there, and the numbers that are written here as well."""
    engine, text = library.load(), re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    placed = Path(library.__file__).with_name(HEADER.name)
    assert placed.read_bytes() == HEADER.read_bytes(), "run `make engine`"
    opaque = {"network", "eye", "job"}
    for name in set(re.findall(r"\bnlnet_(\w+)[(;]", text)) - opaque:
        kind = getattr(engine, name, ctypes.c_int)
        assert kind is ctypes.c_int or callable(kind), name
    for name in re.findall(r"NLNET_API [\w *]*?nlnet_(\w+)\(", text):
        assert getattr(engine, name).argtypes is not None
    assert engine.constants["ENGINE_VERSION"] == library.VERSION
    assert engine.constants["SCALES"] == library.SCALES
    numbers = {name.upper(): number for name, number in SETS.items()}
    numbers |= {dtype.name.upper(): number for dtype, number in library.TYPES.items()}
    numbers |= {"RAN": RAN, "IDLE": IDLE, "DONE": DONE, "CANCELLED": CANCELLED}
    assert numbers.items() <= engine.constants.items()


def test_structures_have_the_layout_of_c(tmp_path):
    """Sizes and places of fields, as a compiler has them."""
    engine = library.load()
    kinds = {n: k for n, k in vars(engine).items() if isinstance(k, type(ctypes.Structure))}
    names = [(name, field[0]) for name, kind in kinds.items() for field in kind._fields_]
    prints = "".join(
        f'printf("%zu ", offsetof(nlnet_{name}, {field}));' for name, field in names
    ) + "".join(f'printf("%zu ", sizeof(nlnet_{name}));' for name in kinds)
    source = tmp_path / "layout.c"
    source.write_text(f'#include <stdio.h>\n#include "{HEADER}"\nint main(void) {{{prints}}}\n')
    program = build_for().program(source)
    told = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    expected = [getattr(kinds[name], field).offset for name, field in names]
    expected += [ctypes.sizeof(kind) for kind in kinds.values()]
    assert list(map(int, told.split())) == expected


# --- Instruction sets --------------------------------------------------------------------------


def test_the_engine_says_what_it_is():
    assert re.fullmatch(r"nlnet engine 3, (SSE2|AVX2|AVX-512|NEON)", describe_engine())


@pytest.mark.numerical
@pytest.mark.parametrize("channels", [1, 3])
def test_every_instruction_set_gives_the_same_groups_and_the_same_image(channels, monkeypatch):
    config = NetworkConfig(channels=channels)
    model = nlnet.load_model("gray-5x5-s25" if channels == 1 else "color-5x5-s25")
    image = noise(channels, 90, 100).astype(np.float32)
    groups, images = {}, {}
    for name in available_sets():
        monkeypatch.setenv(SET_VARIABLE, name)
        groups[name] = find_groups(image[:1], config).tobytes()
        images[name] = denoise_planes(image, model.config, model.stages).tobytes()
    assert len(set(groups.values())) == 1
    assert len(set(images.values())) == 1


def test_an_instruction_set_that_is_not_there_is_an_error_that_lists_those_that_are(monkeypatch):
    known = ", ".join(available_sets())
    absent = next(name for name in SETS if name not in available_sets())
    for name in ("mmx", absent):
        monkeypatch.setenv(SET_VARIABLE, name)
        with refused(EngineError, f"'{name}'", f"only {known}."):
            nlnet.denoise(noise(20, 20), 25, data_range=255)


# --- Parameter blocks --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "damage",
    [
        lambda block: b"",
        lambda block: block[:79],
        lambda block: block[:-8],
        lambda block: block + bytes(8),
        lambda block: b"x" + block[1:],
        lambda block: block[:8] + b"\2" + block[9:],  # version
        lambda block: block[:16] + b"\2" + block[17:],  # channels
        lambda block: block[:-8] + b"\xff" * 8,  # NaN
    ],
)
def test_a_damaged_block_is_an_error(damage):
    from nlnet.engine.network import EngineNetwork

    block = pack(CONFIG, STAGES)
    EngineNetwork(block, np.dtype(np.float32), library.instruction_set())
    with refused(ModelError, "not what the engine takes"):
        EngineNetwork(damage(block), np.dtype(np.float32), library.instruction_set())


def test_the_block_has_the_documented_layout():
    block = pack(CONFIG, STAGES, sigma=25.0)
    assert block[:8] == b"nlnetpar"
    sizes = np.frombuffer(block, "<u4", 10, 8)
    assert sizes.tolist() == [1, 0, 1, 3, 5, 8, 31, 63, 1, 1]
    reals = np.frombuffer(block, "<f8", 3, 48)
    assert reals.tolist() == [CONFIG.rbf_range, CONFIG.gaussian_std, 25.0]
    assert int(np.frombuffer(block, "<u8", 1, 72)[0]) == len(block)
    place = 80
    for stage in STAGES:
        assert np.frombuffer(block, "<f8", 1, place)[0] == stage.step_size
        place += 8
        for array in (stage.filters, stage.group_weights, stage.coefficients):
            found = np.frombuffer(block, "<f4", array.size, place)
            np.testing.assert_array_equal(found, array.ravel())
            place += -(-array.nbytes // 8) * 8
    assert place == len(block)


def test_parameters_of_the_wrong_shape_are_an_error():
    with refused(ModelError, "filters of a stage", "shape (24, 25)"):
        pack(NetworkConfig(stages=3, patch_size=7), STAGES)


# --- Memory and arrays -------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 63, 64, 10_000])
def test_memory_is_aligned(size):
    for _ in range(5):
        piece = memory.aligned_memory(size)
        assert piece.size == size
        assert memory.address(piece) % memory.ALIGNMENT == 0


def test_memory_that_cannot_be_had_is_an_error():
    with refused(InputError, "cannot be had"):
        memory.aligned_memory(2**62)


@pytest.mark.parametrize(
    ("array", "told"),
    [
        (np.zeros((2, 3)), "x is float64 of shape"),
        (np.zeros((3, 2), np.float32), "(3, 2), but must be float32 of shape (2, 3)"),
        (np.zeros((2, 6), np.float32)[:, ::2], "x must be contiguous"),
        (np.broadcast_to(np.float32(1), (2, 3)), "x must be contiguous"),
    ],
)
def test_arrays_are_checked(array, told):
    with refused(InputError, told):
        memory.checked_address("x", array, (2, 3), np.float32)


# --- Where it is installed -----------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="takes permissions away")
def test_a_read_only_install_without_a_home(tmp_path):
    package = tmp_path / "site" / "nlnet"
    shutil.copytree(
        Path(nlnet.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    folders = [package, *(path for path in package.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    script = (
        "import numpy as np, nlnet; print(nlnet.__file__); "
        "nlnet.denoise(np.zeros((32, 32), np.uint8), 25)"
    )
    environment = {
        **{name: value for name, value in os.environ.items() if name != "HOME"},
        "PYTHONPATH": str(package.parent),
        "HOME": "/nonexistent",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).parent == package
    assert not list(package.rglob("__pycache__")) or os.geteuid() == 0  # root writes anywhere
