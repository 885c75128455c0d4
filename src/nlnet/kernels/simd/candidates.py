"""Vector operations of matching: patch distances, and the best candidates of each pixel."""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from nlnet.kernels.simd.vectors import (
    DOUBLE,
    FLOAT,
    LANES,
    LONG,
    larger,
    load,
    multiply_add,
    operation,
    pointer,
    smaller,
    splat,
    store,
    variable,
)

_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST = float(np.finfo(np.float32).tiny)


@operation
def patch_distances(
    typing: Any,
    image: Any,
    here: Any,
    there: Any,
    stride: Any,
    out: Any,
    out_at: Any,
    out_stride: Any,
    rows: Any,
    taps: Any,
) -> Any:
    """Squared distances of LANES neighbouring patches to others, for `rows` rows downwards.

    `here` and `there` are the indices of the first two patches' corners in the flat image, `taps`
    a tuple as long as a patch is wide. A distance is the sum of its row sums from the top down;
    a row sum is shared by all the patches it belongs to, and stays in a register as long.
    """
    size = taps.count

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pixels = context.make_array(signature.args[0])(context, builder, values[0]).data
        line, other = values[1], values[2]
        vector = ir.VectorType(FLOAT, LANES)

        def row_sum(row: Any) -> Any:
            down = builder.mul(row, values[3])
            total = ir.Constant(vector, [0.0] * LANES)
            for tap in range(size):
                step = builder.add(down, down.type(tap))
                difference = builder.fsub(
                    load(builder, builder.gep(pixels, [builder.add(line, step)]), vector),
                    load(builder, builder.gep(pixels, [builder.add(other, step)]), vector),
                )
                total = multiply_add(builder, difference, difference, total)
            return total

        # The row sums of the p - 1 rows above, oldest first.
        above = [variable(builder, vector) for _ in range(size - 1)]
        for row, slot in enumerate(above):
            builder.store(row_sum(ir.Constant(LONG, row)), slot)
        with cgutils.for_range(builder, values[7], intp=LONG) as loop:
            sums = [builder.load(slot) for slot in above]
            sums.append(row_sum(builder.add(loop.index, LONG(size - 1))))
            total = sums[0]
            for term in sums[1:]:
                total = builder.fadd(total, term)
            at = builder.add(values[5], builder.mul(loop.index, values[6]))
            store(builder, total, pointer(context, builder, signature.args[4], values[4], at))
            for slot, newer in zip(above, sums[1:], strict=True):
                builder.store(newer, slot)
        return context.get_dummy_value()

    index = types.intp
    return types.void(image, index, index, index, out, index, index, index, taps), code


@operation
def offer(
    typing: Any,
    keys: Any,
    keys_at: Any,
    worst: Any,
    worst_at: Any,
    distances: Any,
    distances_at: Any,
    rank: Any,
    levels: Any,
) -> Any:
    """Offer LANES pixels one candidate each, and keep it where it is among the best.

    A pixel's best candidates are `levels` (a tuple, of which only the length matters) ascending
    keys. A key is the float32 distance widened to float64, with the candidate's rank in the bits
    that widening leaves empty: one comparison orders by distance, then by rank. `keys` holds level
    after level, each of LANES pixels; `worst` the distances of the last level.

    With ascending keys ``b``, inserting ``x`` means ``b[i] = min(b[i], max(b[i - 1], x))`` for
    every i at once: no branch, no dependency between the levels.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        keys_value, keys_index, worst_value, worst_index, found, found_index, rank_value, _ = values
        kinds = signature.args
        floats, doubles = ir.VectorType(FLOAT, LANES), ir.VectorType(DOUBLE, LANES)
        bound = pointer(context, builder, kinds[2], worst_value, worst_index)
        candidate = pointer(context, builder, kinds[4], found, found_index)
        distance = load(builder, candidate, floats)
        hits = builder.fcmp_ordered("<=", distance, load(builder, bound, floats))
        mask = builder.bitcast(hits, ir.IntType(LANES))
        with builder.if_then(builder.icmp_unsigned("!=", mask, mask.type(0))):
            # Normal numbers only: zero would make a denormal key, infinity a NaN.
            distance = larger(builder, distance, ir.Constant(floats, [_SMALLEST] * LANES))
            distance = smaller(builder, distance, ir.Constant(floats, [_LARGEST] * LANES))
            wide = builder.fpext(distance, doubles)
            bits = builder.bitcast(wide, ir.VectorType(LONG, LANES))
            key = builder.bitcast(builder.or_(bits, splat(builder, rank_value, LANES)), doubles)
            places = [
                pointer(
                    context,
                    builder,
                    kinds[0],
                    keys_value,
                    builder.add(keys_index, keys_index.type(level * LANES)),
                )
                for level in range(levels.count)
            ]
            old = [load(builder, place, doubles) for place in places]
            new = [smaller(builder, old[0], key)] + [
                smaller(builder, old[i], larger(builder, old[i - 1], key))
                for i in range(1, levels.count)
            ]
            for value, place in zip(new, places, strict=True):
                store(builder, value, place)
            store(builder, builder.fptrunc(new[-1], floats), bound)
        return context.get_dummy_value()

    index = types.intp
    return types.void(keys, index, worst, index, distances, index, types.int64, levels), code
