"""Building blocks of the vector operations: LLVM instructions on LANES elements at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

LANES = 8
"""Lanes of most operations: a row of a 5x5 or 7x7 patch, or the features of some filters."""

_FEATURES = (
    config.CPU_FEATURES  # type: ignore[attr-defined]
    or llvmlite.binding.get_host_cpu_features().flatten()
)
_HAS_AVX512 = "+avx512f" in _FEATURES.split(",")

WIDE_LANES = 16 if _HAS_AVX512 else 8
"""Lanes of float32 that the CPU has, for operations that can use them all."""

REGISTERS = 32 if _HAS_AVX512 else 16
"""How many vectors the CPU can hold."""

FLOAT = ir.FloatType()
DOUBLE = ir.DoubleType()
LONG = ir.IntType(64)
INT = ir.IntType(32)
BIT = ir.IntType(1)


def operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make an operation that kernels can call; its first argument, the typing, is numba's."""
    return cast(Callable[..., Any], intrinsic(function))


def pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Address of the element at `index` of a flat array."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index])


def element_of(kind: Any) -> Any:
    """LLVM's name for an array's float type."""
    return FLOAT if kind.dtype == types.float32 else DOUBLE


def row_lanes(patch_size: int) -> int:
    """Return the lanes of a vector for one row of a patch: a power of two, at least LANES."""
    return max(LANES, 1 << (patch_size - 1).bit_length())


def row_vector(element: Any, patch_size: int) -> Any:
    """Return the type of the vector for one row of a patch."""
    return ir.VectorType(element, row_lanes(patch_size))


def _align(element: Any) -> int:
    """Vectors start at any element, so they are aligned like one."""
    return 4 if element == FLOAT else 8


def load(builder: Any, pointer: Any, vector: Any) -> Any:
    """Read a vector from an address that need not be aligned."""
    address = builder.bitcast(pointer, vector.as_pointer())
    return builder.load(address, align=_align(vector.element))


def store(builder: Any, value: Any, pointer: Any) -> None:
    """Write a vector to an address that need not be aligned."""
    address = builder.bitcast(pointer, value.type.as_pointer())
    builder.store(value, address, align=_align(value.type.element))


def splat(builder: Any, scalar: Any, lanes: int) -> Any:
    """Return a vector with the scalar in all lanes."""
    vector = ir.VectorType(scalar.type, lanes)
    lane = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, LONG(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(lane, ir.Constant(vector, ir.Undefined), zeros)


def reduce_lanes(builder: Any, vector: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Combine all lanes of a vector into one: it is halved until one lane is left."""
    while vector.type.count > 1:
        half = vector.type.count // 2
        lower, upper = (
            builder.shuffle_vector(
                vector,
                ir.Constant(vector.type, ir.Undefined),
                ir.Constant(ir.VectorType(INT, half), list(lanes)),
            )
            for lanes in (range(half), range(half, 2 * half))
        )
        vector = combine(lower, upper)
    return builder.extract_element(vector, LONG(0))


def multiply_add(builder: Any, left: Any, right: Any, addend: Any) -> Any:
    """Return ``left * right + addend``, rounded once where the CPU can."""
    product = builder.fmul(left, right, flags=("contract",))
    return builder.fadd(addend, product, flags=("contract",))


def smaller(builder: Any, left: Any, right: Any) -> Any:
    """Return the smaller value of each lane."""
    return builder.select(builder.fcmp_ordered("<", left, right), left, right)


def larger(builder: Any, left: Any, right: Any) -> Any:
    """Return the larger value of each lane."""
    return builder.select(builder.fcmp_ordered("<", left, right), right, left)


def variable(builder: Any, kind: Any) -> Any:
    """Return a place for a value that changes in a loop; LLVM keeps it in a register."""
    return cgutils.alloca_once(builder, kind)  # type: ignore[no-untyped-call]
