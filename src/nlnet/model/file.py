"""The file format of a model: strict to read, and the same bytes for the same model.

A model is one safetensors file. It has four float32 tensors, stacked over the S stages:

=================  ==========================================================
``filters``        (S, P-1, P)
``group_weights``  (S, K)
``coefficients``   (S, C, P-1, M), or the first M // 2 of them if they are odd
``step_sizes``     (S,)
=================  ==========================================================

Its metadata has the single key ``nlnet``, a JSON object with the fields of `Header`, the format's
version, and since version 2

======================  =====================================================================
``functions_of_sigma``  an object: the tensors that depend on sigma, and the sigmas, ascending,
                        at which they are given; they are linear in log sigma between them
``checksum``            SHA-256 of all the other fields and of the tensors
======================  =====================================================================

A model for one sigma has no functions of sigma. One for every sigma has all tensors as functions of
the same sigmas, with an axis more, the first. Since version 3 it may have a refinement, whose sizes
are in the config, and whose tensors have the names of `nlnet.network.refinement.tensor_shapes`
behind ``refinement.``. They, the filters and the coefficients, most of the file, are float16 then,
and the filters lack their last value, minus the sum of the others: a rounded filter has zero mean.

There is a single key because safetensors writes several in random order. Files of earlier versions
can be read, and what can be said in version 2 is written in it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from nlnet.arrays import FloatArray
from nlnet.errors import ModelError, trying
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, half_from_odd, odd_from_half
from nlnet.network.refinement import RefinementFunctions, tensor_shapes

FORMAT_VERSION = 3
_WITHOUT_REFINEMENT = 2
_VERSIONS = (1, 2, 3)
_METADATA_KEY = "nlnet"
_Tensors = dict[str, npt.NDArray[np.float32 | np.float16]]


@dataclasses.dataclass(frozen=True)
class Header:
    """What a model file says beside its weights."""

    name: str
    sigma: float
    config: NetworkConfig
    provenance: Mapping[str, Any]
    figures: Mapping[str, Any]
    sigmas: tuple[float, ...] = ()  # where functions of sigma are given


Stages = tuple[StageParameters, ...]
_REFINEMENT = "refinement."
_FUNCTIONS = ("coefficients", "filters", "group_weights", "step_sizes")


def encode(
    header: Header,
    sets: Sequence[Sequence[StageParameters]],
    refinement: RefinementFunctions | None = None,
) -> bytes:
    """Return the content of a model file; there is one set, or one for each of the sigmas."""
    tensors = _stack(sets, odd=header.config.odd)
    if not header.sigmas:
        tensors = {name: each[0] for name, each in tensors.items()}
    if refinement is not None:
        tensors |= {_REFINEMENT + name: each for name, each in refinement.tensors.items()}
        tensors["filters"] = tensors["filters"][..., :-1]
        for name in filter(_is_short, tensors):
            tensors[name] = _shortened(name, tensors[name])
    fields: dict[str, Any] = {
        "version": _WITHOUT_REFINEMENT if refinement is None else FORMAT_VERSION,
        "name": header.name,
        "sigma": header.sigma,
        "config": header.config.to_mapping(),
        "provenance": dict(header.provenance),
        "figures": dict(header.figures),
        "functions_of_sigma": {name: list(header.sigmas) for name in _FUNCTIONS if header.sigmas},
    }
    try:
        fields["checksum"] = checksum(fields, tensors)
        text = _canonical(fields)
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"Name, sigma, provenance and figures must be plain finite values: {error}."
        ) from error
    return safetensors.numpy.save(tensors, metadata={_METADATA_KEY: text})


def checksum(fields: Mapping[str, Any], tensors: _Tensors) -> str:
    """Return the checksum of a file with these metadata fields, except the field ``checksum``."""
    told = {name: value for name, value in fields.items() if name != "checksum"}
    digest = hashlib.sha256(_canonical(told).encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        tensor = tensors[name]
        digest.update(tensor.astype(tensor.dtype.newbyteorder("<"), copy=False).tobytes())
    return digest.hexdigest()


def _canonical(fields: Mapping[str, Any]) -> str:
    """Return the one text of these fields."""
    return json.dumps(fields, allow_nan=False, sort_keys=True)


def decode(
    path: str | os.PathLike[str],
) -> tuple[Header, tuple[Stages, ...], RefinementFunctions | None]:
    """Read a model file; whatever is not exactly as `encode` writes it is an error.

    Returns its header, one set of values or one for each of its sigmas, and the refinement.

    Raises
    ------
    FileError
        If the file cannot be opened.
    ModelError
        If it is not an intact model file of a known version.
    """
    _check_readable(path)
    try:
        with safetensors.safe_open(os.fspath(path), framework="numpy") as file:
            fields = _parse_metadata(file.metadata() or {})
            header = _parse_header(fields)
            tensors = _read_tensors(file, header)
    except safetensors.SafetensorError as error:
        raise ModelError(f"It is not a safetensors file, or a damaged one ({error}).") from error
    if "checksum" in fields and fields["checksum"] != checksum(fields, tensors):
        raise ModelError("Its content does not fit its checksum: the file was damaged or changed.")
    refinement = _take_refinement(tensors, header.config)
    if not header.sigmas:
        tensors = {name: each[np.newaxis] for name, each in tensors.items()}
    return header, _unstack(tensors, header.config), refinement


def _check_readable(path: str | os.PathLike[str]) -> None:
    """Tell a file that cannot be opened from one that cannot be understood."""
    with trying(f"open the model {os.fspath(path)!r}"), open(path, "rb") as stream:
        empty = not stream.read(1)
    if empty:
        raise ModelError("It is an empty file.")


def _parse_metadata(metadata: Mapping[str, str]) -> dict[str, Any]:
    """Return the metadata fields of a known version, the right ones and of the right types."""
    _check_keys("metadata", metadata, [_METADATA_KEY])
    try:
        fields = json.loads(metadata[_METADATA_KEY], parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"Its metadata is not JSON ({error}).") from error
    if not isinstance(fields, dict):
        raise ModelError("Its metadata is not a JSON object.")
    # The version first: another version may well have other fields.
    version = fields.get("version")
    if type(version) is not int or version not in _VERSIONS:
        raise ModelError(
            f"Its format version is {version!r}, but this nlnet reads "
            f"{', '.join(map(str, _VERSIONS[:-1]))} and {_VERSIONS[-1]}."
        )
    types = {"name": str, "sigma": float, "config": dict, "provenance": dict, "figures": dict}
    if version > 1:
        types |= {"functions_of_sigma": dict, "checksum": str}
    _check_keys("metadata field", fields, ["version", *types])
    for name, wanted in types.items():
        if type(fields[name]) is not wanted:
            raise ModelError(f"Its {name} has the unusable value {fields[name]!r}.")
    return fields


def _parse_header(fields: Mapping[str, Any]) -> Header:
    functions = fields.get("functions_of_sigma", {})
    sigmas: tuple[float, ...] = ()
    if functions:
        _check_keys("function of sigma", functions, _FUNCTIONS)
        first = functions[_FUNCTIONS[0]]
        if any(given != first for given in functions.values()) or not _are_sigmas(first):
            raise ModelError(f"Its functions of sigma are given at unusable sigmas: {first!r}.")
        sigmas = tuple(first)
    # Settings that are newer than the file have their defaults.
    config = NetworkConfig.from_mapping(fields["config"])
    if (fields["version"] == FORMAT_VERSION) != (config.refinement is not None):
        has = "no" if config.refinement is None else "a"
        raise ModelError(
            f"Its version is {fields['version']} and it has {has} refinement, but version "
            f"{FORMAT_VERSION} is for networks with one."
        )
    if config.refinement is not None and not sigmas:
        raise ModelError("It has a refinement, but is not for every sigma.")
    return Header(
        name=fields["name"],
        sigma=fields["sigma"],
        config=config,
        provenance=fields["provenance"],
        figures=fields["figures"],
        sigmas=sigmas,
    )


def _are_sigmas(values: object) -> bool:
    return isinstance(values, list) and len(values) > 1 and all(type(v) is float for v in values)


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON value")


def _check_keys(what: str, found: Iterable[str], wanted: Iterable[str]) -> None:
    missing = sorted(set(wanted) - set(found))
    unknown = sorted(set(found) - set(wanted))
    if missing:
        raise ModelError(f"It lacks the {what} {', '.join(map(repr, missing))}.")
    if unknown:
        raise ModelError(f"It has the unknown {what} {', '.join(map(repr, unknown))}.")


def _stack(sets: Sequence[Sequence[StageParameters]], *, odd: bool) -> _Tensors:
    """Return all values as tensors, whose first two axes are sets and stages."""

    def stacked(name: str) -> npt.NDArray[np.float32]:
        return np.array([[getattr(stage, name) for stage in stages] for stages in sets], np.float32)

    coefficients = stacked("coefficients")
    return {
        "filters": stacked("filters"),
        "group_weights": stacked("group_weights"),
        "coefficients": half_from_odd(coefficients) if odd else coefficients,
        "step_sizes": stacked("step_size"),
    }


def _tensor_shapes(header: Header) -> dict[str, tuple[int, ...]]:
    config = header.config
    stages, filters = config.stages, config.filter_count
    sets = (len(header.sigmas),) if header.sigmas else ()
    following, pixels = {}, config.patch_size**2
    if config.refinement is not None:
        pixels -= 1
        shapes = tensor_shapes(config.refinement, config.channels)
        following = {_REFINEMENT + name: shape for name, shape in shapes.items()}
    return {
        **following,
        "filters": (*sets, stages, filters, pixels),
        "group_weights": (*sets, stages, config.group_size),
        "coefficients": (*sets, stages, config.channels, filters, config.free_coefficients),
        "step_sizes": (*sets, stages),
    }


def _read_tensors(file: Any, header: Header) -> _Tensors:
    shapes = _tensor_shapes(header)
    _check_keys("tensor", file.keys(), shapes)
    for name, shape in shapes.items():
        stored = file.get_slice(name)
        wanted = "F16" if header.config.refinement and _is_short(name) else "F32"
        if stored.get_dtype() != wanted:
            raise ModelError(f"Its tensor {name!r} is {stored.get_dtype()}, but must be {wanted}.")
        if tuple(stored.get_shape()) != shape:
            raise ModelError(
                f"Its tensor {name!r} has shape {tuple(stored.get_shape())}, but must be {shape}."
            )
    return {name: file.get_tensor(name) for name in shapes}


def _is_short(name: str) -> bool:
    """Tell whether a tensor is float16 in a file with a refinement."""
    return name in ("coefficients", "filters") or name.startswith(_REFINEMENT)


def _shortened(name: str, tensor: npt.NDArray[Any]) -> npt.NDArray[np.float16]:
    with np.errstate(over="ignore"):
        short = tensor.astype(np.float16)
    if not np.isfinite(short).all():
        most = np.finfo(np.float16).max
        raise ModelError(f"Its {name} has values beyond {most:g}, which a file cannot hold.")
    return short


def _take_refinement(tensors: _Tensors, config: NetworkConfig) -> RefinementFunctions | None:
    """Return the refinement, if there is one, and leave the tensors of the stages."""
    if config.refinement is None:
        return None
    names = [name for name in tensors if name.startswith(_REFINEMENT)]
    own = {name.removeprefix(_REFINEMENT): tensors.pop(name).astype(np.float32) for name in names}
    return RefinementFunctions(config.refinement, config.channels, own)


def _unstack(tensors: _Tensors, config: NetworkConfig) -> tuple[Stages, ...]:
    """Return the sets of values that `_stack` has stacked."""
    filters: FloatArray = tensors["filters"].astype(np.float32, copy=False)
    coefficients: FloatArray = tensors["coefficients"].astype(np.float32, copy=False)
    if config.refinement is not None:
        filters = np.concatenate([filters, -filters.sum(axis=-1, keepdims=True)], axis=-1)
    if config.odd:
        coefficients = odd_from_half(coefficients, config.rbf_count)
    weights, step_sizes = tensors["group_weights"], tensors["step_sizes"].tolist()
    arrays = zip(filters, weights, coefficients, step_sizes, strict=True)
    return tuple(
        tuple(StageParameters(*stage) for stage in zip(*each, strict=True)) for each in arrays
    )
