"""The pages of an image file, of a command or of an upload: denoised one after the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from nlnet.arrays import Array
from nlnet.denoising.network import Network
from nlnet.denoising.page import PageFindings, denoise_page, plan_together
from nlnet.denoising.plan import Request
from nlnet.denoising.strength import check_strength
from nlnet.errors import InputError, about
from nlnet.files.settings import FileSigma, Settings
from nlnet.images import ImageFile
from nlnet.inputs import find_data_range
from nlnet.masks import Planes, read_planes
from nlnet.noise.record import Noise, NoNoise
from nlnet.progress import Report, one_of

Side: TypeAlias = Callable[[int], Array | None]
"""Called with the number of a page; returns what lies beside it, a mask or a map of sigma."""


def denoise_pages(
    pages: Sequence[ImageFile],
    settings: Settings,
    network: Network,
    report: Report,
    *,
    name: str,
    mask_of: Side = lambda _: None,
    map_of: Side = lambda _: None,
) -> tuple[list[ImageFile], list[PageFindings]]:
    """Denoise all pages of a file, and say what was found in each.

    Parameters
    ----------
    pages : sequence of ImageFile
        The pages, which are decoded when they are asked for.
    settings : Settings
        What is asked for.
    network, report
        As for `nlnet.denoising.page.denoise_page`.
    name : str
        What errors call the file.
    mask_of, map_of : callable
        What masks, and maps of sigma if white is 255, lie beside the pages.

    Raises
    ------
    InputError, ModelError, Cancelled
        As `nlnet.denoise`; errors name the page.
    """
    count, first = len(pages), pages[0]
    with about(repr(name)):
        sigmas = sigmas_of_pages(settings.sigma, count)
    strength = settings.strength
    if isinstance(strength, tuple) and first.channels == 1:
        strength = strength[0]
    shares = check_strength(strength, first.channels)
    white = settings.data_range or first.data_range
    request = Request(settings.noise, white, hot_pixels=settings.hot_pixels)

    def read(number: int) -> tuple[ImageFile, Planes]:
        page = pages[number] if number else first
        with about(name_of_page(name, number, count)):
            axis = None if page.channels == 1 else -1
            return page, read_planes(page.pixels, mask_of(number), axis)

    common = None
    if count > 1 and not settings.per_page and map_of(0) is None:
        one = sigmas[0]
        if one is not None:
            one *= find_data_range(read(0)[1].planes, request.data_range) / 255
        common = plan_together(count, lambda number: read(number)[1].planes, one, request)
    # Values that integers would round away are kept where floating ones are written.
    dtype = np.dtype(np.float32) if settings.writing.depth == "float32" else None
    results, findings = [], []
    for number, sigma in enumerate(sigmas):
        page, planes = read(number)
        with about(name_of_page(name, number, count)):
            given = map_of(number) if sigma is None else sigma
            if given is not None:
                given = given * (find_data_range(planes.planes, request.data_range) / 255)
            part = one_of(report, number, count)
            asked = given, request, shares, network
            pixels, found = denoise_page(planes, *asked, part, common, dtype)
        alpha = None if page.alpha is None else page.alpha.astype(pixels.dtype, copy=False)
        results.append(dataclasses.replace(page, pixels=pixels, alpha=alpha))
        findings.append(found)
    return results, findings


def sigmas_of_pages(sigma: FileSigma, count: int) -> list[float | None]:
    """Return the sigma of every page, None where it has to be estimated.

    Raises
    ------
    InputError
        If there are several, but not one for each page.

    Examples
    --------
    >>> sigmas_of_pages(10.0, 2), sigmas_of_pages((10.0, 12.0), 2)
    ([10.0, 10.0], [10.0, 12.0])
    """
    if not isinstance(sigma, tuple):
        return [sigma] * count
    if len(sigma) != count:
        pages, wanted = f"{count} pages", "give one, or one for each page"
        if count == 1:
            pages, wanted = "1 page", "give one"
        raise InputError(f"{len(sigma)} sigmas are given for {pages}; {wanted}.")
    return list(sigma)


def name_of_page(name: str, number: int, count: int) -> str:
    """Return what errors call a page, of which the first is number 0.

    Examples
    --------
    >>> print(name_of_page("a.tif", 1, 3))
    'a.tif', page 2 of 3
    """
    return repr(name) + (f", page {number + 1} of {count}" if count > 1 else "")


def notes_of(found: Sequence[PageFindings], option: str = "--data-range") -> tuple[str, ...]:
    """Say what was lost, left out or doubtful in the pages of a file."""
    unclipped = sum(page.plan.unclipped for page in found)
    notes = unclipped_note(unclipped, len(found), found[0].plan.white, option)
    plan = min((page.plan for page in found), key=lambda plan: plan.noise.certainty)
    doubtful = plan.noise.scaled(255 / plan.white)
    notes += left_out_note(sum(page.left_out for page in found)) + doubt_note(doubtful)
    hot = sum(page.hot for page in found)
    return (*notes, f"hot or dead pixels that were filled: {hot}") if hot else notes


_SURE = 0.8
"""Certainty from which on there is nothing to say about it."""


def doubt_note(noise: Noise) -> tuple[str, ...]:
    """Say that it is not sure whether there is noise, if so, and what to do.

    Examples
    --------
    >>> for note in doubt_note(Noise.white(3.0)) + doubt_note(NoNoise(2.0, certainty=0.6)):
    ...     print(note)
    there may be noise of about 2 after all (40%): --noise camera, or --sigma, removes it
    """
    if noise.certainty >= _SURE:
        return ()
    if isinstance(noise, NoNoise):
        return (
            f"there may be noise of about {noise.sigma:.2g} after all "
            f"({1 - noise.certainty:.0%}): --noise camera, or --sigma, removes it",
        )
    return (
        f"it may be texture ({1 - noise.certainty:.0%}), so a part of it stays: --noise camera "
        "removes all of it, and --strength 0 nothing",
    )


def unclipped_note(
    count: int, pages: int, white: float, option: str = "--data-range"
) -> tuple[str, ...]:
    """Say in how many pages nothing was clipped, if any.

    Examples
    --------
    >>> for note in unclipped_note(2, 3, 1.0):
    ...     print(note)
    2 of 3 pages have values that noise around a range from 0 to 1 does not explain: nothing is \
clipped (--data-range says what white is)
    """
    if count == 0:
        return ()
    which = "it has" if pages == 1 else f"{count} of {pages} pages have"
    return (
        f"{which} values that noise around a range from 0 to {white:g} does not explain: nothing "
        f"is clipped ({option} says what white is)",
    )


def left_out_note(count: int) -> tuple[str, ...]:
    """Say how many pixels of a file were left out, if any.

    Examples
    --------
    >>> left_out_note(0), left_out_note(1)
    ((), ('1 pixel is masked or NaN: left as it is',))
    """
    if count == 0:
        return ()
    if count == 1:
        return ("1 pixel is masked or NaN: left as it is",)
    return (f"{count} pixels are masked or NaN: left as they are",)
