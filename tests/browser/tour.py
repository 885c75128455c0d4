"""A visit to the page: what a person does and sees there, as methods."""

from __future__ import annotations

import base64
import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nlnet.cli import main
from nlnet.images import read_image

SECONDS = 60
"""How long things may take; a machine that is busy with other things takes long."""

DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}


HOLD_BACK = """(whole) => {
  globalThis.sizes = [];
  globalThis.letGo = null;
  const { send } = XMLHttpRequest.prototype;
  XMLHttpRequest.prototype.send = function (body) {
    const { size } = body.get("file");
    sizes.push(size);
    if (size !== whole) return send.call(this, body);
    globalThis.letGo = () => send.call(this, body);
  };
}"""
"""In the page: the whole image, told by the size of its file, is not sent before `letGo()`, so
there is time to look at the part that comes first. The sizes of all files are kept."""


@dataclasses.dataclass
class Visit:
    """A page, the server's address, and what the page asked for and complained about."""

    page: Any
    url: str
    requests: list[str]
    complaints: list[str]
    served: bool = True
    """Whether a server does the work, rather than the page."""

    def expect(self, selector: str, text: str | re.Pattern[str] | None = None) -> Any:
        """Wait until an element is visible, with that text in it."""
        locator = self.page.locator(selector)
        if text is not None:
            locator = locator.filter(has_text=text)
        locator.wait_for(state="visible", timeout=1000 * SECONDS)
        return locator

    def open(self, *paths: Path) -> None:
        """Choose files as people do."""
        with self.page.expect_file_chooser() as chooser:
            self.page.locator("[data-choose]:visible").first.click()
        chooser.value.set_files(paths)

    def open_and_wait(self, path: Path) -> None:
        """Choose a file, and wait until it is denoised and shown."""
        self.open(path)
        self.expect("#result")
        self.expect("#handle")

    def be_busy_twice(self, path: str) -> None:
        """Let the server answer the first two requests to a path as if it had too much to do."""
        answers = [503, 503]

        def answer(route: Any) -> None:
            if not answers:
                route.continue_()
                return
            body = '{"detail": "The server is busy."}'
            route.fulfill(status=answers.pop(), headers={"Retry-After": "1"}, body=body)

        self.page.route(path, answer)

    def fact(self, name: str) -> str:
        """Return what stands under "Advanced"."""
        if not self.page.locator("#advanced").evaluate("details => details.open"):
            self.page.locator("#advanced summary").click()
        return str(self.expect(f"#fact-{name}").text_content())

    def settle(self) -> None:
        """Wait until the page has drawn what the last input asked for."""
        self.page.evaluate(
            """() => new Promise((next) => requestAnimationFrame(() =>
              requestAnimationFrame(() => setTimeout(next))))"""
        )

    def forgive(self) -> str:
        """Take the oldest complaint, which may come later than what the page shows."""
        for _ in range(100 * SECONDS):
            if self.complaints:
                break
            self.page.wait_for_timeout(10)
        return self.complaints.pop(0)

    def choose_noise(self, kind: str) -> None:
        """Choose a kind of noise, and wait until the work that this causes is done and shown."""
        work = self.work()
        self.page.locator("#noise").select_option(kind)
        for _ in range(100 * SECONDS):
            if self.work() > work:
                break
            self.page.wait_for_timeout(10)
        self.page.locator("#stale").wait_for(state="hidden")

    def work(self) -> int:
        """Return how many images were sent to be denoised so far."""
        return self.count("/api/denoise") if self.served else int(self.page.evaluate("asked"))

    def hold(self) -> None:
        """Let no more work come to an end."""
        if self.served:
            self.page.route("**/api/denoise", lambda route: None)
        else:
            self.page.evaluate("() => { isHeld = () => true; }")

    def hold_whole(self, path: Path) -> None:
        """Hold back what is asked for a file, but not for a part before it, until `letGo()`."""
        if self.served:
            self.page.evaluate(HOLD_BACK, path.stat().st_size)
        else:
            self.page.evaluate("() => { let parts = 1; isHeld = () => parts-- < 1; letGo = null; }")

    def count(self, path: str) -> int:
        """Return how many requests went to a path so far."""
        return sum(url.endswith(path) for url in self.requests)

    def set_slider(self, name: str, value: int) -> None:
        """Move a slider to a value, as one movement."""
        self.page.locator(f"#{name}").fill(str(value))

    def place(self) -> int:
        """Return where the boundary is, in percent."""
        return int(self.expect("#handle").get_attribute("aria-valuenow"))

    def split(self) -> int:
        """Return where it is once it does not move by itself any more."""
        self.expect("#handle:not([data-gliding])")
        self.settle()
        return self.place()

    def shown(self, image: str) -> np.ndarray:
        """Return the pixels of one of the two images, as the browser has decoded them."""
        code = """async (image) => {
          await image.decode();
          const canvas = document.createElement("canvas");
          canvas.width = image.naturalWidth;
          canvas.height = image.naturalHeight;
          const context = canvas.getContext("2d");
          context.drawImage(image, 0, 0);
          const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
          const letters = Array.from(data, (value) => String.fromCharCode(value));
          return [canvas.height, canvas.width, btoa(letters.join(""))];
        }"""
        height, width, text = self.page.locator(f"#{image}").evaluate(code)
        return np.frombuffer(base64.b64decode(text), np.uint8).reshape(height, width, 4)

    def blended(self) -> np.ndarray:
        """Return what is blended on the screen; the image has to be in view in its real size."""
        self.expect("#blend[data-drawn]")
        code = """(canvas) => {
          const [image, view] = ["before", "view"].map((id) =>
            document.getElementById(id).getBoundingClientRect());
          const [x, y] = [Math.round(image.x - view.x), Math.round(image.y - view.y)];
          const copy = document.createElement("canvas");
          Object.assign(copy, { width: image.width, height: image.height });
          const context = copy.getContext("2d");
          context.drawImage(canvas, -x, -y);
          const { data } = context.getImageData(0, 0, image.width, image.height);
          const letters = Array.from(data, (value) => String.fromCharCode(value));
          return [image.height, image.width, btoa(letters.join(""))];
        }"""
        height, width, text = self.page.locator("#blend").evaluate(code)
        flat = np.frombuffer(base64.b64decode(text), np.uint8)
        return flat.reshape(round(height), round(width), 4)[..., :3].astype(float)

    def download(self, target: Path) -> str:
        """Save the result, and return the name that the page suggests."""
        with self.page.expect_download() as download:
            self.expect("#download").click()
        download.value.save_as(target)
        return str(download.value.suggested_filename)

    def hand_over(self, event: str, name: str, data: bytes) -> None:
        """Drop or paste a file; one without a name is none."""
        code = """([kind, name, text]) => {
          const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
          const files = new DataTransfer();
          if (name) files.items.add(new File([bytes], name));
          const options = { bubbles: true, cancelable: true };
          const event = kind === "paste"
            ? new ClipboardEvent(kind, { ...options, clipboardData: files })
            : new DragEvent(kind, { ...options, dataTransfer: files });
          document.body.dispatchEvent(event);
        }"""
        self.page.evaluate(code, [event, name, base64.b64encode(data).decode()])


Visits = Callable[..., Visit]
"""What opens a page."""


def by_command_line(source: Path, models: list[Path], *options: object) -> np.ndarray:
    """What ``nlnet denoise`` makes of a file."""
    target = source.with_name(f"expected{source.suffix}")
    if models:
        options = (*options, "--model", models[read_image(source).pixels.ndim == 3])
    assert main([str(word) for word in ("denoise", source, "-o", target, *options)]) == 0
    return read_image(target).pixels
