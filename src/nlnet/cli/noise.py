"""``nlnet noise``: what the noise of image files is."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nlnet.cli.arguments import DATA_RANGE, LARGEST, NOISE_AXIS, OVERWRITE, argument
from nlnet.cli.compare import distinct_names
from nlnet.cli.denoise_volume import LIBRARIES
from nlnet.cli.drawing import write_drawing
from nlnet.cli.extras import needs_extra
from nlnet.cli.messages import error_line
from nlnet.cli.output import check_output
from nlnet.errors import InputError, NLNetError, about
from nlnet.files.volume_paths import is_zarr

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nlnet.arrays import Array
    from nlnet.images import ImageFile
    from nlnet.noise.record import Noise

NAME = "noise"
SUMMARY = "report what kind of noise images have"
DESCRIPTION = """\
Report what kind of noise images have, and how strong it is: white noise, photon noise that grows
with the brightness, or the correlated noise of photos as cameras save them. Nothing is denoised.
"""
EPILOG = """\
examples:
  nlnet noise photo.jpg
  nlnet noise cells.tif -o noise.png                 draw it (needs matplotlib)
  nlnet noise cells.tif --json > noise.json          save it, for 'nlnet denoise --noise noise.json'
  nlnet noise *.png --json                           one line per file
  nlnet noise camera.tif --data-range 4095

Numbers are in the units of the file, as nlnet.denoise(noise=...) takes them in Python, and where
white is not 255 on the 8-bit scale as well, like --sigma of 'nlnet denoise'. The variance of photon
noise is gain * (x - black) + read noise squared; where channels differ, a slash is between their
numbers. The pages of a stack are looked at together, unless --per-page or --noise-axis is given; a
zarr array whose axes have names, channel by channel. Raw files are looked at before they are
developed. A plot needs matplotlib: pip install 'nlnet[plot]'.
"""
_FAILED = 1
_BRIGHT = 2.0
"""Floating values above this are not from 0 to 1, so that nothing is known about white."""


class Found(NamedTuple):
    """What was found in a file, or in some of its pages; the noise is in its own units.

    `part` says in which: ``("page", 3)`` or ``("channel", 1)``, counted from 1.
    """

    name: str
    part: tuple[str, int] | None
    noise: Noise
    white: float
    hot: int = 0

    def in_words(self) -> tuple[str, Noise]:
        """Return the file and, in a stack, the page or channel; and the noise if white were 255."""
        part = () if self.part is None else ("{} {}".format(*self.part),)
        return ", ".join((self.name, *part)), self.noise.scaled(255 / self.white)

    def __str__(self) -> str:
        label, scaled = self.in_words()
        hot = f"; hot or dead pixels: {self.hot}" if self.hot else ""
        if self.white == 255 or self.noise.kind == "none":
            return f"{label}: {self.noise}{hot}"
        return f"{label}: {self.noise} in the units of the file; on the 8-bit scale {scaled}{hot}"

    def to_json(self, *, named: bool) -> str:
        """Return the record as one line of JSON; `named` adds the file and the page."""
        record = self.noise.to_json()
        if not named:
            return record
        part = dict([self.part] if self.part is not None else [])
        return json.dumps({"source": self.name, **part, "noise": json.loads(record)})


ARGUMENTS = (
    argument("images FILE", "noisy image", Path, nargs="+"),
    argument(
        "-o --output FIG",
        "figure to write (PNG, PDF or SVG): noise over brightness, and its spectrum",
        Path,
    ),
    argument(
        "--json",
        "print JSON; for several files or pages, one line each, with 'source', 'page' and 'noise'",
    ),
    argument("--per-page", "report on every page of a stack by itself"),
    NOISE_AXIS,
    DATA_RANGE,
    LARGEST,
    OVERWRITE,
)


def run(arguments: argparse.Namespace) -> int:
    """Report on every file; if one of several cannot be read, the others still are."""
    if arguments.output is None:
        return _FAILED if None in list(_look_at_all(arguments)) else 0
    for path in arguments.images:
        check_output(arguments.output, overwrite=arguments.overwrite, source=path)
    everything: list[Found | None] = []

    def draw() -> Figure:
        everything.extend(_look_at_all(arguments))
        return _draw([found for found in everything if found is not None])

    write_drawing(arguments, draw)
    return _FAILED if None in everything else 0


def _look_at_all(arguments: argparse.Namespace) -> Iterator[Found | None]:
    """Print what is found as soon as it is, and yield it; None for a file that cannot be read."""
    several = len(arguments.images) > 1
    for path in arguments.images:
        try:
            for found in _look_at(path, arguments):
                if arguments.json:
                    print(found.to_json(named=several or found.part is not None), flush=True)
                else:
                    print(found, flush=True)
                yield found
        except NLNetError as error:  # noqa: PERF203 - one file must not stop the others
            if not several:
                raise
            print(error_line(error), file=sys.stderr)
            yield None


class _Stack(NamedTuple):
    """The pages of a file: how many along which axes, and how one is read."""

    leading: tuple[int, ...]
    read: Callable[[int], ImageFile]
    noise_axis: int | None = None


def _look_at(path: Path, arguments: argparse.Namespace) -> Iterator[Found]:
    import numpy as np

    from nlnet.denoising.hot_pixels import hot_pixels_of
    from nlnet.denoising.pages import groups_of_pages
    from nlnet.images import read_unless_raw
    from nlnet.inputs import find_data_range
    from nlnet.masks import read_planes
    from nlnet.noise.estimation import find_noise
    from nlnet.noise.sample import Sample, sampled_pages

    limit = 1_000_000 * arguments.max_pixels
    if is_zarr(path):
        stack = _open_zarr(path, limit)
    else:
        pages = read_unless_raw(path, limit)
        if pages is None:
            if arguments.data_range is not None:
                raise InputError(
                    f"{str(path)!r} is a raw file, which says itself what white is, so "
                    "--data-range cannot be given."
                )
            yield _look_at_raw(path, limit)
            return
        stack = _Stack(pages[0].leading, pages.__getitem__)
    axis = stack.noise_axis if arguments.noise_axis is None else arguments.noise_axis
    each = arguments.per_page and stack.leading != ()
    with about(repr(str(path))):
        groups = groups_of_pages(stack.leading, axis, per_page=each).ravel()
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group).tolist()
        chosen = [members[number] for number in sampled_pages(len(members))]
        samples, white = [], 0.0
        ends: list[Array] = []  # planes of the first and of the last page
        for number in chosen:
            with about(repr(str(path)) + ("" if len(groups) == 1 else f", page {number + 1}")):
                page = stack.read(number)
                planes = read_planes(page.pixels, None, None if page.channels == 1 else -1).planes
                known = arguments.data_range or page.data_range
                if known is None and planes.dtype.kind == "f" and planes.max() > _BRIGHT:
                    known = 255.0  # no white is known, so there is no other scale
                white = white or find_data_range(planes, known)
                samples.append(Sample.of(planes, len(chosen)).kept())
                ends = [*ends[:1], planes]
        part = None
        if each or axis is not None:
            part = ("page" if each else "channel", int(group) + 1)
        with about(repr(str(path))):
            noise = find_noise(Sample.together(samples), None)
        # Those that are hot are so in every page.
        hot = np.logical_and.reduce([hot_pixels_of(planes, noise) for planes in ends])
        yield Found(str(path), part, noise, white, int(hot.sum()))


def _open_zarr(path: Path, limit: int) -> _Stack:
    with needs_extra("dask", *LIBRARIES):
        from nlnet.dask.volumes import open_volume
    import numpy as np

    from nlnet.images import ImageFile
    from nlnet.images.content import Source

    volume = open_volume(path)
    leading = volume.shape[: volume.stacked]
    rows, columns = (volume.shape[axis] for axis in volume.image_axes)
    Source.of_path(path).check_pixels(columns, rows, limit)

    def read(number: int) -> ImageFile:
        starts = map(int, np.unravel_index(number, leading) if leading else ())
        whole = (slice(None),) * (volume.ndim - volume.stacked)
        page = volume[(*(slice(start, start + 1) for start in starts), *whole)]
        pixels = page.reshape(volume.shape[volume.stacked :])
        return ImageFile(np.moveaxis(pixels, 0, -1) if volume.channel_axis == -3 else pixels)

    return _Stack(leading, read, volume.noise_axis)


def _look_at_raw(path: Path, limit: int) -> Found:
    """Estimate the noise of a sensor, in its numbers above black."""
    from nlnet.images.content import Source
    from nlnet.noise.record import Noise, NoNoise
    from nlnet.raw.estimation import estimate_mosaic_noise
    from nlnet.raw.sensors import Sensor, opened

    with opened(path, limit) as raw:
        sensor = Sensor.of(Source.of_path(path), raw)
        with about(repr(str(path))):
            gain, read = estimate_mosaic_noise(sensor.mosaic, sensor.pattern, sensor.white)
    if gain > 0:
        noise: Noise = Noise.poisson(gain, read)
    else:
        noise = Noise.white(read) if read > 0 else NoNoise()
    return Found(str(path), None, noise, sensor.white)


def _draw(everything: list[Found]) -> Figure:
    from nlnet.plotting.noise import draw_noise

    if not everything:
        raise InputError("None of the files could be read, so nothing is drawn.")
    short = distinct_names([Path(found.name) for found in everything])
    named = zip(short, everything, strict=True)
    return draw_noise(dict(found._replace(name=name).in_words() for name, found in named))
