"""The network as denoising uses it: chosen by the noise, and run by the engine on an image."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from nlnet.arrays import Array, Box, WriteRows
from nlnet.denoising.devices import CPU, check_device, denoise_on_device
from nlnet.engine.library import load
from nlnet.engine.memory import usable
from nlnet.engine.network import EngineNetwork
from nlnet.engine.removal import Elsewhere, Part, Removal
from nlnet.errors import InputError
from nlnet.inputs import Shares, Strength, check_count, check_strength
from nlnet.model.loading import ModelLike, check_quality, choose_model
from nlnet.model.model import Model
from nlnet.network.block import prepare, prepare_blank
from nlnet.network.config import NetworkConfig
from nlnet.network.matching import check_size
from nlnet.noise.record import Noise, White
from nlnet.noise.stabilisation import engine_noise
from nlnet.progress import Report

LOW_TILES = (32, 16, 8)
"""Heights of tiles for less memory than those of the engine's own choice take."""

OTHER_MEMORY = 5_000_000
"""Upper bound in bytes for the tables of a network's stages and the overhead of threads."""


@dataclasses.dataclass(frozen=True)
class Network:
    """Which network runs, and on what.

    Parameters
    ----------
    choose : callable
        Returns the model for white noise of a standard deviation, if the image fills 0 to 255.
    threads, max_memory, device
        As for `nlnet.denoise`.
    span, black : float
        What the image fills, and where that begins: a refinement, other than the stages, expects
        values from 0 to 255.
    box : (low, high) or None
        Values that the result is kept in.
    strength : (luma, chroma)
        How much of the noise is removed, from 0 to 2 times.
    """

    choose: Callable[[float], Model]
    threads: int | None = None
    max_memory: int | None = None
    device: str = CPU
    span: float = 255.0
    black: float = 0.0
    box: Box | None = None
    strength: Shares = (1.0, 1.0)

    @classmethod
    def of(
        cls,
        model: ModelLike,
        channels: int,
        quality: str | None,
        threads: int | None,
        max_memory: int | None,
        device: str,
        strength: Strength = 1.0,
    ) -> "Network":
        """Return what runs the model that a user asks for; parameters as for `nlnet.denoise`."""
        shares = check_strength(strength, channels)
        check_machine(threads, max_memory, device)
        check_quality(quality, model)
        choose = functools.partial(choose_model, model, channels, quality=quality)
        return cls(choose, threads, max_memory, device, strength=shares)

    @property
    def is_refined(self) -> bool:
        """Whether a refinement follows the stages: its results have other errors."""
        return self.choose(25.0).refinement is not None

    def unblended(self) -> "Network":
        """Return the network whose result is to be blended: it removes all noise, at least."""
        luma, chroma = self.strength
        return dataclasses.replace(self, strength=(max(luma, 1.0), max(chroma, 1.0)))

    def model_for(self, sigma: float) -> Model:
        """Return the model for white noise of the image."""
        return self.choose(sigma * 255 / self.span)

    def beside(self, used: int, what: str, shape: tuple[int, ...]) -> "Network":
        """Return the network with the memory that is left beside bytes that something else uses."""
        if self.max_memory is None:
            return self
        if self.max_memory <= used:
            raise InputError(
                f"max_memory is {self.max_memory} bytes, but {what} of an image of "
                f"{shape[2]}x{shape[1]} pixels alone take {used}."
            )
        return dataclasses.replace(self, max_memory=self.max_memory - used)

    def remove(
        self,
        planes: Array,
        noise: Noise,
        target: Array | WriteRows,
        report: Report,
        part: Part | None = None,
    ) -> tuple[str, ...]:
        """Remove the noise of (C, H, W) planes, and return the names of the models that ran.

        Parameters
        ----------
        planes : (C, H, W) array
            The image, of any dtype.
        noise : Noise
            Its noise, in the same units.
        target : array or callable
            Takes the result: an array like the planes, or ``write(first, rows)``, to which rows of
            floats are handed that it must copy to keep.
        report : callable
            Called with the share of the work done; an exception it raises stops the work.
        part : Part, optional
            For camera noise of a part of an image, at one scale: which part it is.
        """
        if not callable(target) and usable(target) is not target:
            restored = np.empty(target.shape, usable(target[:, :0]).dtype)
            ran = self.remove(planes, noise, restored, report, part)
            target[:] = restored
            return ran
        if not planes.size:
            check_size(planes.shape[1], planes.shape[2], self.choose(25.0).config)  # raises
        removal = Removal(
            usable(planes),
            engine_noise(noise),
            strength=self.strength,
            span=self.span,
            black=self.black,
            box=self.box,
            part=part,
        )
        models = [self.choose(sigma) if sigma > 0 else None for sigma in removal.sigmas()]
        for scale, model in enumerate(models):
            if model is not None:
                check_size(planes.shape[1] >> scale, planes.shape[2] >> scale, model.config)
        networks = [None if model is None else _prepared(model) for model in models]
        tile_rows = 0
        if self.max_memory is not None and self.device == CPU:
            configs = [model.config for model in models if model is not None]
            needed = functools.partial(_memory_of, removal, networks, configs, self.threads)
            tile_rows = _choose_tile_rows(needed, planes.shape, self.max_memory)
        removal.run(
            networks,
            target,
            threads=self.threads,
            tile_rows=tile_rows,
            elsewhere=self._elsewhere(models),
            progress=report,
        )
        # The smallest scale comes first.
        names = (model.name for model in reversed(models) if model is not None)
        return tuple(dict.fromkeys(names))

    def _elsewhere(self, models: list[Model | None]) -> Elsewhere | None:
        """Return what runs the models where the engine does not."""
        if self.device == CPU:
            return None

        def run(scale: int, planes: Array, box: Box | None) -> Array:
            model = models[scale]
            assert model is not None
            model = model if scale == 0 else model.without_refinement()
            return denoise_on_device(planes, model, self.device, box)

        return run


def _prepared(model: Model) -> EngineNetwork:
    stages = [stage.astype(np.float32) for stage in model.stages]
    return prepare(model.config, stages, model.refinement, model.sigma)


def check_machine(threads: int | None, max_memory: int | None, device: str) -> None:
    """Raise InputError unless the work can be done with that."""
    check_count("threads", threads)
    check_count("max_memory", max_memory)
    check_device(device)


def least_memory(shape: tuple[int, int, int], config: NetworkConfig, threads: int | None) -> int:
    """Return the smallest `max_memory` with which a network denoises (C, H, W) planes in float32.

    That is for noise that is not correlated.
    """
    check_size(*shape[1:], config)
    nothing = np.broadcast_to(np.float32(0), shape)  # only its shape matters
    removal = Removal(nothing, engine_noise(White(1.0)))
    return _memory_of(removal, [prepare_blank(config)], [config], threads, LOW_TILES[-1])


def _choose_tile_rows(needed: Callable[[int], int], shape: tuple[int, ...], max_memory: int) -> int:
    """Return the largest height of tiles with which an image takes at most `max_memory` bytes."""
    heights = (load().tile_rows(), *LOW_TILES)
    for tile_rows in heights:
        if needed(tile_rows) <= max_memory:
            return int(tile_rows)
    raise InputError(
        f"max_memory is {max_memory} bytes, but an image of {shape[2]}x{shape[1]} pixels takes at "
        f"least {needed(heights[-1])}; raise it (--max-memory of the command), or leave it out."
    )


def _memory_of(
    removal: Removal,
    networks: Sequence[EngineNetwork | None],
    configs: Iterable[NetworkConfig],
    threads: int | None,
    tile_rows: int,
) -> int:
    """Return the bytes of a removal, and of its networks besides: tables, and twice the weights.

    A refinement's weights are in the block, and as the engine has them.
    """
    tables = 0
    for config in set(configs):
        weights = config.refinement and config.refinement.parameter_count(config.channels)
        tables += OTHER_MEMORY + 8 * (weights or 0)
    return removal.memory(networks, threads, tile_rows) + tables
