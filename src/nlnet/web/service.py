"""What the server does for a request, from the upload to the answer."""

import dataclasses
import functools
import importlib.util
from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

import nlnet
from nlnet.images.formats import FORMATS
from nlnet.model.family import Family
from nlnet.model.figures import psnr_by_sigma, relative_time
from nlnet.progress import Progress
from nlnet.web import output, schema, work
from nlnet.web.forms import KEY_PATTERN, MULTIPART, NOISES, DenoiseForm, PreviewForm
from nlnet.web.queue import JobQueue
from nlnet.web.schema import Catalog


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

    def __init__(self, catalog: Catalog, limits: "Limits") -> None:
        self.catalog = catalog
        self.limits = limits
        self.queue = JobQueue(limits.waiting, limits.job_seconds)
        self.held_bytes = 0

    async def denoise(self, request: Request, form: DenoiseForm) -> Response:
        """Depth, transparency and metadata of the file are kept, and its format unless asked."""
        settings = form.settings(self.limits.pixels)
        denoise = functools.partial(
            work.denoise_upload, form=form, settings=settings, catalog=self.catalog
        )
        return await self._answer(request, form, denoise)

    async def preview(self, request: Request, form: Annotated[PreviewForm, MULTIPART]) -> Response:
        """Return its first page as an 8-bit PNG: browsers cannot show every format."""
        show = functools.partial(
            work.show_file, data_range=form.data_range, max_pixels=self.limits.pixels
        )
        return await self._answer(request, form, show)

    async def _answer(
        self,
        request: Request,
        form: PreviewForm,
        make: Callable[[bytes, str, Progress], work.Answer],
    ) -> Response:
        """Let the queue make the answer from content and name of the form's file."""
        data = await form.file.read()
        await form.file.close()  # the form does not keep it
        name = form.file.filename or "image"
        gone = functools.partial(_gone, request)
        made = await self.queue.run(lambda go_on: make(data, name, go_on), gone, form.job)
        headers = {**made.headers, "Content-Disposition": output.disposition(made.filename)}
        return Response(made.data, media_type=made.media_type, headers=headers)

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
        limits = schema.LimitsInfo(formats=_readable(), **dataclasses.asdict(self.limits))
        return schema.Offers(models=models, noises=list(NOISES), limits=limits)

    async def health(self) -> schema.Health:
        """Tell whether the server takes work."""
        self.queue.check_open()
        return schema.Health(version=nlnet.__version__, jobs=self.queue.unfinished)


def _readable() -> list[str]:
    """Name the formats that can be read here."""
    found = importlib.util.find_spec
    modules = ((known.name, getattr(known.codec, "module", "numpy")) for known in FORMATS)
    read = [name for name, module in modules if found(module.partition(".")[0])]
    return [*read, "raw files of cameras"] if found("rawpy") else read


async def _gone(request: Request) -> None:
    """Wait until the client is not there any more; its upload has been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bounds of one server.

    Parameters
    ----------
    upload_bytes : int
        Size of one upload, its form fields included.
    pixels : int
        Width times height of an image, read from its header before it is decoded.
    waiting : int
        Jobs that may wait while one runs; further ones are refused.
    job_seconds : float
        Time one job may run, from decoding to encoding.
    upload_seconds : float
        Time a client may take to send its upload.
    """

    upload_bytes: int = 160 * 2**20
    pixels: int = 50_000_000
    waiting: int = 16
    job_seconds: float = 300.0
    upload_seconds: float = 120.0

    @property
    def held_bytes(self) -> int:
        """Bytes of uploads in memory at once, over all requests."""
        return 3 * self.upload_bytes
