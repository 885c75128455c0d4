"""The plugin for napari, in napari itself; skipped where napari is missing."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nlnet
import nlnet.napari
from nlnet.napari.samples import cells

# What napari and its libraries warn of is not ours to mend.
pytestmark = [pytest.mark.napari, pytest.mark.filterwarnings("ignore")]

MANIFEST = Path(nlnet.napari.__file__).parent / "napari.yaml"


@pytest.fixture
def viewer() -> Iterator[Any]:
    napari = pytest.importorskip("napari")
    pytest.importorskip("qtpy.QtWidgets")
    window = napari.Viewer(show=False)
    yield window
    window.close()


def docked(viewer: Any) -> Any:
    """Return the plugin's widget, in the window."""
    from nlnet.napari.widget import make_widget

    container = make_widget(viewer)
    viewer.window.add_dock_widget(container, name="Denoise")
    return container.native.nlnet_widget


def wait(done: Callable[[], bool]) -> None:
    from qtpy.QtWidgets import QApplication

    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, "the widget did not come back"
        QApplication.processEvents()
        time.sleep(0.01)


def noisy(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(100, 10, shape).astype(np.float32)


def test_the_manifest() -> None:
    npe2 = pytest.importorskip("npe2")
    manifest = npe2.PluginManifest.from_file(MANIFEST)
    manifest.validate_imports()
    parts = manifest.contributions
    used = {parts.widgets[0].command, parts.sample_data[0].command}
    assert used == {command.id for command in parts.commands}
    ((movie, options, kind),) = cells()
    assert kind == "image"
    assert movie.ndim == 3
    assert nlnet.estimate_noise(movie[0]).kind == "poisson"
    assert options["name"] == "cells"


def test_a_layer_is_denoised_and_keeps_its_place(viewer: Any) -> None:
    layer = viewer.add_image(
        noisy(2, 48, 56),
        scale=(3, 0.5, 0.5),
        translate=(1, 2, 3),
        metadata={"stage": 7},
        colormap="green",
        contrast_limits=(50, 150),
    )
    widget = docked(viewer)
    widget.sigma.value, widget.white.value = 10, 255
    widget.start.native.click()
    assert widget.stop.enabled
    wait(lambda: widget.start.enabled)
    result = viewer.layers[-1]
    assert result.name.endswith("denoised")
    expected = nlnet.denoise_stack(layer.data, 10, data_range=255)
    np.testing.assert_array_equal(result.data, expected)
    np.testing.assert_array_equal(result.scale, layer.scale)
    np.testing.assert_array_equal(result.translate, layer.translate)
    assert result.colormap.name == "green"
    assert result.contrast_limits == [50, 150]
    assert result.metadata["stage"] == 7
    assert result.metadata["nlnet"]["sigma"] == 10


def test_along_time_in_color_and_with_labels(viewer: Any) -> None:
    viewer.add_image(noisy(3, 40, 40, 3), rgb=True, axis_labels=("t", "y", "x"))
    hidden = np.zeros((40, 40), np.int32)
    hidden[5:9, 5:9] = 3
    labels = viewer.add_labels(hidden)
    widget = docked(viewer)
    assert widget.along.choices == (None, 0)
    widget.along.value = 0
    widget.mask.value = labels
    widget.sigma.value, widget.white.value = 10, 255
    before = viewer.layers[0].data
    widget.run()
    wait(lambda: widget.start.enabled)
    result = viewer.layers[-1]
    assert result.rgb
    np.testing.assert_array_equal(result.data[:, 5:9, 5:9], before[:, 5:9, 5:9])
    assert result.data.std() < before.std() / 2


def test_it_can_be_cancelled(viewer: Any) -> None:
    viewer.add_image(noisy(60, 256, 256))
    widget = docked(viewer)
    widget.sigma.value, widget.quality.value = 10, "best"
    widget.run()
    wait(lambda: widget.bar.value > 0)
    widget.stop.native.click()
    wait(lambda: widget.start.enabled)
    assert len(viewer.layers) == 1


def test_the_thread_collects_no_garbage(viewer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    viewer.add_image(noisy(4, 48, 48))
    widget = docked(viewer)
    widget.sigma.value, widget.white.value = 10, 255
    work, working, collected_in = nlnet.denoise_stack, [], []

    def wasteful(*arguments: Any, **options: Any) -> Any:
        working.append(threading.current_thread())
        garbage = [[]]
        for _ in range(20 * gc.get_threshold()[0]):
            garbage = [garbage]  # kept, so that it counts as new
        return work(*arguments, **options)

    def note(phase: str, _: Any) -> None:
        collected_in.append(threading.current_thread())

    monkeypatch.setattr(nlnet, "denoise_stack", wasteful)
    gc.callbacks.append(note)
    try:
        widget.run()
        wait(lambda: widget.start.enabled)
    finally:
        gc.callbacks.remove(note)
    assert working
    assert threading.main_thread() not in working
    assert not set(working) & set(collected_in)
    assert gc.isenabled()


def test_what_cannot_be_done_is_said(viewer: Any) -> None:
    from napari.utils.notifications import notification_manager

    viewer.add_image(noisy(48, 48))
    widget = docked(viewer)
    widget.noise.value, widget.sigma.value = "photons", 5
    widget.run()
    wait(lambda: widget.start.enabled)
    assert "sigma is given for poisson noise" in notification_manager.records[-1].message
    assert len(viewer.layers) == 1
