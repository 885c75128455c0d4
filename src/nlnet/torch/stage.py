"""The learned values of a stage, in the form in which they are free to move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, dct_basis, half_from_odd
from nlnet.torch.plain import StageTensors


class NLNetStage(nn.Module):
    """The learned values of one stage, in the form in which they are free to move.

    The filters are mixtures of DCT atoms with normalised rows, so they keep zero mean and unit
    norm; of odd mixtures only half of the coefficients exist. There may be several sets of values,
    one for each of some sigmas.

    Parameters
    ----------
    sets : sequence of StageParameters
        Values to start from, one or more.
    config : NetworkConfig
        The network's shape.
    """

    def __init__(self, sets: Sequence[StageParameters], config: NetworkConfig) -> None:
        super().__init__()
        self._config = config
        dct = dct_basis(config.patch_size).astype(sets[0].filters.dtype)
        coefficients = np.stack([each.coefficients for each in sets])
        if config.odd:
            coefficients = half_from_odd(coefficients)
        self.mix = nn.Parameter(torch.tensor(np.stack([each.filters @ dct.T for each in sets])))
        self.group_weights = nn.Parameter(torch.tensor(np.stack([s.group_weights for s in sets])))
        self.coefficients = nn.Parameter(torch.tensor(coefficients))
        self.step_size = nn.Parameter(
            torch.tensor([each.step_size for each in sets], dtype=self.mix.dtype)
        )
        self.dct: Tensor
        self.register_buffer("dct", torch.tensor(dct), persistent=False)

    def tensors(self, place: float = 0.0) -> StageTensors:
        """Return the filters, weights, all coefficients and the step size, differentiably.

        `place` counts the sets from 0; between two of them, the values are interpolated, and the
        filters brought back to unit norm.
        """
        filters = _normalized(_between(_normalized(self.mix), place)) @ self.dct
        coefficients = _between(self.coefficients, place)
        if self._config.odd:
            middle = coefficients.new_zeros(*coefficients.shape[:-1], self._config.rbf_count % 2)
            coefficients = torch.cat([coefficients, middle, -coefficients.flip(-1)], dim=-1)
        weights, step_size = (_between(t, place) for t in (self.group_weights, self.step_size))
        return StageTensors(filters, weights, coefficients, step_size)

    def export(self, place: float = 0.0) -> StageParameters:
        """Return the present values as plain float32 arrays."""
        with torch.no_grad():
            return self.tensors(place).export().astype(np.float32)


def _normalized(mix: Tensor) -> Tensor:
    return nn.functional.normalize(mix, dim=-1)


def _between(sets: Tensor, place: float) -> Tensor:
    """Return the set at this place, or a mean of the two around it."""
    lower = min(int(place), len(sets) - 1)
    share = place - lower
    return sets[lower] if share == 0 else torch.lerp(sets[lower], sets[lower + 1], share)
