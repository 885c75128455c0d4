"""Report what kind of noise images have.

Report what kind of noise images have, and how strong it is: white noise, photon noise that grows
with the brightness, or the correlated noise of photos as cameras save them. Nothing is denoised.

Examples
--------
  nlnet noise photo.jpg
  nlnet noise cells.tif -o noise.png                 draw it (needs matplotlib)
  nlnet noise cells.tif --json > noise.json          save it, for 'nlnet denoise --noise noise.json'
  nlnet noise *.png --json                           one line per file
  nlnet noise camera.tif --data-range 4095

Numbers are in the units of the file, as nlnet.denoise(noise=...) takes them in Python, and where
white is not 255 on the 8-bit scale as well, like --sigma of 'nlnet denoise'. The variance of photon
noise is gain * (x - black) + read noise squared; where channels differ, a slash is between their
numbers. The pages of a stack are looked at together, unless --per-page or --noise-axis is given;
those of files that name an axis of channels (OME, ImageJ, zarr), channel by channel. Raw files are
looked at before they are developed. A plot needs matplotlib: pip install 'nlnet[plot]'.
"""

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nlnet.cli.arguments import DATA_RANGE, LARGEST, NOISE_AXIS, OVERWRITE, argument, made_of
from nlnet.cli.compare import distinct_names
from nlnet.cli.denoise_volume import LIBRARIES
from nlnet.cli.messages import error_line
from nlnet.cli.output import drawing, needs_extra
from nlnet.errors import InputError, NLNetError, about
from nlnet.files.volume_paths import is_zarr

if TYPE_CHECKING:
    from nlnet.files.settings import Settings
    from nlnet.images.content import Pages
    from nlnet.noise.record import Noise

_FAILED = 1
_BRIGHT = 2.0
"""Floating values above this are not from 0 to 1, so that nothing is known about white."""


class Found(NamedTuple):
    """What was found in a file, or in some of its pages; the noise is in its own units.

    `part` says in which: ``("page", 3)`` or ``("channel", 1)``, counted from 1.
    """

    name: str
    part: tuple[str, int] | None
    noise: "Noise"
    white: float
    hot: int = 0

    def in_words(self) -> "tuple[str, Noise]":
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
    with drawing(
        arguments.output, overwrite=arguments.overwrite, sources=arguments.images
    ) as write:
        from nlnet.plotting.noise import draw_noise

        everything = list(_look_at_all(arguments))
        read = [found for found in everything if found is not None]
        if not read:
            raise InputError("None of the files could be read, so nothing is drawn.")
        short = distinct_names([Path(found.name) for found in read])
        named = zip(short, read, strict=True)
        write(draw_noise(dict(found._replace(name=name).in_words() for name, found in named)))
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


def _look_at(path: Path, arguments: argparse.Namespace) -> Iterator[Found]:
    from nlnet.files.pages import PageWork, name_of_page
    from nlnet.files.settings import Settings
    from nlnet.images import read_unless_raw

    settings = made_of(Settings, arguments)
    pages: Pages | None
    if is_zarr(path):
        pages, axis = _open_zarr(path, settings.max_pixels)
        if settings.noise_axis is None:
            settings = dataclasses.replace(settings, noise_axis=axis)
    else:
        pages = read_unless_raw(path, settings.max_pixels)
    if pages is None:
        yield _look_at_raw(path, settings)
        return
    first, name, count = pages[0], str(path), len(pages)
    network = settings.network(first.channels)
    work = PageWork(pages, settings, network, name, lambda n: name_of_page(name, n, count))
    each = settings.per_page and first.leading != ()
    told = settings.data_range is not None or first.data_range is not None
    for group, plan, hot in work.look():
        part = None
        if each or work.noise_axis is not None:
            part = ("page" if each else "channel", group + 1)
        unknown = not told and first.pixels.dtype.kind == "f" and plan.values[1] > _BRIGHT
        yield Found(name, part, plan.noise, 255.0 if unknown else plan.white, hot)


def _open_zarr(path: Path, limit: int) -> "tuple[Pages, int | None]":
    """Return the pages of an array, and the axis of them that zarr calls c."""
    with needs_extra("dask", *LIBRARIES):
        from nlnet.dask.volumes import open_volume
    import numpy as np

    from nlnet.images import ImageFile
    from nlnet.images.content import Pages, Source

    volume = open_volume(path)
    layout = volume.layout
    Source.of_path(path).check_pixels(*layout.shape[:0:-1], limit)

    def read(number: int) -> ImageFile:
        starts = map(int, np.unravel_index(number, layout.pages) if layout.pages else ())
        page = volume[tuple(slice(start, start + 1) for start in starts)]
        pixels = page.reshape(volume.shape[len(layout.pages) :])
        pixels = np.moveaxis(pixels, 0, -1) if layout.channel_axis == -3 else pixels
        return ImageFile(pixels, leading=layout.pages)

    return Pages(math.prod(layout.pages), read), volume.noise_axis


def _look_at_raw(path: Path, settings: "Settings") -> Found:
    """Estimate the noise of a sensor, in its numbers above black."""
    if settings.data_range is not None:
        raise InputError(
            f"{str(path)!r} is a raw file, which says itself what white is, so --data-range "
            "cannot be given."
        )
    from nlnet.images.content import Source
    from nlnet.noise.record import Noise, NoNoise
    from nlnet.raw.estimation import estimate_mosaic_noise
    from nlnet.raw.sensors import Sensor, opened

    with opened(Source.of_path(path), settings.max_pixels) as raw:
        sensor = Sensor.of(Source.of_path(path), raw)
        with about(repr(str(path))):
            gain, read = estimate_mosaic_noise(sensor.mosaic, sensor.pattern, sensor.white)
    if gain > 0:
        noise: Noise = Noise.poisson(gain, read)
    else:
        noise = Noise.white(read) if read > 0 else NoNoise()
    return Found(str(path), None, noise, sensor.white)
