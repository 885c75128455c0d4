"""Fixtures that several test modules share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import numpy as np
import pytest
from paths import PROJECT
from pictures import DenoiseFile, random_image, small_model

from nlnet.cli import main
from nlnet.engine.jobs import Job
from nlnet.images import ImageFile, read_pages, write_image
from nlnet.model.model import Model

# A slow or busy machine is no failure; tests that are about time say so themselves.
hypothesis.settings.register_profile("nlnet", deadline=None)
hypothesis.settings.load_profile("nlnet")

# A shell starts background jobs with Ctrl-C ignored, and their children would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Programs that tests start have no examples to collect, and do things when they are imported.
collect_ignore = [
    path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The examples in docstrings show numbers, too: they belong to the numerical tests."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.add_marker(pytest.mark.numerical)


@pytest.fixture(autouse=True)
def _no_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that are said not to call the engine, and so run less often, must not call it."""
    if request.node.get_closest_marker("engineless") is not None:
        monkeypatch.setattr(Job, "run", _refuse)


def _refuse(*_: object) -> None:
    raise AssertionError("It is marked as engineless, but calls the engine.")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The data folder beside the project, which not everyone has."""
    folder = Path(os.environ.get("NLNET_SHARED", PROJECT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("no data folder: set NLNET_SHARED")
    return folder


@pytest.fixture(scope="session")
def gray_model() -> Model:
    return small_model(1)


@pytest.fixture(scope="session")
def color_model() -> Model:
    return small_model(3)


@pytest.fixture(scope="session")
def gray_model_file(gray_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "gray.safetensors"
    gray_model.save(path)
    return path


@pytest.fixture(scope="session")
def color_model_file(color_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "color.safetensors"
    color_model.save(path)
    return path


@pytest.fixture
def noisy_gray() -> np.ndarray:
    """A noisy step on the 0-255 scale, not square, in float32."""
    clean = np.full((24, 31), 80.0)
    clean[:, 14:] = 170.0
    return (clean + np.random.default_rng(5).normal(0, 20, clean.shape)).astype(np.float32)


@pytest.fixture
def noisy_file(tmp_path: Path) -> Path:
    path = tmp_path / "noisy.png"
    write_image(path, ImageFile(random_image()))
    return path


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that must fail with one sentence and code 2; return the sentence."""

    def run(*arguments: object) -> str:
        code: object
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # how argparse ends
            code = stop.code
        captured = capsys.readouterr()
        assert code == 2
        assert captured.out == ""
        assert captured.err.startswith("nlnet: error: ")
        assert captured.err.count("\n") == 1
        return captured.err

    return run


@pytest.fixture
def denoise_file(gray_model_file: Path, color_model_file: Path) -> DenoiseFile:
    """Send a file through the command line, with the model that fits; return the first page."""

    def run(source: Path, target: Path, *options: object) -> np.ndarray:
        channels = read_pages(source)[0].channels
        model = gray_model_file if channels == 1 else color_model_file
        arguments = ["denoise", source, "-o", target, "--sigma", "25", "--model", model, *options]
        assert main([str(argument) for argument in arguments]) == 0
        return read_pages(target)[0].pixels

    return run


@pytest.fixture
def dask_in_this_thread() -> Iterator[None]:
    """Let dask compute here, one task after the other."""
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        yield
