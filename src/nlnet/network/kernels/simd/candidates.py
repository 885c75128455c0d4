"""Vector operations of matching: patch distances, and the best candidates of each pixel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from nlnet.network.kernels.simd.vectors import (
    BIT,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    WIDE_LANES,
    larger,
    load,
    operation,
    pointer,
    reduce_lanes,
    smaller,
    splat,
    store,
    variable,
)

MOST_HITS = 32
"""Candidates that :func:`find_hits` can look at: one for each bit of a lane."""

_UNROLLED = 8
"""Candidates that it looks at in turn; a window has a multiple of 8, its centre left out."""

_FLOATS = ir.VectorType(FLOAT, WIDE_LANES)
_DOUBLES = ir.VectorType(DOUBLE, WIDE_LANES)
_INTS = ir.VectorType(INT, WIDE_LANES)
_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST = float(np.finfo(np.float32).tiny)


class _RunningSum:
    """The sum of the last `count` vectors, by some log2(count) additions each.

    An even number of them is two halves, of which the older is remembered; an odd one is one more
    than an even one.
    """

    def __init__(self, builder: Any, count: int) -> None:
        self._builder = builder
        self._half = _RunningSum(builder, count // 2) if count > 1 else None
        self._halves = [variable(builder, _FLOATS) for _ in range(count // 2)]
        self._even = variable(builder, _FLOATS) if self._half and count % 2 else None

    def add(self, value: Any) -> Any:
        """Add one vector and return the sum, which counts from the `count`-th vector on."""
        if self._half is None:
            return value
        builder = self._builder
        half = self._half.add(value)
        older = [builder.load(slot) for slot in self._halves]
        for slot, newer in zip(self._halves, [*older[1:], half], strict=True):
            builder.store(newer, slot)
        total = builder.fadd(older[0], half)
        if self._even is None:
            return total
        before = builder.load(self._even)
        builder.store(total, self._even)
        return builder.fadd(before, value)


def _neighbour_sums(builder: Any, vectors: Sequence[Any], count: int) -> list[Any]:
    """Return, for each element of consecutive vectors, the sum of `count` elements from it on."""
    if count == 1:
        return list(vectors)
    halves = _neighbour_sums(builder, vectors, count // 2)
    sums = [
        builder.fadd(half, _later(builder, halves, number, count // 2))
        for number, half in enumerate(halves)
    ]
    if count % 2:
        sums = [
            builder.fadd(total, _later(builder, vectors, number, count - 1))
            for number, total in enumerate(sums)
        ]
    return sums


def _later(builder: Any, vectors: Sequence[Any], number: int, step: int) -> Any:
    """Return the elements `step` after those of one of the vectors; beyond the last: anything."""
    first = number + step // WIDE_LANES
    beyond = ir.Constant(_FLOATS, ir.Undefined)
    pair = [*vectors, beyond, beyond][first : first + 2] if first < len(vectors) else [beyond] * 2
    lanes = [step % WIDE_LANES + lane for lane in range(WIDE_LANES)]
    return builder.shuffle_vector(*pair, ir.Constant(ir.VectorType(INT, WIDE_LANES), lanes))


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
    vectors: Any,
) -> Any:
    """Squared distances of neighbouring patches to others, for `rows` rows downwards.

    `here` and `there` are the indices of the first two patches' corners in the flat image. `taps`
    and `vectors` are tuples, of which only the lengths matter: a patch's width, and how many times
    WIDE_LANES patches side by side.

    A distance is the sum of its column sums. Those of one row of patches are running sums, kept in
    registers on the way down, and each serves all the patches that it belongs to.
    """
    size = taps.count

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pixels, line, other, pitch, out_value, first, out_pitch, count = values[:8]
        data = context.make_array(signature.args[0])(context, builder, pixels).data
        more = -(-(size - 1) // WIDE_LANES)
        columns = [_RunningSum(builder, size) for _ in range(vectors.count + more)]

        def column_sums(row: Any) -> list[Any]:
            down = builder.mul(row, pitch)
            sums = []
            for number, column in enumerate(columns):
                step = builder.add(down, down.type(number * WIDE_LANES))
                difference = builder.fsub(
                    load(builder, builder.gep(data, [builder.add(line, step)]), _FLOATS),
                    load(builder, builder.gep(data, [builder.add(other, step)]), _FLOATS),
                )
                sums.append(column.add(builder.fmul(difference, difference)))
            return sums

        for row in range(size - 1):
            column_sums(ir.Constant(LONG, row))
        with cgutils.for_range(builder, count, intp=LONG) as loop:
            columns_here = column_sums(builder.add(loop.index, LONG(size - 1)))
            totals = _neighbour_sums(builder, columns_here, size)[: vectors.count]
            start = builder.add(first, builder.mul(loop.index, out_pitch))
            for number, total in enumerate(totals):
                at = builder.add(start, start.type(number * WIDE_LANES))
                store(builder, total, pointer(context, builder, signature.args[4], out_value, at))
        return context.get_dummy_value()

    index = types.intp
    return types.void(image, index, index, index, out, index, index, index, taps, vectors), code


@operation
def find_hits(
    typing: Any, worst: Any, worst_at: Any, distances: Any, distances_at: Any, steps: Any
) -> Any:
    """Return, as bits, which of some candidates any of WIDE_LANES pixels may want to keep.

    Candidate i, of up to MOST_HITS, has its distances at ``distances_at + steps[i]``; a pixel wants
    it if it is as near as the worst that the pixel has.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        worst_value, worst_index, found, found_index, steps_value = values
        kinds = signature.args
        bound = load(
            builder, pointer(context, builder, kinds[0], worst_value, worst_index), _FLOATS
        )
        table = context.make_array(kinds[4])(context, builder, steps_value)
        count = builder.extract_value(table.shape, 0)
        wanted = variable(builder, _INTS)
        builder.store(ir.Constant(_INTS, [0] * WIDE_LANES), wanted)
        rounds = builder.udiv(count, LONG(_UNROLLED))
        with cgutils.for_range(builder, rounds, intp=LONG) as loop:
            first = builder.mul(loop.index, LONG(_UNROLLED))
            hits = ir.Constant(_INTS, [0] * WIDE_LANES)
            for number in range(_UNROLLED):
                place = builder.gep(table.data, [builder.add(first, LONG(number))])
                index = builder.add(found_index, builder.load(place))
                near = load(builder, pointer(context, builder, kinds[2], found, index), _FLOATS)
                bit = ir.Constant(_INTS, [1 << number] * WIDE_LANES)
                hit = builder.fcmp_ordered("<=", near, bound)
                hits = builder.select(hit, builder.or_(hits, bit), hits)
            shift = splat(builder, builder.trunc(first, INT), WIDE_LANES)
            builder.store(builder.or_(builder.load(wanted), builder.shl(hits, shift)), wanted)
        return builder.zext(reduce_lanes(builder, builder.load(wanted), builder.or_), LONG)

    index = types.intp
    return types.int64(worst, index, distances, index, steps), code


@operation
def insert(
    typing: Any,
    keys: Any,
    keys_at: Any,
    worst: Any,
    worst_at: Any,
    distances: Any,
    distances_at: Any,
    steps: Any,
    ranks: Any,
    chosen: Any,
    levels: Any,
) -> Any:
    """Insert candidates of WIDE_LANES pixels where they are among the best.

    Bit i of `chosen` chooses the candidates whose distances are at ``distances_at + steps[i]``, of
    rank ``ranks[i]``. A pixel's best candidates are `levels` (a tuple, of which only the length
    matters) ascending keys. A key is the float32 distance widened to float64, with the candidate's
    rank in the bits that widening leaves empty: one comparison orders by distance, then by rank.
    `keys` holds level after level, each of WIDE_LANES pixels, and `worst` the distances of the last
    level.

    With ascending keys ``b``, inserting ``x`` means ``b[i] = min(b[i], max(b[i - 1], x))`` for
    every i at once: no branch, no dependency between the levels.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        keys_value, keys_index, worst_value, worst_index, found, found_index = values[:6]
        steps_value, ranks_value, chosen_value = values[6:9]
        kinds = signature.args
        places = [
            pointer(
                context,
                builder,
                kinds[0],
                keys_value,
                builder.add(keys_index, keys_index.type(level * WIDE_LANES)),
            )
            for level in range(levels.count)
        ]
        best = [variable(builder, _DOUBLES) for _ in places]
        for slot, place in zip(best, places, strict=True):
            builder.store(load(builder, place, _DOUBLES), slot)
        left = variable(builder, LONG)
        builder.store(chosen_value, left)

        body = builder.append_basic_block("insert")
        end = builder.append_basic_block("inserted")
        builder.branch(body)
        builder.position_at_end(body)
        remaining = builder.load(left)
        number = builder.cttz(remaining, BIT(1))
        step = builder.load(pointer(context, builder, kinds[6], steps_value, number))
        rank = builder.load(pointer(context, builder, kinds[7], ranks_value, number))
        at = builder.add(found_index, step)
        distance = load(builder, pointer(context, builder, kinds[4], found, at), _FLOATS)
        # Normal numbers only: zero would make a denormal key, infinity a NaN.
        distance = larger(builder, distance, ir.Constant(_FLOATS, [_SMALLEST] * WIDE_LANES))
        distance = smaller(builder, distance, ir.Constant(_FLOATS, [_LARGEST] * WIDE_LANES))
        bits = builder.bitcast(builder.fpext(distance, _DOUBLES), ir.VectorType(LONG, WIDE_LANES))
        key = builder.bitcast(builder.or_(bits, splat(builder, rank, WIDE_LANES)), _DOUBLES)
        old = [builder.load(slot) for slot in best]
        new = [smaller(builder, old[0], key)] + [
            smaller(builder, old[i], larger(builder, old[i - 1], key))
            for i in range(1, levels.count)
        ]
        for value, slot in zip(new, best, strict=True):
            builder.store(value, slot)
        rest = builder.and_(remaining, builder.sub(remaining, LONG(1)))
        builder.store(rest, left)
        builder.cbranch(builder.icmp_unsigned("!=", rest, LONG(0)), body, end)

        builder.position_at_end(end)
        for slot, place in zip(best, places, strict=True):
            store(builder, builder.load(slot), place)
        bound = pointer(context, builder, kinds[2], worst_value, worst_index)
        store(builder, builder.fptrunc(builder.load(best[-1]), _FLOATS), bound)
        return context.get_dummy_value()

    index = types.intp
    return (
        types.void(keys, index, worst, index, distances, index, steps, ranks, types.int64, levels),
        code,
    )
