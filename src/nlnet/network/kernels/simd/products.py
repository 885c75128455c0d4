"""Vector operations of the patch transform: products of some rows with F^T or with F.

A BLAS packs its operands and is made for large ones; here one of them is a few kilobytes, and the
other comes from the first-level cache and goes back there.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from nlnet.network.kernels.simd.vectors import (
    FLOAT,
    LONG,
    REGISTERS,
    WIDE_LANES,
    element_of,
    load,
    multiply_add,
    operation,
    splat,
    store,
    variable,
)


@operation
def transform(
    typing: Any, patches: Any, transposed: Any, features: Any, rows: Any, taps: Any
) -> Any:
    """Multiply `rows` patches by F^T, given as (P, F), into as many rows of features.

    All arrays are flat; `taps` is a tuple as long as a patch is wide. Whole vectors are read and
    written: matrix and result need room for one at their ends.
    """
    size = taps.count**2
    return _product(patches, transposed, features, rows, taps, inner=size, width=size - 1)


@operation
def transform_back(
    typing: Any, features: Any, filters: Any, patches: Any, rows: Any, taps: Any
) -> Any:
    """Multiply `rows` rows of features by F, (F, P), into as many patches: the adjoint."""
    size = taps.count**2
    return _product(features, filters, patches, rows, taps, inner=size - 1, width=size)


def _product(
    left: Any, right: Any, out: Any, rows: Any, taps: Any, *, inner: int, width: int
) -> tuple[Any, Any]:
    """Return type and code of ``out[i] = sum_j left[i, j] * right[j]``."""
    element = element_of(left)
    lanes = WIDE_LANES if element == FLOAT else WIDE_LANES // 2
    vectors = -(-width // lanes)
    # The sums of as many rows as fit stay in registers, and leave two for operands. A tile is 64
    # pixels wide: a power of two of them leaves no rest.
    block = 1
    while 2 * block * vectors <= REGISTERS - 2:
        block *= 2

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        data = [
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(signature.args[:3], values[:3], strict=True)
        ]
        count = values[3]
        blocks = builder.sdiv(count, LONG(block))
        with cgutils.for_range(builder, blocks, intp=LONG) as loop:
            _multiply(builder, data, builder.mul(loop.index, LONG(block)), block)
        done = builder.mul(blocks, LONG(block))
        with cgutils.for_range(builder, builder.sub(count, done), intp=LONG) as loop:
            _multiply(builder, data, builder.add(done, loop.index), 1)
        return context.get_dummy_value()

    def _multiply(builder: Any, data: list[Any], first: Any, count: int) -> None:
        factors, matrix, results = data
        vector = ir.VectorType(element, lanes)
        sums = [[variable(builder, vector) for _ in range(vectors)] for _ in range(count)]
        for slot in (slot for row in sums for slot in row):
            builder.store(ir.Constant(vector, [0.0] * lanes), slot)
        start = builder.gep(factors, [builder.mul(first, LONG(inner))])
        with cgutils.for_range(builder, LONG(inner), intp=LONG) as loop:
            line = builder.gep(matrix, [builder.mul(loop.index, LONG(width))])
            terms = [
                load(builder, builder.gep(line, [LONG(part * lanes)]), vector)
                for part in range(vectors)
            ]
            for number, row in enumerate(sums):
                place = builder.gep(start, [builder.add(loop.index, LONG(number * inner))])
                factor = splat(builder, builder.load(place), lanes)
                for slot, term in zip(row, terms, strict=True):
                    builder.store(multiply_add(builder, factor, term, builder.load(slot)), slot)
        # Where a row is no whole number of vectors, the next row overwrites what is too much.
        for number, row in enumerate(sums):
            at = builder.mul(builder.add(first, LONG(number)), LONG(width))
            line = builder.gep(results, [at])
            for part, slot in enumerate(row):
                store(builder, builder.load(slot), builder.gep(line, [LONG(part * lanes)]))

    return types.void(left, right, out, types.intp, taps), code
