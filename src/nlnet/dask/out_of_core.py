"""Denoising zarr and TIFF files block by block; neither input nor output is held in memory."""

import math
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from nlnet.arrays import Array
from nlnet.dask.chunks import LazyPages, block_sides
from nlnet.dask.denoising import RUN, denoise_pages
from nlnet.dask.pages import PagesRequest, from_known, plan_pages
from nlnet.dask.schedulers import Scheduler
from nlnet.dask.targets import Target, ZarrTarget, new_chunks, new_target
from nlnet.dask.unfinished import fingerprint
from nlnet.dask.volumes import Volume, open_volume
from nlnet.dask.work import Work, sent_model
from nlnet.denoising.pages import Sigma, find_axis
from nlnet.denoising.plan import Request
from nlnet.denoising.series_pages import window_sides
from nlnet.errors import InputError, about
from nlnet.files.findings import Findings, unclipped_note
from nlnet.files.pages import sigmas_of_pages
from nlnet.files.settings import Settings
from nlnet.files.volume_paths import is_tiff, is_zarr
from nlnet.inputs import DATA_RANGES
from nlnet.noise.camera import Camera
from nlnet.noise.record import SCALES
from nlnet.progress import Progress, ignore


def denoise_volume(
    source: Path, target: Path, scheduler: Scheduler, progress: Progress = ignore
) -> Findings:
    """Denoise the array in a zarr folder or TIFF file into another such file.

    From zarr to zarr, dtype, chunks, codecs, names and attributes stay as they are. What is there
    under the target's name is replaced when the result is complete.

    Parameters
    ----------
    source, target : Path
        Folders whose names end in ``.zarr``, or TIFF files.
    scheduler : Scheduler
        Who does the work, and the settings of it.
    progress : callable, optional
        Called with the share of the blocks that are written.

    Raises
    ------
    FileError, InputError, ModelError, NLNetError
        If a file, an argument or the cluster cannot be used; nothing is left of the target then.
    """
    if not is_zarr(target) and not is_tiff(target):
        raise InputError(f"The output {str(target)!r} must end in .zarr, .tif or .tiff.")
    volume = open_volume(source)
    settings, layout = scheduler.settings, volume.layout
    along = None
    if settings.along is not None:
        with about(repr(str(volume.path))):
            along = find_axis(settings.along, layout.pages, volume.axes)
    network = settings.network(layout.shape[0], sent_model(settings.model))
    work = Work.of(layout, network)
    blocks = _blocks(volume, target, work, settings, along)
    array = volume.as_dask(blocks)
    with new_target(target, volume, fingerprint(volume, settings, blocks)) as unfinished:
        plans = _find_plans(array, volume, scheduler, unfinished, along)
        every = plans.ravel().tolist()
        scales = SCALES if any(isinstance(plan.noise, Camera) for plan in every) else 1
        denoised = denoise_pages(LazyPages(array), from_known(plans, array), work, scales, along)
        scheduler.compute(_written(denoised, unfinished), progress)
    unclipped = sum(plan.unclipped for plan in every)
    return Findings(
        tuple(plan.sigma for plan in every),
        settings.estimates,
        _notes(volume, target) + unclipped_note(unclipped, len(every), every[0].white),
        tuple(plan.in_words() for plan in every),
    )


def _find_plans(
    array: da.Array, volume: Volume, scheduler: Scheduler, target: Target, along: int | None
) -> Array:
    """Return the plan of every page: that of an interrupted run, or a new one."""
    unfinished = target.unfinished if isinstance(target, ZarrTarget) else None
    known = None if unfinished is None else unfinished.plans()
    if known is not None:
        plans = np.empty(len(known), object)
        plans[:] = known
        return plans.reshape(volume.layout.pages)
    settings = scheduler.settings
    asked = PagesRequest(
        Request(settings.noise, settings.data_range),
        _sigmas(array, volume, scheduler),
        per_page=settings.per_page,
        noise_axis=volume.noise_axis if settings.noise_axis is None else settings.noise_axis,
        along=along,
    )
    found = _compute_whole(plan_pages(LazyPages(array), asked, volume.layout), scheduler)
    if unfinished is not None:
        unfinished.keep_plans(found.ravel().tolist())
    return found


def _sigmas(array: da.Array, volume: Volume, scheduler: Scheduler) -> Sigma:
    """Return sigma in the array's units, which settings have for a white of 255."""
    settings = scheduler.settings
    white = settings.data_range or DATA_RANGES[volume.dtype.newbyteorder("=")]
    if settings.sigma is None:
        return None
    pages = volume.layout.pages
    with about(repr(str(volume.path))):
        given = sigmas_of_pages(settings.sigma, math.prod(pages))
    sigmas = np.array(given, np.float64).reshape(pages)
    if white is not None:
        return np.asarray(sigmas * white / 255)
    # The range of each page's data, as `nlnet.denoise` takes it.
    axes = tuple(range(len(pages), array.ndim))
    values = array.astype(np.float64)
    spans = _compute_whole(values.max(axis=axes) - values.min(axis=axes), scheduler)
    return np.asarray(sigmas * np.where(spans == 0, 1.0, spans) / 255)


def _compute_whole(lazy: da.Array, scheduler: Scheduler) -> Array:
    whole = lazy.rechunk(-1) if lazy.ndim else lazy
    (found,) = scheduler.compute([whole.to_delayed().item()])
    return np.asarray(found)


def _blocks(
    volume: Volume, target: Path, work: Work, settings: Settings, along: int | None
) -> tuple[int, ...]:
    """Return the shape of the blocks: no two of them may share a chunk of the target."""
    layout = volume.layout
    if is_tiff(target):
        units = (1,) * layout.ndim
    else:
        units = volume.chunks if is_zarr(volume.path) else new_chunks(volume)
    rows, columns = layout.image_axes
    blocks = list(units)
    if layout.channel_axis is not None:
        blocks[layout.channel_axis] = layout.shape[0]
    if along is not None:
        blocks[along] *= -(-RUN // units[along])
        for axis in (rows, columns):
            blocks[axis] *= -(-max(window_sides(volume.shape[axis])[0]) // units[axis])
    else:
        blocks[rows], blocks[columns] = block_sides(
            (units[rows], units[columns]),
            (math.prod(units[: len(layout.pages)]), *layout.shape),
            work.config,
            threads=settings.threads,
            itemsize=volume.dtype.itemsize,
            max_memory=settings.max_memory,
            scales=PagesRequest(Request(settings.noise), settings.sigma).scales,
        )
    return tuple(map(min, blocks, volume.shape))


def _written(denoised: da.Array, target: Target) -> list[Any]:
    """Return tasks that write the blocks, one each; those that are written already are left out."""
    marks = da.map_blocks(
        _write_block,
        denoised,
        target=target,
        chunks=tuple((1,) * count for count in denoised.numblocks),
        dtype=np.bool_,
    )
    done = target.unfinished.blocks() if isinstance(target, ZarrTarget) else set()
    tasks = marks.to_delayed()
    return [tasks[block] for block in np.ndindex(tasks.shape) if block not in done]


def _write_block(
    block: Array, target: Target, block_info: dict[int, dict[str, Any]] | None = None
) -> Array:
    assert block_info is not None
    target.write(tuple(slice(*ends) for ends in block_info[0]["array-location"]), block)
    if isinstance(target, ZarrTarget):
        target.unfinished.mark(block_info[0]["chunk-location"])
    return np.ones((1,) * block.ndim, np.bool_)


def _notes(volume: Volume, target: Path) -> tuple[str, ...]:
    if is_zarr(volume.path) and is_zarr(target):
        others = volume.key and len(list((volume.path / volume.key).parent.iterdir())) > 2
        return (f"only its array {volume.key!r} is denoised and written",) if others else ()
    return ("only pixels and axes are kept, no other metadata",)
