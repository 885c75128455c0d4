"""What there is to say about a file that was denoised."""

import dataclasses
from collections.abc import Sequence

from nlnet.denoising.page import PageFindings
from nlnet.denoising.plan import is_sure
from nlnet.images import ImageFile
from nlnet.noise.camera import Camera
from nlnet.noise.record import Noise, NoNoise


@dataclasses.dataclass(frozen=True)
class Findings:
    """What there is to say about a file that was denoised.

    Parameters
    ----------
    sigmas : tuple of float
        Standard deviation of every page's noise on average, if white is 255; 0 where none was
        removed.
    estimated : bool
        Whether that was estimated.
    notes : tuple of str
        What was converted or left out.
    noise : tuple of str
        What the noise of every page was found to be, in words.
    """

    sigmas: tuple[float, ...]
    estimated: bool
    notes: tuple[str, ...]
    noise: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What was done to a file.

    Parameters
    ----------
    before, after : ImageFile
        The first page. Of a raw file, `before` is None unless it was asked for.
    findings : Findings
        What there is to say about it.
    """

    before: ImageFile | None
    after: ImageFile
    findings: Findings


def notes_of(found: Sequence[PageFindings], option: str = "--data-range") -> tuple[str, ...]:
    """Say what was lost, left out or doubtful in the pages of a file."""
    if not found:
        return ()
    unclipped = sum(page.plan.unclipped for page in found)
    notes = unclipped_note(unclipped, len(found), found[0].plan.white, option)
    plan = min((page.plan for page in found), key=lambda plan: plan.noise.certainty)
    doubtful = plan.noise.scaled(255 / plan.white)
    notes += left_out_note(sum(page.left_out for page in found)) + doubt_note(doubtful)
    hot = sum(page.hot for page in found)
    return (*notes, f"hot or dead pixels that were filled: {hot}") if hot else notes


def doubt_note(noise: Noise) -> tuple[str, ...]:
    """Say that it is not sure whether there is noise, if so, and what to do.

    Examples
    --------
    >>> for note in doubt_note(Noise.white(3.0)) + doubt_note(NoNoise(2.0, certainty=0.6)):
    ...     print(note)
    there may be noise of about 2 after all (40%): --noise camera, or --sigma, removes it
    """
    if is_sure(noise) or not isinstance(noise, (Camera, NoNoise)):
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
