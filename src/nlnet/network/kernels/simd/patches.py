"""Vector operations on patches: weighted sums, their adjoint, and scalar products."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from nlnet.network.kernels.simd.vectors import (
    BIT,
    LANES,
    LONG,
    REGISTERS,
    element_of,
    load,
    multiply_add,
    operation,
    pointer,
    reduce_lanes,
    row_vector,
    splat,
    store,
    variable,
)

SPREAD_TOGETHER = REGISTERS // 8
"""How many pixels' patches :func:`spread_patches` takes together: as many as registers can hold."""

SPREAD_STEP = 2 * LANES
"""How far apart these pixels are."""


@operation
def sum_patches(
    typing: Any,
    image: Any,
    corner: Any,
    stride: Any,
    offsets: Any,
    first: Any,
    weights: Any,
    out: Any,
    out_at: Any,
    taps: Any,
) -> Any:
    """``out[out_at:] = sum_k weights[k] * (the image's patch at member k's place)``, row after row.

    `corner` is where the group's first patch starts in the flat image, ``offsets[first:]`` the
    members' (dy, dx) from there. Rows are stored whole vectors at a time, so up to a vector beyond
    the patch is overwritten.
    """
    size = taps.count

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = row_vector(element_of(image), size)
        kinds = signature.args
        origin = pointer(context, builder, kinds[0], values[0], values[1])
        members = pointer(context, builder, kinds[3], values[3], values[4])
        factors = context.make_array(kinds[5])(context, builder, values[5])
        target = pointer(context, builder, kinds[6], values[6], values[7])
        sums = [variable(builder, vector) for _ in range(size)]
        for slot in sums:
            builder.store(ir.Constant(vector, [0.0] * vector.count), slot)
        count = builder.extract_value(factors.shape, 0)
        with cgutils.for_range(builder, count, intp=LONG) as loop:
            place = builder.gep(origin, [_offset(builder, values[2], members, loop.index)])
            weight = builder.load(builder.gep(factors.data, [loop.index]))
            weight = splat(builder, weight, vector.count)
            for row, slot in enumerate(sums):
                at = builder.gep(place, [builder.mul(values[2], LONG(row))])
                builder.store(
                    multiply_add(builder, weight, load(builder, at, vector), builder.load(slot)),
                    slot,
                )
        for row, slot in enumerate(sums):
            store(builder, builder.load(slot), builder.gep(target, [LONG(row * size)]))
        return context.get_dummy_value()

    index = types.intp
    return types.void(image, index, index, offsets, index, weights, out, index, taps), code


@operation
def spread_patches(
    typing: Any,
    patches: Any,
    at: Any,
    weights: Any,
    image: Any,
    corner: Any,
    stride: Any,
    shift: Any,
    offsets: Any,
    first: Any,
    taps: Any,
    together: Any,
) -> Any:
    """Add some pixels' patches, weighted, to the image at every member's place.

    The adjoint of :func:`sum_patches`. The pixels are SPREAD_STEP apart, and as many as the tuple
    `together` is long. ``patches[at:]``, `corner` and ``offsets[first:]`` are those of the first;
    all patches stay in registers meanwhile.

    A vector that was just written can be read again at once only where it was written. Members of
    a group are often neighbours, so all pixels add to their first members, then to their second.

    A vector that crosses from one cache line to the next is slow to store, so there are two images,
    the second `shift` elements behind the first: where a row would cross in the one, it is added
    to the other. Their sum is the result.
    """
    size = taps.count

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = row_vector(element_of(image), size)
        kinds = signature.args
        factors = context.make_array(kinds[2])(context, builder, values[2])
        data = context.make_array(kinds[3])(context, builder, values[3]).data
        count = builder.extract_value(factors.shape, 0)
        pixels = []
        for number in range(together.count):
            step = SPREAD_STEP * number
            source = pointer(
                context, builder, kinds[0], values[0], _plus(builder, values[1], step * size * size)
            )
            members = builder.add(values[8], builder.mul(count, LONG(2 * step)))
            rows = [
                _clear_beyond(
                    builder, load(builder, builder.gep(source, [LONG(row * size)]), vector), size
                )
                for row in range(size)
            ]
            pixels.append(
                (
                    _plus(builder, values[4], step),
                    pointer(context, builder, kinds[7], values[7], members),
                    rows,
                )
            )
        with cgutils.for_range(builder, count, intp=LONG) as loop:
            weight = builder.load(builder.gep(factors.data, [loop.index]))
            weight = splat(builder, weight, vector.count)
            for origin, members, rows in pixels:
                index = builder.add(origin, _offset(builder, values[5], members, loop.index))
                column = builder.and_(index, LONG(2 * vector.count - 1))
                crosses = builder.icmp_signed(">", column, LONG(vector.count))
                index = builder.add(index, builder.select(crosses, values[6], LONG(0)))
                place = builder.gep(data, [index])
                for number, row in enumerate(rows):
                    line = builder.gep(place, [builder.mul(values[5], LONG(number))])
                    store(
                        builder,
                        multiply_add(builder, weight, row, load(builder, line, vector)),
                        line,
                    )
        return context.get_dummy_value()

    index = types.intp
    kinds = (patches, index, weights, image, index, index, index, offsets, index, taps, together)
    return types.void(*kinds), code


@operation
def multiply_patch(
    typing: Any, patches: Any, at: Any, image: Any, corner: Any, stride: Any, taps: Any
) -> Any:
    """Return the scalar product of the patch at ``patches[at:]`` and the image's at `corner`."""
    size = taps.count

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = row_vector(element_of(image), size)
        source = pointer(context, builder, signature.args[0], values[0], values[1])
        target = pointer(context, builder, signature.args[2], values[2], values[3])
        total = ir.Constant(vector, [0.0] * vector.count)
        for row in range(size):
            place = builder.gep(target, [builder.mul(values[4], LONG(row))])
            pixels = load(builder, builder.gep(source, [LONG(row * size)]), vector)
            total = multiply_add(builder, pixels, load(builder, place, vector), total)
        # What lies beyond the rows may be anything, NaN too.
        total = _clear_beyond(builder, total, size)
        return reduce_lanes(builder, total, builder.fadd)

    index = types.intp
    return image.dtype(patches, index, image, index, index, taps), code


def _plus(builder: Any, value: Any, number: int) -> Any:
    return builder.add(value, value.type(number))


def _offset(builder: Any, stride: Any, offsets: Any, number: Any) -> Any:
    """How many elements of the image a group's member is away from its pixel."""
    pair = builder.gep(offsets, [builder.shl(number, LONG(1))])
    dy, dx = (
        builder.sext(builder.load(builder.gep(pair, [LONG(part)])), LONG) for part in range(2)
    )
    return builder.add(builder.mul(dy, stride), dx)


def _clear_beyond(builder: Any, row: Any, size: int) -> Any:
    """Set the lanes beyond a patch's row to zero."""
    lanes = row.type.count
    inside = ir.Constant(ir.VectorType(BIT, lanes), [lane < size for lane in range(lanes)])
    return builder.select(inside, row, ir.Constant(row.type, [0.0] * lanes))
