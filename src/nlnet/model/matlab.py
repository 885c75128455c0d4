"""Import of the models the paper's author published, as MATLAB v5 files.

They are networks of the package's own kind and run as they are: free mixtures of 51 Gaussians,
projection at the end only. What a file says that the network cannot express is an error.

The one size a file does not hold is the search window, an argument of the author's scripts:
theirs, the paper's and our default are the same. Color networks work on the 0-1 scale there and
on 0-255 here: with s = 255, s * psi(x / s) has the grid, the clip and the coefficients times s.
"""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nlnet.errors import ModelError, trying
from nlnet.model.model import Model
from nlnet.network.color import OPPONENT
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, normalize_rows

_Float64 = npt.NDArray[np.float64]

_CHANNELS = {"nlcf": 1, "cnlcf": 3}
"""Channels of the stages, by the types of their layers."""


def import_author_model(path: str | os.PathLike[str]) -> Model:
    """Read one of the author's published ``.mat`` files.

    Parameters
    ----------
    path : str or path
        A MATLAB v5 file with the struct ``net``: gray or color, any patch size and depth.

    Returns
    -------
    Model
        On the 0-255 scale, named after the file. Mind the licence in its provenance.

    Raises
    ------
    FileError
        If the file cannot be opened.
    ModelError
        If it is not such a file, holds what the network cannot express, or SciPy is missing.

    Examples
    --------
    >>> model = import_author_model("nlnet_5x5_std=25_joint.mat")  # doctest: +SKIP
    >>> model.save("author-gray-5x5-s25.safetensors")  # doctest: +SKIP
    """
    try:
        return _build_model(_Struct(_load_net(path)), Path(path).stem)
    except ModelError as error:
        raise ModelError(f"Cannot import {os.fspath(path)!r}: {error}") from error


def _load_net(path: str | os.PathLike[str]) -> Any:
    try:
        import scipy.io
    except ImportError as error:
        raise ModelError("reading .mat files needs SciPy: pip install 'nlnet[import]'.") from error
    with trying(f"open {os.fspath(path)!r}"):
        data = io.BytesIO(Path(path).read_bytes())
    try:
        content = scipy.io.loadmat(data, simplify_cells=True, variable_names=["net"])
    except Exception as error:  # SciPy raises whatever its parser stumbles over.
        raise ModelError("it is not a MATLAB v5 file, or a damaged one.") from error
    if "net" not in content:
        raise ModelError("it has no variable 'net'.")
    return content["net"]


class _Struct(dict[str, Any]):
    """A struct of a MATLAB file; a field that is missing, or of another kind, is an error."""

    def __init__(self, value: Any) -> None:
        super().__init__(value if isinstance(value, dict) else {})

    def __missing__(self, name: str) -> Any:
        raise ModelError(f"it has no field {name!r} where one is expected.")

    def cells(self, name: str) -> list[Any]:
        value = self[name]
        if isinstance(value, np.ndarray) and value.dtype == object:
            value = list(value)
        return value if isinstance(value, list) else [value]  # a single cell is what it holds

    def text(self, name: str) -> str:
        return str(self[name])

    def number(self, name: str) -> float:
        return float(_numbers(self[name], name, ()))

    def numbers(self, name: str) -> _Float64:
        return _numbers(self[name], name)


def _numbers(value: Any, name: str, shape: tuple[int, ...] | None = None) -> _Float64:
    """Return numbers, in this shape if one is given: MATLAB may have dropped axes of length 1."""
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"its {name} is not numeric.") from error
    if shape is None:
        return numbers
    squeezed = tuple(length for length in shape if length != 1)
    if tuple(length for length in numbers.shape if length != 1) != squeezed:
        raise ModelError(f"its {name} has shape {numbers.shape}, but must have {shape}.")
    return numbers.reshape(shape)


def _build_model(net: _Struct, name: str) -> Model:
    layers = [_Struct(layer) for layer in net.cells("layers")]
    stages = [layer for layer in layers if layer.text("type") in _CHANNELS]
    if not stages:
        raise ModelError("it has no nlcf or cnlcf layer.")
    project_every_stage = _check_layout([layer.text("type") for layer in layers], len(stages))
    scale = _intensity_scale(layers)
    configs = {_stage_config(stage, scale, len(stages), project_every_stage) for stage in stages}
    if len(configs) > 1:
        raise ModelError("its stages differ in their sizes or grids.")
    config = configs.pop()
    return Model(
        config=config,
        stages=tuple(_stage_parameters(stage, config, scale) for stage in stages),
        sigma=_sigma(net, scale),
        name=name,
        provenance={
            "author": "S. Lefkimmiatis",
            "source": "published with 'Non-local Color Image Denoising with CNNs', CVPR 2017",
            "licence": "non-commercial use only",
        },
    )


def _check_layout(types: Sequence[str], stage_count: int) -> bool:
    """Check the order of the layers and return whether every stage projects."""
    core = [kind for kind in types if kind != "imloss"]  # the loss is for training only
    gray, color = ["nlcf"] * stage_count, ["cnlcf"] * stage_count
    if core in ([*gray, "clip"], ["rgb2LumChrom", *color, "LumChrom2rgb", "clip"]):
        return False
    if core == ["nlcf", "clip"] * stage_count:
        return True
    raise ModelError(f"its layers are {', '.join(types)}, which is no order this network knows.")


def _intensity_scale(layers: Sequence[_Struct]) -> float:
    """Check the layers around the stages; return how many gray levels are 1 inside the network."""
    scale = 1.0
    for layer in layers:
        kind = layer.text("type")
        if kind == "clip" and (layer.number("lb"), layer.number("ub")) != (0, 255):
            raise ModelError("its clip layer does not clip to [0, 255].")
        if kind in ("rgb2LumChrom", "LumChrom2rgb"):
            scale = layer.number("scale")
            # Transposed: the author's scripts multiply rows of pixels from the left.
            matrix = layer.numbers("Op")
            if matrix.shape != (3, 3) or not np.allclose(matrix, OPPONENT.T, atol=1e-6):
                raise ModelError("its color transform is not the opponent transform of CBM3D.")
            if scale != 255:
                raise ModelError(f"its color transform scales by {scale:g}, but must by 255.")
    return scale


def _stage_config(
    stage: _Struct, scale: float, stage_count: int, project_every_stage: bool
) -> NetworkConfig:
    means = np.atleast_1d(stage.numbers("rbf_means")) * scale
    std = stage.number("rbf_precision") * scale
    limit = float(means[-1])
    grid = np.linspace(-limit, limit, means.size)
    bounds = scale * np.array([stage.number("lb"), stage.number("ub")])
    if means.size < 2 or not np.allclose(means, grid, rtol=0, atol=1e-5 * abs(limit)):
        raise ModelError("its rbf_means are not evenly spaced around 0.")
    if not np.allclose(bounds, [-limit, limit], rtol=1e-5):
        raise ModelError("its lb and ub are not the ends of rbf_means.")
    spacing = 2 * limit / (means.size - 1)
    return NetworkConfig(
        channels=_CHANNELS[stage.text("type")],
        stages=stage_count,
        patch_size=_checked_patch_size(stage),
        group_size=np.size(_weights(stage)[2]),
        rbf_count=means.size,
        rbf_range=limit,
        rbf_std=None if np.isclose(std, spacing, rtol=1e-5) else std,
        odd=False,
        project_every_stage=project_every_stage,
    )


def _checked_patch_size(stage: _Struct) -> int:
    """Check the options for which the network supports only one value; return the patch size."""
    shape = stage.numbers("filters").shape
    if len(shape) != 3 or shape[0] != shape[1] or shape[2] != shape[0] ** 2 - 1:
        raise ModelError(f"its basis has shape {shape}, but must be (p, p, p * p - 1).")
    members = np.size(_weights(stage)[2])
    options = {"stride": 1, "padSize": shape[0] // 2, "Nbrs": members, "patchWeighting": 0}
    for name, wanted in options.items():
        if name in stage and not np.all(stage.numbers(name) == wanted):
            raise ModelError(f"its {name} is {stage.numbers(name)}, but must be {wanted}.")
    if "shrink_type" in stage and stage.text("shrink_type") != "identity":
        raise ModelError(f"its shrink_type is {stage.text('shrink_type')}, but must be identity.")
    return int(shape[0])


def _stage_parameters(stage: _Struct, config: NetworkConfig, scale: float) -> StageParameters:
    mix, own_adjoint_mix, group_weights, own_adjoint_weights, mixtures, step_size = _weights(stage)
    if np.size(own_adjoint_mix) or np.size(own_adjoint_weights):
        raise ModelError("a stage has an adjoint with weights of its own.")
    count = config.filter_count
    # (p, p, P-1) -> (P-1, P): row index first, as the patches here.
    atoms = np.moveaxis(stage.numbers("filters"), 2, 0).reshape(count, config.patch_size**2)
    mixing = _numbers(mix, "weights{1}", (count, count))
    free = _numbers(mixtures, "weights{5}", (count, config.rbf_count, config.channels))
    return StageParameters(
        filters=normalize_rows(mixing) @ atoms,
        group_weights=_numbers(group_weights, "weights{3}", (config.group_size,)),
        coefficients=np.ascontiguousarray(np.moveaxis(free, 2, 0)) * scale,
        step_size=float(_numbers(step_size, "weights{6}", ())),
    ).astype(np.float32)


def _sigma(net: _Struct, scale: float) -> float:
    options = _Struct(_Struct(net["meta"])["trainOpts"])
    values = np.unique(options.numbers("noise_std"))
    if values.size != 1:
        raise ModelError(f"its noise_std is {values.tolist()}, but must be one number.")
    sigma = float(values[0])
    # Nobody trains for less than one gray level: such a sigma is on the network's 0-1 scale.
    return sigma * scale if sigma < 1 else sigma


def _weights(stage: _Struct) -> list[Any]:
    weights = stage.cells("weights")
    if len(weights) != 6:
        raise ModelError(f"a stage has {len(weights)} weights, but must have 6.")
    return weights
