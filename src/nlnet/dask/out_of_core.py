"""A zarr or TIFF file in, one out, block by block: neither is ever in memory as a whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np

from nlnet.arrays import Array
from nlnet.dask.chunks import block_sides
from nlnet.dask.denoising import denoise_pages, find_network, leave_clean_pages
from nlnet.dask.estimation import estimate_sigma
from nlnet.dask.schedulers import Scheduler
from nlnet.dask.targets import Target, ZarrTarget, new_chunks, new_target
from nlnet.dask.unfinished import fingerprint
from nlnet.dask.volumes import Volume, open_volume
from nlnet.errors import InputError
from nlnet.file_denoising import Findings, Settings, blend
from nlnet.inputs import DATA_RANGES
from nlnet.volume_paths import is_tiff, is_zarr


def denoise_volume(
    source: Path,
    target: Path,
    scheduler: Scheduler,
    progress: Callable[[float], object] | None = None,
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
    settings = scheduler.settings
    white = settings.data_range or DATA_RANGES[volume.dtype.newbyteorder("=")]
    blocks = _blocks(volume, target, scheduler)
    array = volume.as_dask(blocks)
    with new_target(target, volume, fingerprint(volume, settings, blocks)) as unfinished:
        found = _find_sigmas(array, volume, scheduler, white, unfinished)
        denoised = _denoised(array, volume, settings, white, found)
        scheduler.compute(_written(denoised, unfinished), progress)
    return Findings(
        tuple(float(sigma) * 255 / white for sigma in found.ravel()),
        settings.sigma is None,
        _notes(volume, target),
    )


def _denoised(
    array: da.Array, volume: Volume, settings: Settings, white: float, found: Array
) -> da.Array:
    """Return the array, denoised as the settings say; pages without noise are left as they are."""
    sigmas = found if settings.sigma is not None else leave_clean_pages(found, white)
    denoised = denoise_pages(
        array,
        da.from_array(sigmas, chunks=array.chunks[: volume.stacked]),
        model=settings.model,
        white=white,
        channel_axis=volume.channel_axis,
        # Floating values above white are highlights, not mistakes.
        clip=volume.dtype.kind == "u",
        threads=settings.threads or 1,
        max_memory=settings.max_memory,
        device=settings.device,
    )
    if settings.strength != 1:
        denoised = da.map_blocks(blend, array, denoised, settings.strength, dtype=volume.dtype)
    return denoised


def _find_sigmas(
    array: da.Array, volume: Volume, scheduler: Scheduler, white: float, target: Target
) -> Array:
    """Return every page's sigma: as it is given, as an interrupted run found it, or estimated."""
    if scheduler.settings.sigma is not None:
        return np.full(volume.shape[: volume.stacked], scheduler.settings.sigma * white / 255)
    unfinished = target.unfinished if isinstance(target, ZarrTarget) else None
    known = None if unfinished is None else unfinished.sigmas()
    if known is not None:
        return np.asarray(known)
    lazy = estimate_sigma(array, channel_axis=volume.channel_axis, stacked=volume.stacked)
    pages = lazy.rechunk(-1) if volume.stacked else lazy
    (found,) = scheduler.compute([pages.to_delayed().item()])
    if unfinished is not None:
        unfinished.keep_sigmas(np.asarray(found))
    return np.asarray(found)


def _blocks(volume: Volume, target: Path, scheduler: Scheduler) -> tuple[int, ...]:
    """Return the shape of the blocks: no two of them may share a chunk of the target."""
    if is_tiff(target):
        units = (1,) * volume.ndim
    else:
        units = volume.chunks if is_zarr(volume.path) else new_chunks(volume)
    rows, columns = volume.image_axes
    settings = scheduler.settings
    blocks = list(units)
    blocks[rows], blocks[columns] = block_sides(
        (units[rows], units[columns]),
        (
            int(np.prod(units[: volume.stacked])),
            volume.channels,
            volume.shape[rows],
            volume.shape[columns],
        ),
        find_network(settings.model, volume.channels)[0].config,
        threads=settings.threads or 1,
        itemsize=volume.dtype.itemsize,
        max_memory=settings.max_memory,
    )
    if volume.channel_axis is not None:
        blocks[volume.channel_axis] = volume.channels
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
