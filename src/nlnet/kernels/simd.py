"""The three vector operations that numba's loops cannot express, written in LLVM's own terms.

Numba vectorises long loops well, but not the short fixed-width steps at the heart of grouping and
matching: it cannot know that two arrays do not overlap. Each operation below works
on `LANES` neighbouring elements of flat arrays; LLVM maps them to whatever vectors the CPU has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8

_FLOAT = ir.FloatType()
_DOUBLE = ir.DoubleType()
_LONG = ir.IntType(64)
_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST = float(np.finfo(np.float32).tiny)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """Address of the element at `index` of a flat array."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.gep(data, [index])


def _element(kind: Any) -> Any:
    """LLVM's name for an array's float type."""
    return _FLOAT if kind.dtype == types.float32 else _DOUBLE


def row_lanes(patch_size: int) -> int:
    """Return the lanes of the vector that holds a row of a patch: a power of two, at least LANES."""
    return max(LANES, 1 << (patch_size - 1).bit_length())


def _row_vector(element: Any, patch_size: int) -> Any:
    return ir.VectorType(element, row_lanes(patch_size))


def _align(element: Any) -> int:
    """Vectors start at any element, so they are aligned like one."""
    return 4 if element == _FLOAT else 8


def _load(builder: Any, pointer: Any, vector: Any) -> Any:
    address = builder.bitcast(pointer, vector.as_pointer())
    return builder.load(address, align=_align(vector.element))


def _load_patch_row(builder: Any, patch: Any, row: int, size: int, vector: Any) -> Any:
    """One row of a patch stored without gaps, the lanes beyond it set to zero."""
    pixels = _load(builder, builder.gep(patch, [_LONG(row * size)]), vector)
    inside = ir.Constant(
        ir.VectorType(ir.IntType(1), vector.count), [lane < size for lane in range(vector.count)]
    )
    return builder.select(inside, pixels, ir.Constant(vector, [0.0] * vector.count))


def _store(builder: Any, value: Any, pointer: Any) -> None:
    address = builder.bitcast(pointer, value.type.as_pointer())
    builder.store(value, address, align=_align(value.type.element))


def _splat(builder: Any, scalar: Any, lanes: int) -> Any:
    vector = ir.VectorType(scalar.type, lanes)
    lane = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, _LONG(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(lane, ir.Constant(vector, ir.Undefined), zeros)


def _multiply_add(builder: Any, left: Any, right: Any, addend: Any) -> Any:
    product = builder.fmul(left, right, flags=("contract",))
    return builder.fadd(addend, product, flags=("contract",))


def _smaller(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", left, right), left, right)


def _larger(builder: Any, left: Any, right: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", left, right), right, left)


@intrinsic  # type: ignore[untyped-decorator]
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
        element = _element(image)
        vector = _row_vector(element, size)
        pixels = context.make_array(signature.args[0])(context, builder, values[0]).data
        places = context.make_array(signature.args[2])(context, builder, values[2]).data
        factors = context.make_array(signature.args[4])(context, builder, values[4])
        target = _pointer(context, builder, signature.args[5], values[5], values[6])
        sums = [cgutils.alloca_once(builder, vector) for _ in range(size)]
        for slot in sums:
            builder.store(ir.Constant(vector, [0.0] * vector.count), slot)
        members = builder.extract_value(factors.shape, 0)
        with cgutils.for_range(builder, members, intp=_LONG) as loop:
            place = builder.load(builder.gep(places, [builder.add(values[3], loop.index)]))
            corner = builder.gep(pixels, [builder.sext(place, _LONG)])
            weight = builder.load(builder.gep(factors.data, [loop.index]))
            weight = _splat(builder, weight, vector.count)
            for row, slot in enumerate(sums):
                at = builder.gep(corner, [builder.mul(values[1], _LONG(row))])
                builder.store(
                    _multiply_add(builder, weight, _load(builder, at, vector), builder.load(slot)),
                    slot,
                )
        for row, slot in enumerate(sums):
            _store(builder, builder.load(slot), builder.gep(target, [_LONG(row * size)]))
        return context.get_dummy_value()

    index = types.intp
    return types.void(image, index, corners, index, weights, out, index, taps), code


@intrinsic  # type: ignore[untyped-decorator]
def add_patch(
    typing: Any, patches: Any, at: Any, weight: Any, image: Any, corner: Any, stride: Any, taps: Any
) -> Any:
    """Add `weight` times the patch at ``patches[at:]`` to the image at `corner`."""
    size = taps.count

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = _row_vector(_element(image), size)
        source = _pointer(context, builder, signature.args[0], values[0], values[1])
        target = _pointer(context, builder, signature.args[3], values[3], values[4])
        weight_vector = _splat(builder, values[2], vector.count)
        for row in range(size):
            place = builder.gep(target, [builder.mul(values[5], _LONG(row))])
            pixels = _load_patch_row(builder, source, row, size, vector)
            total = _multiply_add(builder, weight_vector, pixels, _load(builder, place, vector))
            _store(builder, total, place)
        return context.get_dummy_value()

    index = types.intp
    return types.void(patches, index, image.dtype, image, index, index, taps), code


@intrinsic  # type: ignore[untyped-decorator]
def multiply_patch(
    typing: Any, patches: Any, at: Any, image: Any, corner: Any, stride: Any, taps: Any
) -> Any:
    """Return the scalar product of the patch at ``patches[at:]`` and the image's at `corner`."""
    size = taps.count

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = _row_vector(_element(image), size)
        source = _pointer(context, builder, signature.args[0], values[0], values[1])
        target = _pointer(context, builder, signature.args[2], values[2], values[3])
        total = ir.Constant(vector, [0.0] * vector.count)
        for row in range(size):
            place = builder.gep(target, [builder.mul(values[4], _LONG(row))])
            pixels = _load_patch_row(builder, source, row, size, vector)
            total = _multiply_add(builder, pixels, _load(builder, place, vector), total)
        # Halve the vector until one lane is left.
        width = vector.count
        while width > 1:
            width //= 2
            lower, upper = (
                builder.shuffle_vector(
                    total,
                    ir.Constant(total.type, ir.Undefined),
                    ir.Constant(ir.VectorType(ir.IntType(32), width), list(lanes)),
                )
                for lanes in (range(width), range(width, 2 * width))
            )
            total = builder.fadd(lower, upper)
        return builder.extract_element(total, _LONG(0))

    index = types.intp
    return image.dtype(patches, index, image, index, index, taps), code


@intrinsic  # type: ignore[untyped-decorator]
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
        floats, doubles = ir.VectorType(_FLOAT, LANES), ir.VectorType(_DOUBLE, LANES)
        bound = _pointer(context, builder, kinds[2], worst_value, worst_index)
        candidate = _pointer(context, builder, kinds[4], found, found_index)
        distance = _load(builder, candidate, floats)
        hits = builder.fcmp_ordered("<=", distance, _load(builder, bound, floats))
        mask = builder.bitcast(hits, ir.IntType(LANES))
        with cgutils.if_likely(builder, builder.icmp_unsigned("!=", mask, mask.type(0))):
            # Normal numbers only: zero would make a denormal key, infinity a NaN.
            distance = _larger(builder, distance, ir.Constant(floats, [_SMALLEST] * LANES))
            distance = _smaller(builder, distance, ir.Constant(floats, [_LARGEST] * LANES))
            wide = builder.fpext(distance, doubles)
            bits = builder.bitcast(wide, ir.VectorType(_LONG, LANES))
            key = builder.bitcast(builder.or_(bits, _splat(builder, rank_value, LANES)), doubles)
            places = [
                _pointer(
                    context,
                    builder,
                    kinds[0],
                    keys_value,
                    builder.add(keys_index, keys_index.type(level * LANES)),
                )
                for level in range(levels.count)
            ]
            old = [_load(builder, place, doubles) for place in places]
            new = [_smaller(builder, old[0], key)] + [
                _smaller(builder, old[i], _larger(builder, old[i - 1], key))
                for i in range(1, levels.count)
            ]
            for value, place in zip(new, places, strict=True):
                _store(builder, value, place)
            _store(builder, builder.fptrunc(new[-1], floats), bound)
        return context.get_dummy_value()

    index = types.intp
    return types.void(keys, index, worst, index, distances, index, types.int64, levels), code


@intrinsic  # type: ignore[untyped-decorator]
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
        vector = ir.VectorType(_FLOAT, LANES)

        def row_sum(row: Any) -> Any:
            down = builder.mul(row, values[3])
            total = ir.Constant(vector, [0.0] * LANES)
            for tap in range(size):
                step = builder.add(down, down.type(tap))
                difference = builder.fsub(
                    _load(builder, builder.gep(pixels, [builder.add(line, step)]), vector),
                    _load(builder, builder.gep(pixels, [builder.add(other, step)]), vector),
                )
                total = _multiply_add(builder, difference, difference, total)
            return total

        # The row sums of the p - 1 rows above, oldest first.
        above = [cgutils.alloca_once(builder, vector) for _ in range(size - 1)]
        for row, slot in enumerate(above):
            builder.store(row_sum(ir.Constant(_LONG, row)), slot)
        with cgutils.for_range(builder, values[7], intp=_LONG) as loop:
            sums = [builder.load(slot) for slot in above]
            sums.append(row_sum(builder.add(loop.index, _LONG(size - 1))))
            total = sums[0]
            for term in sums[1:]:
                total = builder.fadd(total, term)
            at = builder.add(values[5], builder.mul(loop.index, values[6]))
            _store(builder, total, _pointer(context, builder, signature.args[4], values[4], at))
            for slot, newer in zip(above, sums[1:], strict=True):
                builder.store(newer, slot)
        return context.get_dummy_value()

    index = types.intp
    return types.void(image, index, index, index, out, index, index, index, taps), code


def _transpose(builder: Any, rows: list[Any], half: int) -> list[Any]:
    """Four vectors of 2 * half lanes from (or for) as many vectors of four: a 4x4 block each half.

    ``rows[i]`` holds four values of lane i and four of lane i + 4, and the result's vector j the
    values j of all lanes. The operation is its own inverse.
    """

    def pick(left: Any, right: Any, lanes: list[int]) -> Any:
        lanes = lanes + [lane + half for lane in lanes]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 2 * half), lanes)
        return builder.shuffle_vector(left, right, mask)

    low, high = [0, 2 * half, 1, 2 * half + 1], [2, 2 * half + 2, 3, 2 * half + 3]
    first, second = [0, 1, 2 * half, 2 * half + 1], [2, 3, 2 * half + 2, 2 * half + 3]
    a, b = pick(rows[0], rows[1], low), pick(rows[0], rows[1], high)
    c, d = pick(rows[2], rows[3], low), pick(rows[2], rows[3], high)
    return [pick(a, c, first), pick(a, c, second), pick(b, d, first), pick(b, d, second)]


def _locate(builder: Any, s: Any, values: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
    """Where LANES arguments are in the table: position in the interval, inside?, addresses."""
    vector, ints = s.type, ir.VectorType(ir.IntType(32), LANES)
    zero, top = ir.Constant(vector, [0.0] * LANES), _splat(builder, values["top"], LANES)
    position = builder.fmul(
        builder.fsub(s, _splat(builder, values["lower"], LANES)),
        _splat(builder, values["scale"], LANES),
    )
    inside = builder.and_(
        builder.fcmp_ordered(">=", position, zero), builder.fcmp_ordered("<=", position, top)
    )
    position = _smaller(builder, _larger(builder, position, zero), top)
    interval = builder.fptosi(position, ints)
    last = _splat(builder, values["last"], LANES)
    interval = builder.select(builder.icmp_signed("<", interval, last), interval, last)
    t = builder.fsub(position, builder.sitofp(interval, vector))
    places = []
    for lane in range(LANES):
        row = builder.sext(builder.extract_element(interval, _LONG(lane)), _LONG)
        row = builder.add(row, builder.mul(values["stride"], _LONG(lane)))
        places.append(builder.shl(builder.add(row, values["first"]), _LONG(2)))
    return t, inside, places


def _join(builder: Any, left: Any, right: Any) -> Any:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(range(LANES)))
    return builder.shuffle_vector(left, right, mask)


def _table_values(context: Any, builder: Any, cubics: Any, kind: Any, first: Any, lower: Any,
                  scale: Any) -> dict[str, Any]:
    """The table's parts as LLVM values, read from the (F, intervals, 4) array."""
    element = _element(kind)
    table = context.make_array(kind)(context, builder, cubics)
    intervals = builder.extract_value(table.shape, 1)
    return {
        "data": table.data,
        "lower": lower,
        "scale": scale,
        "top": builder.sitofp(intervals, element),
        "last": builder.sub(builder.trunc(intervals, ir.IntType(32)), ir.IntType(32)(1)),
        "stride": intervals,
        "first": builder.mul(first, intervals),
    }


def _read_cubics(builder: Any, data: Any, places: list[Any], element: Any) -> list[Any]:
    four = ir.VectorType(element, 4)
    rows = [_load(builder, builder.gep(data, [place]), four) for place in places]
    return _transpose(builder, [_join(builder, rows[i], rows[i + 4]) for i in range(4)], 4)


@intrinsic  # type: ignore[untyped-decorator]
def evaluate_cubics(
    typing: Any, features: Any, at: Any, cubics: Any, first: Any, lower: Any, scale: Any
) -> Any:
    """Replace LANES features, of the filters from `first` on, by their table's values."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        element = _element(features)
        vector = ir.VectorType(element, LANES)
        place = _pointer(context, builder, signature.args[0], values[0], values[1])
        table = _table_values(context, builder, values[2], signature.args[2], *values[3:])
        t, _, places = _locate(builder, _load(builder, place, vector), table)
        c = _read_cubics(builder, table["data"], places, element)
        value = c[3]
        for coefficient in (c[2], c[1], c[0]):
            value = _multiply_add(builder, t, value, coefficient)
        _store(builder, value, place)
        return context.get_dummy_value()

    index, real = types.intp, features.dtype
    return types.void(features, index, cubics, index, real, real), code


@intrinsic  # type: ignore[untyped-decorator]
def differentiate_cubics(
    typing: Any,
    features: Any,
    cotangents: Any,
    at: Any,
    cubics: Any,
    gradient: Any,
    first: Any,
    lower: Any,
    scale: Any,
) -> Any:
    """Replace LANES features by their values and the cotangents d by slope * d.

    The gradient of the table's coefficients, d * (1, t, t^2, t^3), is added to `gradient`, which
    has the shape of `cubics`. The slope of an argument beyond the grid is zero: it was clipped.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        element = _element(features)
        vector = ir.VectorType(element, LANES)
        kinds = signature.args
        place = _pointer(context, builder, kinds[0], values[0], values[2])
        other = _pointer(context, builder, kinds[1], values[1], values[2])
        table = _table_values(context, builder, values[3], kinds[3], *values[5:])
        sums = context.make_array(kinds[4])(context, builder, values[4]).data
        t, inside, places = _locate(builder, _load(builder, place, vector), table)
        c = _read_cubics(builder, table["data"], places, element)
        value, slope = c[3], ir.Constant(vector, [0.0] * LANES)
        for coefficient in (c[2], c[1], c[0]):
            slope = _multiply_add(builder, t, slope, value)
            value = _multiply_add(builder, t, value, coefficient)
        slope = builder.fmul(slope, _splat(builder, table["scale"], LANES))
        slope = builder.select(inside, slope, ir.Constant(vector, [0.0] * LANES))
        powers = [_load(builder, other, vector)]
        _store(builder, value, place)
        _store(builder, builder.fmul(slope, powers[0]), other)
        for _ in range(3):
            powers.append(builder.fmul(powers[-1], t))
        four = ir.VectorType(element, 4)
        halves = [[0, 1, 2, 3], [4, 5, 6, 7]]
        rows = _transpose(builder, powers, 4)
        for lane in range(LANES):
            part = ir.Constant(ir.VectorType(ir.IntType(32), 4), halves[lane // 4])
            row = builder.shuffle_vector(rows[lane % 4], ir.Constant(vector, ir.Undefined), part)
            target = builder.gep(sums, [places[lane]])
            _store(builder, builder.fadd(_load(builder, target, four), row), target)
        return context.get_dummy_value()

    index, real = types.intp, features.dtype
    return types.void(features, cotangents, index, cubics, gradient, index, real, real), code
