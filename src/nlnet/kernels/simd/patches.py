"""Vector operations on patches: weighted sums, their adjoint, and scalar products."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from nlnet.kernels.simd.vectors import (
    BIT,
    INT,
    LONG,
    element_of,
    load,
    multiply_add,
    operation,
    pointer,
    row_vector,
    splat,
    store,
    variable,
)


@operation
def sum_patches(
    typing: Any,
    image: Any,
    stride: Any,
    corners: Any,
    first: Any,
    weights: Any,
    out: Any,
    out_at: Any,
    taps: Any,
) -> Any:
    """``out[out_at:] = sum_k weights[k] * patch at corners[first + k]``, row after row.

    Rows are stored whole vectors at a time, so up to a vector beyond the patch is overwritten.
    """
    size = taps.count

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        element = element_of(image)
        vector = row_vector(element, size)
        pixels = context.make_array(signature.args[0])(context, builder, values[0]).data
        places = context.make_array(signature.args[2])(context, builder, values[2]).data
        factors = context.make_array(signature.args[4])(context, builder, values[4])
        target = pointer(context, builder, signature.args[5], values[5], values[6])
        sums = [variable(builder, vector) for _ in range(size)]
        for slot in sums:
            builder.store(ir.Constant(vector, [0.0] * vector.count), slot)
        members = builder.extract_value(factors.shape, 0)
        with cgutils.for_range(builder, members, intp=LONG) as loop:
            place = builder.load(builder.gep(places, [builder.add(values[3], loop.index)]))
            corner = builder.gep(pixels, [builder.sext(place, LONG)])
            weight = builder.load(builder.gep(factors.data, [loop.index]))
            weight = splat(builder, weight, vector.count)
            for row, slot in enumerate(sums):
                at = builder.gep(corner, [builder.mul(values[1], LONG(row))])
                builder.store(
                    multiply_add(builder, weight, load(builder, at, vector), builder.load(slot)),
                    slot,
                )
        for row, slot in enumerate(sums):
            store(builder, builder.load(slot), builder.gep(target, [LONG(row * size)]))
        return context.get_dummy_value()

    index = types.intp
    return types.void(image, index, corners, index, weights, out, index, taps), code


@operation
def add_patch(
    typing: Any, patches: Any, at: Any, weight: Any, image: Any, corner: Any, stride: Any, taps: Any
) -> Any:
    """Add `weight` times the patch at ``patches[at:]`` to the image at `corner`."""
    size = taps.count

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = row_vector(element_of(image), size)
        source = pointer(context, builder, signature.args[0], values[0], values[1])
        target = pointer(context, builder, signature.args[3], values[3], values[4])
        weight_vector = splat(builder, values[2], vector.count)
        for row in range(size):
            place = builder.gep(target, [builder.mul(values[5], LONG(row))])
            pixels = load(builder, builder.gep(source, [LONG(row * size)]), vector)
            pixels = _clear_beyond(builder, pixels, size)
            total = multiply_add(builder, weight_vector, pixels, load(builder, place, vector))
            store(builder, total, place)
        return context.get_dummy_value()

    index = types.intp
    return types.void(patches, index, image.dtype, image, index, index, taps), code


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
        # Halve the vector until one lane is left.
        width = vector.count
        while width > 1:
            width //= 2
            lower, upper = (
                builder.shuffle_vector(
                    total,
                    ir.Constant(total.type, ir.Undefined),
                    ir.Constant(ir.VectorType(INT, width), list(lanes)),
                )
                for lanes in (range(width), range(width, 2 * width))
            )
            total = builder.fadd(lower, upper)
        return builder.extract_element(total, LONG(0))

    index = types.intp
    return image.dtype(patches, index, image, index, index, taps), code


def _clear_beyond(builder: Any, row: Any, size: int) -> Any:
    """Set the lanes beyond a patch's row to zero."""
    lanes = row.type.count
    inside = ir.Constant(ir.VectorType(BIT, lanes), [lane < size for lane in range(lanes)])
    return builder.select(inside, row, ir.Constant(row.type, [0.0] * lanes))
