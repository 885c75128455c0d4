"""``nlnet noise``: what the noise of image files is."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nlnet.cli.arguments import DATA_RANGE, LARGEST, OVERWRITE, argument
from nlnet.cli.compare import distinct_names
from nlnet.cli.drawing import write_drawing
from nlnet.cli.messages import error_line
from nlnet.cli.output import check_output
from nlnet.errors import InputError, NLNetError, about

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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

Numbers are on the 8-bit scale whatever the bit depth of the file, like --sigma of 'nlnet denoise'.
With --json they are in the units of the image, as nlnet.denoise(noise=...) takes them in Python.
The variance of photon noise is gain * (x - black) + read noise squared. The pages of a stack are
looked at together, unless --per-page is given, and raw files before they are developed. A plot
needs matplotlib: pip install 'nlnet[plot]'.
"""
_FAILED = 1


class Found(NamedTuple):
    """What was found in a file, or in one page of it; the noise is in the file's own units."""

    name: str
    page: int | None
    noise: Noise
    white: float

    def in_words(self) -> tuple[str, Noise]:
        """Return the file and, in a stack, the page; and the noise if white were 255."""
        label = self.name if self.page is None else f"{self.name}, page {self.page}"
        return label, self.noise.scaled(255 / self.white)

    def to_json(self, *, named: bool) -> str:
        """Return the record as one line of JSON; `named` adds the file and the page."""
        record = self.noise.to_json()
        if not named:
            return record
        page = {} if self.page is None else {"page": self.page}
        return json.dumps({"source": self.name, **page, "noise": json.loads(record)})


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
                    print(found.to_json(named=several or found.page is not None), flush=True)
                else:
                    label, noise = found.in_words()
                    print(f"{label}: {noise}", flush=True)
                yield found
        except NLNetError as error:  # noqa: PERF203 - one file must not stop the others
            if not several:
                raise
            print(error_line(error), file=sys.stderr)
            yield None


def _look_at(path: Path, arguments: argparse.Namespace) -> Iterator[Found]:
    from nlnet.images import read_unless_raw
    from nlnet.inputs import find_data_range
    from nlnet.masks import read_planes
    from nlnet.noise.estimation import find_noise
    from nlnet.noise.sample import SAMPLED_PAGES, Sample, sampled_pages

    limit = 1_000_000 * arguments.max_pixels
    pages = read_unless_raw(path, limit)
    if pages is None:
        if arguments.data_range is not None:
            raise InputError(
                f"{str(path)!r} is a raw file, which says itself what white is, so --data-range "
                "cannot be given."
            )
        yield _look_at_raw(path, limit)
        return
    each = arguments.per_page and len(pages) > 1
    samples, white = [], 0.0
    for number in range(len(pages)) if each else sampled_pages(len(pages)):
        page = pages[number]
        with about(repr(str(path)) + ("" if len(pages) == 1 else f", page {number + 1}")):
            planes = read_planes(page.pixels, None, None if page.channels == 1 else -1).planes
            white = white or find_data_range(planes, arguments.data_range or page.data_range)
            sample = Sample.of(planes, 1 if each else min(len(pages), SAMPLED_PAGES)).kept()
            if each:
                yield Found(str(path), number + 1, find_noise(sample, None), white)
        samples.append(sample)
    if not each:
        with about(repr(str(path))):
            yield Found(str(path), None, find_noise(Sample.together(samples), None), white)


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
