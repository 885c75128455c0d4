"""What the server does for a request, from the upload to the answer."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping

import numpy as np
from starlette.requests import Request

import nlnet
from nlnet.errors import InputError
from nlnet.images.formats import FORMATS
from nlnet.web import schema, work
from nlnet.web.catalog import AUTOMATIC, Catalog
from nlnet.web.jobs import JobQueue, Progress
from nlnet.web.limits import Limits
from nlnet.web.memory import Memory
from nlnet.web.responses import FileResponse
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

    async def denoise(self, request: Request) -> FileResponse:
        """Answer an upload with the denoised image."""
        with self.memory.claim() as claim:
            upload = await read_upload(request, ("sigma", "model"), self.limits, self.queue, claim)
            model = upload.fields.get("model", AUTOMATIC)
            self.catalog.check(model)
            job = functools.partial(
                work.denoise_file,
                upload.data,
                upload.filename,
                sigma=parse_sigma(upload.fields),
                model=model,
                catalog=self.catalog,
                max_pixels=self.limits.pixels,
            )
            del upload
            result = await self.queue.run(
                lambda go_on: job(progress=go_on), functools.partial(_gone, request)
            )
        headers = {
            "Nlnet-Sigma": f"{result.sigma:.2f}",
            "Nlnet-Model": result.model,
            "Nlnet-Seconds": f"{result.seconds:.3f}",
            "Nlnet-Image": result.description,
        }
        if result.estimate is not None:
            headers["Nlnet-Noise-Estimate"] = f"{result.estimate:.2f}"
        if result.notes:
            headers["Nlnet-Notes"] = "; ".join(result.notes)
        return self._file(result.data, result.media_type, result.filename, headers)

    async def preview(self, request: Request) -> FileResponse:
        """Answer an upload with the same image as an 8-bit PNG."""
        with self.memory.claim() as claim:
            upload = await read_upload(request, (), self.limits, self.queue, claim)
            job = functools.partial(
                work.to_png, upload.data, upload.filename, max_pixels=self.limits.pixels
            )
            del upload
            data = await self.queue.run(lambda go_on: job(), functools.partial(_gone, request))
        return self._file(data, "image/png", "preview.png", {})

    async def offers(self) -> schema.Offers:
        """List the models on offer, and the limits."""
        models = [
            schema.ModelInfo(
                name=offer.name,
                family=offer.family,
                channels=offer.model.config.channels,
                sigma=offer.model.sigma,
                patch_size=offer.model.config.patch_size,
                stages=offer.model.config.stages,
                parameters=offer.model.parameter_count,
                bsd68_psnr=offer.model.figures.get("bsd68_psnr"),
            )
            for offer in self.catalog.offers
        ]
        limits = schema.LimitsInfo(
            formats=[known.name for known in FORMATS],
            upload_bytes=self.limits.upload_bytes,
            pixels=self.limits.pixels,
            job_seconds=self.limits.job_seconds,
        )
        return schema.Offers(models=models, limits=limits)

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

        await self.queue.run(work_a_little, asyncio.Event().wait)

    def _file(
        self, data: bytes, media_type: str, filename: str, headers: Mapping[str, str]
    ) -> FileResponse:
        claim = self.memory.claim()
        claim.hold(len(data))
        return FileResponse(
            data,
            media_type,
            filename,
            headers,
            claim=claim,
            stall_seconds=self.limits.stall_seconds,
        )


def parse_sigma(fields: Mapping[str, str]) -> float | None:
    """Return the sigma of a form, None for ``auto``."""
    text = fields.get("sigma", AUTOMATIC)
    if text == AUTOMATIC:
        return None
    try:
        sigma = float(text)
    except ValueError:
        sigma = -1.0
    # Written so that NaN does not pass.
    if not 0 < sigma <= 255:
        raise InputError(
            f"sigma is {text[:40]!r}, but must be 'auto' or a number above 0 and at most 255."
        )
    return sigma


async def _gone(request: Request) -> None:
    """Wait until the client is not there any more; its upload has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
