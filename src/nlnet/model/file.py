"""The file format of a model: strict to read, and the same bytes for the same model.

A model is one safetensors file. It has four float32 tensors, stacked over the S stages:

=================  ==========================================================
``filters``        (S, P-1, P)
``group_weights``  (S, K)
``coefficients``   (S, C, P-1, M), or the first M // 2 of them if they are odd
``step_sizes``     (S,)
=================  ==========================================================

Its metadata has the single key ``nlnet``, a JSON object with the format's version, the model's
name, sigma, config, provenance and figures, and since version 2

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
from nlnet.model.family import Family
from nlnet.model.model import Model, Trained
from nlnet.network.config import NetworkConfig
from nlnet.network.parameters import StageParameters, half_from_odd, odd_from_half
from nlnet.network.refinement import REFERENCE_SIGMA, Refinement, tensor_shapes

FORMAT_VERSION = 3
_WITHOUT_REFINEMENT = 2
_VERSIONS = (1, 2, 3)
_METADATA_KEY = "nlnet"
_Tensors = dict[str, npt.NDArray[np.float32 | np.float16]]
_REFINEMENT = "refinement."
_FUNCTIONS = ("coefficients", "filters", "group_weights", "step_sizes")


def encode(model: Trained) -> bytes:
    """Return the content of a model file; see `nlnet.model.model.Trained.save` for errors."""
    config, sigmas, refinement = model.config, model.sigmas, model.refinement
    if refinement is not None and not sigmas:
        raise ModelError("It has a refinement for one sigma; save the family that it is of.")
    tensors = _stack(model.sets, odd=config.odd)
    if not sigmas:
        tensors = {name: each[0] for name, each in tensors.items()}
    if refinement is not None:
        tensors |= {_REFINEMENT + name: each for name, each in refinement.tensors.items()}
        tensors["filters"] = tensors["filters"][..., :-1]
        for name in filter(_is_short, tensors):
            tensors[name] = _shortened(name, tensors[name])
    fields: dict[str, Any] = {
        "version": _WITHOUT_REFINEMENT if refinement is None else FORMAT_VERSION,
        "name": model.name,
        "sigma": REFERENCE_SIGMA if sigmas else float(model.sigma),
        "config": config.to_mapping(),
        "provenance": dict(model.provenance),
        "figures": dict(model.figures),
        "functions_of_sigma": {name: list(sigmas) for name in _FUNCTIONS if sigmas},
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


def load_file(path: str | os.PathLike[str]) -> Model | Family:
    """Read a model file; whatever is not exactly as `encode` writes it is an error.

    Raises
    ------
    FileError
        If the file cannot be opened.
    ModelError
        If it is not an intact model file of a known version.
    """
    try:
        return _decode(path)
    except ModelError as error:
        raise ModelError(f"{os.fspath(path)!r} is not a usable model: {error}") from error


def _decode(path: str | os.PathLike[str]) -> Model | Family:
    # A file that cannot be opened is told from one that cannot be understood.
    with trying(f"open the model {os.fspath(path)!r}"), open(path, "rb") as stream:
        if not stream.read(1):
            raise ModelError("It is an empty file.")
    try:
        with safetensors.safe_open(os.fspath(path), framework="numpy") as file:
            fields = _parse_metadata(file.metadata() or {})
            config, sigmas = _parse_config(fields)
            tensors = _read_tensors(file, config, sigmas)
    except safetensors.SafetensorError as error:
        raise ModelError(f"It is not a safetensors file, or a damaged one ({error}).") from error
    if "checksum" in fields and fields["checksum"] != checksum(fields, tensors):
        raise ModelError("Its content does not fit its checksum: the file was damaged or changed.")
    facts = (fields["name"], fields["provenance"], fields["figures"])
    if not sigmas:
        one = {name: tensor[np.newaxis] for name, tensor in tensors.items()}
        return Model(config, _unstack(one, config)[0], fields["sigma"], *facts)
    if fields["sigma"] != REFERENCE_SIGMA:
        raise ModelError(f"Its sigma is {fields['sigma']}, but must be {REFERENCE_SIGMA}.")
    refinement = None
    if config.refinement is not None:
        names = tensor_shapes(config.refinement, config.channels)
        own = {name: tensors[_REFINEMENT + name].astype(np.float32) for name in names}
        refinement = Refinement(config.refinement, config.channels, own)
    return Family(config, sigmas, _unstack(tensors, config), *facts, refinement)


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


def _parse_config(fields: Mapping[str, Any]) -> tuple[NetworkConfig, tuple[float, ...]]:
    """Return the config, and the sigmas at which values are given, if they are functions of it."""
    functions = fields.get("functions_of_sigma", {})
    sigmas: Any = ()
    if functions:
        _check_keys("function of sigma", functions, _FUNCTIONS)
        sigmas = functions[_FUNCTIONS[0]]
        typed = isinstance(sigmas, list) and all(type(each) is float for each in sigmas)
        if not typed or len(sigmas) < 2 or any(given != sigmas for given in functions.values()):
            raise ModelError(f"Its functions of sigma are given at unusable sigmas: {sigmas!r}.")
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
    return config, tuple(sigmas)


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
    tensors: _Tensors = {}
    for name in _FUNCTIONS:
        field = "step_size" if name == "step_sizes" else name
        values = [[getattr(stage, field) for stage in stages] for stages in sets]
        tensors[name] = np.array(values, np.float32)
    if odd:
        tensors["coefficients"] = half_from_odd(tensors["coefficients"])
    return tensors


def _tensor_shapes(config: NetworkConfig, sigmas: Sequence[float]) -> dict[str, tuple[int, ...]]:
    stages, filters = config.stages, config.filter_count
    sets = (len(sigmas),) if sigmas else ()
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


def _read_tensors(file: Any, config: NetworkConfig, sigmas: Sequence[float]) -> _Tensors:
    shapes = _tensor_shapes(config, sigmas)
    _check_keys("tensor", file.keys(), shapes)
    for name, shape in shapes.items():
        stored = file.get_slice(name)
        wanted = "F16" if config.refinement and _is_short(name) else "F32"
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


def _unstack(tensors: _Tensors, config: NetworkConfig) -> tuple[tuple[StageParameters, ...], ...]:
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
