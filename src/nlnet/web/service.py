"""What the server does for a request, from the upload to the answer."""

from __future__ import annotations

import functools
import gc
from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

import nlnet
from nlnet.images.formats import FORMATS
from nlnet.model.family import Family
from nlnet.model.figures import psnr_by_sigma, relative_time
from nlnet.progress import Progress
from nlnet.web import output, schema, work
from nlnet.web.catalog import Catalog
from nlnet.web.forms import KEY_PATTERN, MULTIPART, NOISES, DenoiseForm, PreviewForm
from nlnet.web.limits import Limits
from nlnet.web.queue import JobQueue

_WARM_UP_SIDE = 48


class Service:
    """One server's models, limits and queue.

    Parameters
    ----------
    catalog : Catalog
        The models on offer.
    limits : Limits
        What a request may use up.

    Attributes
    ----------
    held_bytes : int
        Bytes of the uploads that are in memory.
    """

    def __init__(self, catalog: Catalog, limits: Limits) -> None:
        self.catalog = catalog
        self.limits = limits
        self.queue = JobQueue(limits.waiting, limits.job_seconds)
        self.held_bytes = 0
        self.warm = False

    async def denoise(self, request: Request, form: DenoiseForm) -> Response:
        """Depth, transparency and metadata of the file are kept, and its format unless asked."""
        settings = form.settings(self.limits.pixels)
        name, data = await _take_file(form)
        result = await self.queue.run(
            lambda go_on: work.denoise_upload(data, name, form, settings, self.catalog, go_on),
            functools.partial(_gone, request),
            form.job,
        )
        if form.preview == "no":
            return _file(result.data, result.media_type, result.filename, result.headers)
        parts = {"file": (result.filename, result.media_type, result.data)}
        if result.preview is not None:
            parts["preview"] = ("preview.png", "image/png", result.preview.data)
        media_type, body = output.join_form(parts)
        return _file(body, media_type, "denoised.form", result.headers)

    async def preview(self, request: Request, form: Annotated[PreviewForm, MULTIPART]) -> Response:
        """Return its first page as an 8-bit PNG: browsers cannot show every format."""
        name, data = await _take_file(form)
        shown = await self.queue.run(
            lambda go_on: work.show_file(data, name, form.data_range, self.limits.pixels),
            functools.partial(_gone, request),
            form.job,
        )
        headers = {"Nlnet-Stretched": "yes" if shown.stretched else "no"}
        return _file(shown.data, "image/png", "preview.png", headers)

    async def standing(self, job: Annotated[str, Path(pattern=KEY_PATTERN)]) -> schema.JobInfo:
        """Find it by the name that the client gave as `job` when it sent the image."""
        found = self.queue.standing(job)
        if found is None:
            return schema.JobInfo(state="absent", ahead=0, share=0.0)
        state: Literal["waiting", "running"] = "waiting" if found.ahead else "running"
        return schema.JobInfo(state=state, ahead=found.ahead, share=round(found.share, 3))

    async def models(self) -> schema.Offers:
        """List the models on offer, and the server's limits."""
        models = [
            schema.ModelInfo(
                name=name,
                family=self.catalog.family(name),
                channels=model.config.channels,
                sigma=None if isinstance(model, Family) else model.sigma,
                patch_size=model.config.patch_size,
                stages=model.config.stages,
                parameters=model.parameter_count,
                bsd68_psnr={f"{s:g}": psnr for s, psnr in psnr_by_sigma(model).items()},
                relative_time=relative_time(name),
            )
            for name, model in self.catalog.models.items()
        ]
        limits = schema.LimitsInfo(
            formats=[known.name for known in FORMATS],
            upload_bytes=self.limits.upload_bytes,
            pixels=self.limits.pixels,
            job_seconds=self.limits.job_seconds,
        )
        return schema.Offers(models=models, noises=list(NOISES), limits=limits)

    async def health(self) -> schema.Health:
        """Tell whether the server takes work."""
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
        # What exists now stays, and need not be looked at again by the garbage collector.
        gc.freeze()
        self.warm = True


async def _take_file(form: PreviewForm) -> tuple[str, bytes]:
    """Return name and content of the file; the form does not keep it."""
    data = await form.file.read()
    await form.file.close()
    return form.file.filename or "image", data


def _file(data: bytes, media_type: str, filename: str, headers: Mapping[str, str]) -> Response:
    named = {**headers, "Content-Disposition": output.disposition(filename)}
    return Response(data, media_type=media_type, headers=named)


async def _gone(request: Request) -> None:
    """Wait until the client is not there any more; its upload has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
