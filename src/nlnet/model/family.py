"""One model for every sigma: a network whose learned values are functions of the noise."""

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nlnet.engine.network import family_at
from nlnet.errors import ModelError
from nlnet.inputs import check_sigma
from nlnet.model.model import Model, Trained
from nlnet.network.block import pack_family, unpack_stages
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters
from nlnet.network.refinement import REFERENCE_SIGMA, Refinement

_LEAST_COSINE = 0.1
"""Cosine of the angle between a filter and itself at the next sigma, at least."""

SIGMAS_WANTED = "two or more, ascending, above 0 and at most 255"
"""What the sigmas must be at which values are given."""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Family(Trained):
    """A network for noise of any strength.

    All learned values are given at some sigmas, and linear in log sigma between them, where the
    filters are brought back to unit norm. The network sees the image scaled so that its noise is
    `REFERENCE_SIGMA`.

    Parameters
    ----------
    config : NetworkConfig
        The shape of the network.
    sigmas : tuple of float
        Where the values are given, ascending, on the 0-255 scale.
    sets : tuple of tuples of StageParameters
        The values there: for each sigma, one per stage.
    name, provenance, figures
        As of a `Model`.
    refinement : Refinement, optional
        Runs after the stages; the config has its sizes.
    """

    config: NetworkConfig
    sigmas: tuple[float, ...]
    sets: tuple[tuple[StageParameters, ...], ...]
    name: str
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    figures: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    refinement: Refinement | None = None

    def __post_init__(self) -> None:
        if not are_sigmas(self.sigmas):
            given = ", ".join(f"{sigma:g}" for sigma in self.sigmas)
            raise ModelError(f"Its sigmas are {given or 'none'}, but must be {SIGMAS_WANTED}.")
        if len(self.sets) != len(self.sigmas):
            raise ModelError(
                f"There are values for {len(self.sets)} sigmas, but {len(self.sigmas)} sigmas."
            )
        super().__post_init__()
        for below, above in itertools.pairwise(self.sets):
            for low, high in zip(below, above, strict=True):
                # Otherwise the mean of two filters may be nothing, or anything.
                if (np.einsum("ij,ij->i", low.filters, high.filters) < _LEAST_COSINE).any():
                    raise ModelError("A filter turns too far from one sigma to the next.")

    def at(self, sigma: float) -> Model:
        """Return the model for noise of this standard deviation, on the 0-255 scale.

        Its own sigma is `REFERENCE_SIGMA`: that is what the image's noise has to be scaled to.
        Beyond the sigmas of the family, it is the model for the nearest of them.

        Raises
        ------
        InputError
            If sigma is not positive and finite.
        """
        place_of(sigma, self.sigmas)  # checks it
        return self._model_at(min(max(sigma, self.sigmas[0]), self.sigmas[-1]))

    @functools.lru_cache(maxsize=32)  # noqa: B019 - families live as long as the process
    def _model_at(self, sigma: float) -> Model:
        stages = unpack_stages(family_at(self.block(), sigma), self.config)
        facts = (REFERENCE_SIGMA, self.name, self.provenance, self.figures)
        refinement = None if self.refinement is None else self.refinement.at(sigma)
        return Model(self.config, stages, *facts, refinement)

    def block(self) -> bytes:
        """Return all of its values as a parameter block, for the engine."""
        return pack_family(self.config, self.sigmas, self.sets, self.refinement)


def are_sigmas(sigmas: Sequence[float]) -> bool:
    """Tell whether values can be given at these sigmas: whether they are `SIGMAS_WANTED`."""
    ascending = all(low < high for low, high in itertools.pairwise(sigmas))
    return len(sigmas) > 1 and ascending and sigmas[0] > 0 and sigmas[-1] <= 255


def place_of(sigma: float, sigmas: Sequence[float]) -> float:
    """Return where a sigma is among others, counted from 0, linearly in log sigma.

    Examples
    --------
    >>> round(place_of(20.0, (10.0, 40.0)), 6), place_of(500.0, (10.0, 40.0))
    (0.5, 1.0)
    """
    check_sigma(sigma, np.inf)
    return float(np.interp(np.log(sigma), np.log(sigmas), np.arange(len(sigmas))))
