"""What the server does for a request, from the upload to the answer."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Literal

import numpy as np
from starlette.requests import Request

import nlnet
from nlnet.images.formats import FORMATS
from nlnet.model.family import Family
from nlnet.model.figures import psnr_by_sigma, relative_time
from nlnet.progress import Progress
from nlnet.web import schema, work
from nlnet.web.catalog import Catalog
from nlnet.web.limits import Limits
from nlnet.web.memory import Memory
from nlnet.web.queue import JobQueue
from nlnet.web.responses import ResultResponse, join_form
from nlnet.web.settings import (
    FIELDS,
    NOISES,
    PREVIEW_FIELDS,
    parse_data_range,
    parse_key,
    parse_settings,
)
from nlnet.web.uploads import read_upload

_WARM_UP_SIDE = 48


class Service:
    """One server's models, limits, queue and memory.

    Parameters
    ----------
    catalog : Catalog
        The models on offer.
    limits : Limits
        What a request may use up.
    """

    def __init__(self, catalog: Catalog, limits: Limits) -> None:
        self.catalog = catalog
        self.limits = limits
        self.queue = JobQueue(limits.waiting, limits.job_seconds)
        self.memory = Memory(limits.held_bytes)
        self.warm = False

    async def denoise(self, request: Request) -> ResultResponse:
        """Answer an upload with the denoised image."""
        with self.memory.claim() as claim:
            upload = await read_upload(request, FIELDS, self.limits, self.queue, claim)
            settings = parse_settings(upload.fields, self.catalog)
            job = functools.partial(
                work.denoise_upload,
                upload.data,
                upload.filename,
                settings,
                catalog=self.catalog,
                max_pixels=self.limits.pixels,
            )
            del upload
            result = await self.queue.run(
                lambda go_on: job(progress=go_on), functools.partial(_gone, request), settings.job
            )
        if not settings.preview:
            return self._file(result.data, result.media_type, result.filename, _headers(result))
        parts = {"file": (result.filename, result.media_type, result.data)}
        if result.preview is not None:
            parts["preview"] = ("preview.png", "image/png", result.preview.data)
        media_type, form = join_form(parts)
        return self._file(form, media_type, "denoised.form", _headers(result))

    async def preview(self, request: Request) -> ResultResponse:
        """Answer an upload with the same image as an 8-bit PNG."""
        with self.memory.claim() as claim:
            upload = await read_upload(request, PREVIEW_FIELDS, self.limits, self.queue, claim)
            key = parse_key(upload.fields)
            job = functools.partial(
                work.show_file,
                upload.data,
                upload.filename,
                data_range=parse_data_range(upload.fields),
                max_pixels=self.limits.pixels,
            )
            del upload
            shown = await self.queue.run(
                lambda go_on: job(), functools.partial(_gone, request), key
            )
        headers = {"Nlnet-Stretched": "yes" if shown.stretched else "no"}
        return self._file(shown.data, "image/png", "preview.png", headers)

    async def standing(self, key: str) -> schema.JobInfo:
        """Say how far a job is."""
        found = self.queue.standing(parse_key({"job": key}) or "")
        if found is None:
            return schema.JobInfo(state="absent", ahead=0, share=0.0)
        state: Literal["waiting", "running"] = "waiting" if found.ahead else "running"
        return schema.JobInfo(state=state, ahead=found.ahead, share=round(found.share, 3))

    async def offers(self) -> schema.Offers:
        """List the models on offer, and the limits."""
        models = [
            schema.ModelInfo(
                name=offer.name,
                family=offer.family,
                channels=offer.model.config.channels,
                sigma=None if isinstance(offer.model, Family) else offer.model.sigma,
                patch_size=offer.model.config.patch_size,
                stages=offer.model.config.stages,
                parameters=offer.model.parameter_count,
                bsd68_psnr={f"{s:g}": psnr for s, psnr in psnr_by_sigma(offer.model).items()},
                relative_time=relative_time(offer.name),
            )
            for offer in self.catalog.offers
        ]
        limits = schema.LimitsInfo(
            formats=[known.name for known in FORMATS],
            upload_bytes=self.limits.upload_bytes,
            pixels=self.limits.pixels,
            job_seconds=self.limits.job_seconds,
        )
        return schema.Offers(models=models, noises=list(NOISES), limits=limits)

    async def health(self) -> schema.Health:
        """Say that the server is well; while it stops, it is not there for new work."""
        self.queue.check_open()
        return schema.Health(version=nlnet.__version__, jobs=self.queue.unfinished)

    async def warm_up(self) -> None:
        """Compile and load what the first request would have to wait for."""

        def work_a_little(go_on: Progress) -> None:
            for model in self.catalog.defaults():
                shape = (_WARM_UP_SIDE, _WARM_UP_SIDE, model.config.channels)
                nlnet.denoise(
                    np.zeros(shape, np.uint8), 25, model=model, channel_axis=-1, progress=go_on
                )

        await self.queue.run(work_a_little, self.queue.closing.wait)
        self.queue.settle()
        self.warm = True

    def _file(
        self, data: bytes, media_type: str, filename: str, headers: Mapping[str, str]
    ) -> ResultResponse:
        claim = self.memory.claim()
        claim.hold(len(data))
        return ResultResponse(
            data,
            media_type,
            filename,
            headers,
            claim=claim,
            stall_seconds=self.limits.stall_seconds,
        )


def _headers(result: work.Denoised) -> dict[str, str]:
    headers = {
        "Nlnet-Noise": result.noise,
        "Nlnet-Noise-Kind": result.kind,
        "Nlnet-Sigma": f"{result.sigma:.2f}",
        "Nlnet-Model": result.model,
        "Nlnet-Seconds": f"{result.seconds:.3f}",
        "Nlnet-Image": result.description,
        "Nlnet-Channels": str(result.channels),
        "Nlnet-Pages": str(result.pages),
    }
    if result.estimate is not None:
        headers["Nlnet-Noise-Estimate"] = f"{result.estimate:.2f}"
    if result.notes:
        headers["Nlnet-Notes"] = "; ".join(result.notes)
    return headers


async def _gone(request: Request) -> None:
    """Wait until the client is not there any more; its upload has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
