"""The shape of a network: all sizes that the paper leaves open, in one place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from nlnet.arrays import Box
from nlnet.errors import InputError, ModelError
from nlnet.network.refinement import RefinementConfig
from nlnet.strict import build

BOX: Box = (0.0, 255.0)
"""The intensity box of an 8-bit image, the scale the network works on."""


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """Sizes and switches of a network; the defaults are the paper's grayscale 5x5 model.

    Parameters
    ----------
    channels : int
        1 for grayscale, 3 for RGB.
    stages : int
        Number of unrolled proximal-gradient stages, S in the paper.
    patch_size : int
        Side p of the square patches, odd; a patch has P = p * p pixels.
    group_size : int
        Number K of patches in a group, the reference patch included.
    window : int
        Side of the square search window around each pixel, odd and at most 255.
    rbf_count : int
        Number M of Gaussians in each mixture.
    rbf_range : float
        The Gaussians' centres cover [-rbf_range, rbf_range] evenly; the argument is clipped to it.
    rbf_std : float or None
        Standard deviation of the Gaussians; None means the spacing of their centres.
    odd : bool
        Whether the mixtures are odd functions, with half the free coefficients.
    project_every_stage : bool
        Clip to the intensity box after every stage (the paper) or only at the end.
    refinement : RefinementConfig or None
        Sizes of the refinement that runs after the stages, if there is one.

    Examples
    --------
    >>> NetworkConfig(patch_size=7).filter_count
    48
    """

    channels: int = 1
    stages: int = 5
    patch_size: int = 5
    group_size: int = 8
    window: int = 31
    rbf_count: int = 63
    rbf_range: float = 100.0
    rbf_std: float | None = None
    odd: bool = True
    project_every_stage: bool = True
    refinement: RefinementConfig | None = None

    def __post_init__(self) -> None:
        rules = {
            "channels": (self.channels in (1, 3), "1 or 3"),
            "stages": (1 <= self.stages <= 1000, "from 1 to 1000"),
            "patch_size": (
                3 <= self.patch_size <= 63 and self.patch_size % 2 == 1,
                "odd, from 3 to 63",
            ),
            "window": (3 <= self.window <= 255 and self.window % 2 == 1, "odd, from 3 to 255"),
            "group_size": (1 <= self.group_size <= self.window**2, "from 1 to window squared"),
            "rbf_count": (2 <= self.rbf_count <= 4096, "from 2 to 4096"),
            "rbf_range": (0 < self.rbf_range < math.inf, "above 0 and finite"),
            "rbf_std": (
                self.rbf_std is None or self.rbf_range / 6000 <= self.rbf_std < math.inf,
                "at least a 6000th of rbf_range, and finite",
            ),
        }
        for name, (holds, wanted) in rules.items():
            if not holds:
                raise ModelError(f"{name} is {getattr(self, name)}, but must be {wanted}.")

    @property
    def patch_radius(self) -> int:
        """Pixels from a patch's centre to its edge."""
        return self.patch_size // 2

    @property
    def filter_count(self) -> int:
        """Filters of a stage: one fewer than a patch has pixels, because there is no DC filter."""
        return self.patch_size**2 - 1

    @property
    def gaussian_std(self) -> float:
        """Standard deviation of the Gaussians on the 0-255 scale."""
        return self.rbf_std or 2 * self.rbf_range / (self.rbf_count - 1)

    @property
    def free_coefficients(self) -> int:
        """Coefficients of one mixture that are learned: M, or M // 2 for an odd one."""
        return self.rbf_count // 2 if self.odd else self.rbf_count

    @property
    def parameter_count(self) -> int:
        """Number of learned values in all stages."""
        mixing = self.filter_count**2
        mixtures = self.channels * self.filter_count * self.free_coefficients
        return self.stages * (mixing + mixtures + self.group_size + 1)

    @property
    def margin(self) -> int:
        """Distance in pixels up to which matching and a stage read and write around a pixel."""
        return self.window // 2 + self.patch_radius

    @property
    def reach(self) -> int:
        """Radius of the receptive field: how far away a pixel can influence another one."""
        refinement = 0 if self.refinement is None else self.refinement.reach
        return self.stages * 2 * self.margin + refinement

    @property
    def unit(self) -> int:
        """Pixels along a side that belong together: parts of an image must begin between them."""
        return 1 if self.refinement is None else self.refinement.unit

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> NetworkConfig:
        """Build a config from plain values; an unknown key or a wrong type is an error."""
        try:
            return build(cls, values)
        except InputError as error:
            raise ModelError(str(error)) from error

    def to_mapping(self) -> dict[str, Any]:
        """Return the config as plain values, the inverse of :meth:`from_mapping`."""
        values = dataclasses.asdict(self)
        if self.refinement is None:
            del values["refinement"]  # a network without one has no such setting
        return values
