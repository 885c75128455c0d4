"""The picture of the napari plugin in docs/integrations.md: ``make napari-screenshot``.

Opens the sample movie, denoises it along time, and shows both layers side by side.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import napari  # type: ignore[import-not-found,unused-ignore]
import pyvips
from qtpy.QtWidgets import QApplication  # type: ignore[import-not-found,unused-ignore]

from nlnet.atomic import write_atomically
from nlnet.napari.samples import cells
from nlnet.napari.widget import make_widget

OUTPUT = Path(__file__).parents[1] / "docs" / "images" / "napari.jpg"


def main() -> int:
    """Open napari, denoise, and write what its window shows."""
    viewer = napari.Viewer(show=True)
    viewer.window.resize(1280, 760)
    for layer in cells():
        viewer._add_layer_from_data(*layer)
    viewer.layers[0].axis_labels = ("t", "y", "x")
    container = make_widget(viewer)
    viewer.window.add_dock_widget(container, name="Denoise (nlnet)", area="right")
    widget = container.native.nlnet_widget
    widget.along.reset_choices()
    widget.noise.value, widget.along.value = "photons", 0
    widget.run()
    end = time.monotonic() + 120
    while not widget.start.enabled and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.01)
    for layer in viewer.layers:
        layer.contrast_limits = (0, 45)
    viewer.dims.set_point(0, 3)
    viewer.canvas.grid.enabled = True
    viewer.reset_view()
    for _ in range(50):
        QApplication.processEvents()
        time.sleep(0.02)
    shown = pyvips.Image.new_from_array(viewer.screenshot(canvas_only=False)[..., :3].copy())
    write_atomically(OUTPUT, shown.jpegsave_buffer(Q=70, strip=True))
    viewer.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
