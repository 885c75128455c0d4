"""Series of large pages: cut into windows, so that their size does not matter.

Motion and brightness are estimated for each window, and so are the same wherever it is worked on: a
task that sees one window and what is around it has the result of the whole series in memory.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

from nlnet.arrays import Array
from nlnet.denoising.network import Network
from nlnet.denoising.page import PlannedPage
from nlnet.denoising.series import REACH
from nlnet.denoising.series_pages import denoise_series
from nlnet.progress import Report, ignore

_WINDOW = 4096
"""Longest side of a page that is worked on as a whole."""

_AROUND = 512
"""Pixels around a window that are worked on with it: twice the reach of the networks, for the guide
and the result, and room for motion."""


def window_sides(length: int) -> tuple[tuple[int, ...], int]:
    """Return the sides of the windows that a side of a page is cut into, and the pixels around.

    Examples
    --------
    >>> window_sides(4000), window_sides(10000)
    (((4000,), 0), ((3333, 3333, 3334), 512))
    """
    count = -(-length // _WINDOW)
    ends = [length * number // count for number in range(count + 1)]
    sides = tuple(last - first for first, last in itertools.pairwise(ends))
    return sides, _AROUND if count > 1 else 0


def denoise_in_windows(
    size: tuple[int, int],
    count: int,
    read: Callable[[int], PlannedPage | None],
    network: Network,
    report: Report,
    wanted: Sequence[int] | None = None,
) -> Iterator[tuple[int, PlannedPage | None, Array | None]]:
    """Yield what `denoise_series` yields, for pages of any size."""
    windows = list(itertools.product(*map(_windows, size)))
    if len(windows) == 1:
        yield from denoise_series(count, read, network, report, wanted)
        return
    pages: dict[int, PlannedPage | None] = {}

    def whole(number: int) -> PlannedPage | None:
        """Read a page once; all windows come to it before the next but some."""
        if number not in pages:
            pages[number] = read(number)
            pages.pop(number - 2 * REACH - 1, None)
        return pages[number]

    def parts(at: int) -> Iterator[tuple[int, PlannedPage | None, Array | None]]:
        (_, rows, _), (_, columns, _) = windows[at]

        def read_part(number: int) -> PlannedPage | None:
            found = whole(number)
            return None if found is None else found.part((rows, columns))

        # All windows advance together: the last one tells how far the pages are.
        told = report if at + 1 == len(windows) else ignore
        return denoise_series(count, read_part, network, told, wanted)

    for results in zip(*map(parts, range(len(windows))), strict=True):
        number = results[0][0]
        found, image = pages[number], None
        for ((down, _, y), (right, _, x)), (*_, piece) in zip(windows, results, strict=True):
            if found is not None and piece is not None:
                image = found.page.image.astype(piece.dtype) if image is None else image
                image[down, right] = piece[y, x]
        yield number, found, image


def _windows(length: int) -> Iterator[tuple[slice, slice, slice]]:
    """Yield the windows of a side: each place, that with what is around, and the place in that."""
    sides, around = window_sides(length)
    for last, side in zip(itertools.accumulate(sides), sides, strict=True):
        first = last - side
        start, stop = max(0, first - around), min(length, last + around)
        yield slice(first, last), slice(start, stop), slice(first - start, last - start)
