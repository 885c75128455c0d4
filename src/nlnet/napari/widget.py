"""The widget: what to do with which layer, and a thread that does it."""

import gc
import threading
from typing import TYPE_CHECKING, Any

from nlnet.defaults import QUALITIES
from nlnet.errors import Cancelled
from nlnet.inputs import MOST_STRENGTH

if TYPE_CHECKING:
    import napari
    from magicgui.widgets import Container

_NOISES = {
    "estimated": None,
    "white": "white",
    "photons": "poisson",
    "camera (correlated)": "camera",
}

_ALONE = "every page by itself"


def make_widget(napari_viewer: "napari.viewer.Viewer") -> "Container":
    """Return the widget that denoises layers of a viewer."""
    return _Widget(napari_viewer).container


class _Widget:
    """The controls, and the work that is under way."""

    def __init__(self, viewer: Any) -> None:
        from magicgui import widgets
        from napari.layers import Image, Labels
        from qtpy.QtCore import QTimer

        self.viewer, self.worker = viewer, None
        self._stopped, self._share, self._collects = threading.Event(), 0.0, False

        def number(label: str, tip: str, value: float = 0, most: float = 1e9) -> Any:
            return widgets.FloatSpinBox(
                label=label, tooltip=tip, value=value, min=0, max=most, step=0.1
            )

        self.layer = widgets.create_widget(annotation=Image, label="layer")
        self.mask = widgets.create_widget(
            annotation=Labels | None,
            label="leave out",
            options={"tooltip": "Labels other than 0 are left as they are."},
        )
        self.noise = widgets.ComboBox(label="noise", choices=list(_NOISES))
        self.sigma = number("sigma", "Standard deviation in the layer's units; 0 to estimate it.")
        self.strength = number("strength", "1 removes what was found.", 1, MOST_STRENGTH)
        self.quality = widgets.ComboBox(label="quality", choices=QUALITIES)
        self.white = number("data range", "The value of white; 0 for that of the layer's type.")
        self.along = widgets.ComboBox(
            label="along",
            choices=lambda _: self._axes(),
            tooltip="The axis along which pages show nearly the same, such as time or depth.",
        )
        self.start = widgets.PushButton(text="Denoise")
        self.stop = widgets.PushButton(text="Cancel", enabled=False)
        self.bar = widgets.ProgressBar(value=0, max=100, label="done")
        buttons = widgets.Container(
            widgets=[self.start, self.stop], layout="horizontal", labels=False
        )
        settings = [self.layer, self.mask, self.noise, self.sigma, self.strength, self.quality]
        self.container = widgets.Container(
            widgets=[*settings, self.white, self.along, self.bar, buttons]
        )
        # The container lives as long as the window; so does what its buttons call.
        self.container.native.nlnet_widget = self
        # The thread that works must not touch what is shown.
        self._clock = QTimer(self.container.native, interval=100)
        self._clock.timeout.connect(self._tick)
        self.layer.changed.connect(lambda _: self.along.reset_choices())
        self.start.changed.connect(self.run)
        self.stop.changed.connect(self._stopped.set)

    def _tick(self) -> None:
        """Show the progress, and collect the garbage that the thread must not collect."""
        self.bar.value = round(100 * self._share)
        gc.collect(1)

    def _axes(self) -> list[tuple[str, int | None]]:
        """Return the axes in front of rows and columns, by their names, and none of them."""
        layer = self.layer.value
        count = 0 if layer is None else layer.ndim - 2
        names = [] if layer is None else [str(name) for name in layer.axis_labels[:count]]
        return [(_ALONE, None), *((name, axis) for axis, name in enumerate(names))]

    def run(self) -> None:
        """Denoise the layer in a thread, and add the result to the viewer."""
        from napari.qt.threading import create_worker
        from napari.utils.notifications import show_error, show_info

        layer = self.layer.value
        if layer is None:
            show_info("There is no image layer to denoise.")
            return
        options = self.options()
        data = layer.data[0] if layer.multiscale else layer.data
        mask = None if self.mask.value is None else self.mask.value.data != 0
        self._stopped.clear()
        # Any thread may collect garbage, and crashes if it deletes objects of Qt (napari#1029).
        self._collects = gc.isenabled()
        gc.disable()
        self._show(busy=True)

        def report(share: float) -> bool:
            self._share = share
            return not self._stopped.is_set()

        def work() -> Any:
            import nlnet

            try:
                return nlnet.denoise_stack(
                    data, rgb=layer.rgb, mask=mask, progress=report, **options
                )
            except Cancelled:
                return None

        def add(pixels: Any) -> None:
            if pixels is not None:
                _, settings, kind = layer.as_layer_data_tuple()
                settings |= {
                    "name": f"{layer.name}, denoised",
                    "multiscale": False,
                    "metadata": {**layer.metadata, "nlnet": options},
                }
                self.viewer._add_layer_from_data(pixels, settings, kind)

        # Whoever changes the layer while it is denoised finds the changes in the result's settings.
        self.worker = create_worker(
            work,
            _start_thread=True,
            _connect={
                "returned": add,
                "errored": lambda error: show_error(str(error)),
                "finished": self._finish,
            },
        )

    def _finish(self) -> None:
        if self._collects:
            gc.enable()
        self._show(busy=False)

    def options(self) -> dict[str, Any]:
        """Return what `nlnet.denoise_stack` is asked for."""
        return {
            "sigma": self.sigma.value or None,
            "noise": _NOISES[self.noise.value],
            "strength": self.strength.value,
            "quality": self.quality.value,
            "data_range": self.white.value or None,
            "along": self.along.value,
        }

    def _show(self, *, busy: bool) -> None:
        self.start.enabled, self.stop.enabled = not busy, busy
        self._share = self.bar.value = 0
        (self._clock.start if busy else self._clock.stop)()
