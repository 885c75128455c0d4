"""Vector operations of psi: LANES arguments looked up in the tables of as many filters."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from nlnet.network.kernels.simd.vectors import (
    FLOAT,
    INT,
    LANES,
    LONG,
    element_of,
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


@operation
def evaluate_cubics(
    typing: Any, features: Any, at: Any, cubics: Any, first: Any, origin: Any, scale: Any
) -> Any:
    """Replace LANES features, of the filters from `first` on, by their table's values.

    A feature s is ``scale * s + origin`` intervals from the table's start.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        element = element_of(features)
        vector = ir.VectorType(element, LANES)
        place = pointer(context, builder, signature.args[0], values[0], values[1])
        table = _table_values(context, builder, values[2], signature.args[2], *values[3:])
        t, _, places = _locate(builder, load(builder, place, vector), table)
        c = _read_cubics(builder, table["data"], places, element)
        value = c[3]
        for coefficient in (c[2], c[1], c[0]):
            value = multiply_add(builder, t, value, coefficient)
        store(builder, value, place)
        return context.get_dummy_value()

    index, real = types.intp, features.dtype
    return types.void(features, index, cubics, index, real, real), code


@operation
def differentiate_cubics(
    typing: Any,
    features: Any,
    cotangents: Any,
    at: Any,
    cubics: Any,
    gradient: Any,
    first: Any,
    origin: Any,
    scale: Any,
) -> Any:
    """Replace LANES features by their values and the cotangents d by slope * d.

    The gradient of the table's coefficients, d * (1, t, t^2, t^3), is added to `gradient`, which
    has the shape of `cubics`. The slope of an argument beyond the grid is zero: it was clipped.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        element = element_of(features)
        vector = ir.VectorType(element, LANES)
        kinds = signature.args
        place = pointer(context, builder, kinds[0], values[0], values[2])
        other = pointer(context, builder, kinds[1], values[1], values[2])
        table = _table_values(context, builder, values[3], kinds[3], *values[5:])
        sums = _table_values(context, builder, values[4], kinds[4], *values[5:])["data"]
        t, inside, places = _locate(builder, load(builder, place, vector), table)
        c = _read_cubics(builder, table["data"], places, element)
        value, slope = c[3], ir.Constant(vector, [0.0] * LANES)
        for coefficient in (c[2], c[1], c[0]):
            slope = multiply_add(builder, t, slope, value)
            value = multiply_add(builder, t, value, coefficient)
        slope = builder.fmul(slope, splat(builder, table["scale"], LANES))
        slope = builder.select(inside, slope, ir.Constant(vector, [0.0] * LANES))
        powers = [load(builder, other, vector)]
        store(builder, value, place)
        store(builder, builder.fmul(slope, powers[0]), other)
        for _ in range(3):
            powers.append(builder.fmul(powers[-1], t))
        four = ir.VectorType(element, 4)
        halves = [[0, 1, 2, 3], [4, 5, 6, 7]]
        rows = _transpose(builder, powers, 4)
        for lane in range(LANES):
            part = ir.Constant(ir.VectorType(INT, 4), halves[lane // 4])
            row = builder.shuffle_vector(rows[lane % 4], ir.Constant(vector, ir.Undefined), part)
            target = _at(builder, sums, places[lane])
            store(builder, builder.fadd(load(builder, target, four), row), target)
        return context.get_dummy_value()

    index, real = types.intp, features.dtype
    return types.void(features, cotangents, index, cubics, gradient, index, real, real), code


def _table_values(
    context: Any, builder: Any, cubics: Any, kind: Any, first: Any, origin: Any, scale: Any
) -> dict[str, Any]:
    """Return the parts of the (F, intervals, 4) table as LLVM values."""
    element = element_of(kind)
    table = context.make_array(kind)(context, builder, cubics)
    intervals = builder.extract_value(table.shape, 1)
    return {
        "data": builder.gep(table.data, [builder.mul(first, builder.mul(intervals, LONG(4)))]),
        "origin": origin,
        "scale": scale,
        "top": builder.sitofp(intervals, element),
        "stride": builder.trunc(intervals, INT),
    }


def _locate(builder: Any, s: Any, values: dict[str, Any]) -> tuple[Any, Any, list[Any]]:
    """Where LANES arguments are in the table: position in the interval, inside?, addresses."""
    vector, ints = s.type, ir.VectorType(INT, LANES)
    zero, top = ir.Constant(vector, [0.0] * LANES), splat(builder, values["top"], LANES)
    position = multiply_add(
        builder,
        s,
        splat(builder, values["scale"], LANES),
        splat(builder, values["origin"], LANES),
    )
    inside = builder.and_(
        builder.fcmp_ordered(">=", position, zero), builder.fcmp_ordered("<=", position, top)
    )
    # The table's end belongs to its last interval: stay just below.
    below = splat(builder, _next_below(builder, values["top"]), LANES)
    position = smaller(builder, larger(builder, position, zero), below)
    interval = builder.fptosi(position, ints)
    t = builder.fsub(position, builder.sitofp(interval, vector))
    # In bytes from the first filter's table: each filter's follows that of the filter before.
    lanes = ir.Constant(ints, list(range(LANES)))
    starts = builder.mul(splat(builder, values["stride"], LANES), lanes)
    size = ir.Constant(ints, [4 * (4 if s.type.element == FLOAT else 8)] * LANES)
    offsets = builder.mul(builder.add(interval, starts), size)
    return t, inside, _lanes(builder, offsets)


def _next_below(builder: Any, positive: Any) -> Any:
    """Return the largest number below a positive one."""
    bits = INT if positive.type == FLOAT else LONG
    return builder.bitcast(builder.sub(builder.bitcast(positive, bits), bits(1)), positive.type)


def _lanes(builder: Any, vector: Any) -> list[Any]:
    """Return the lanes, integers, as numbers of their own.

    They go through memory: stored once and loaded one by one they take less than by shuffles, to
    which LLVM would turn it if it were not told that the memory may have changed meanwhile.
    """
    memory = variable(builder, vector.type)
    builder.store(vector, memory)
    touch = ir.FunctionType(ir.VoidType(), [memory.type])
    builder.asm(touch, "", "r,~{memory}", [memory], side_effect=True)
    first = builder.bitcast(memory, INT.as_pointer())
    return [
        builder.zext(builder.load(builder.gep(first, [LONG(lane)])), LONG) for lane in range(LANES)
    ]


def _read_cubics(builder: Any, data: Any, places: list[Any], element: Any) -> list[Any]:
    four = ir.VectorType(element, 4)
    rows = [load(builder, _at(builder, data, place), four) for place in places]
    return _transpose(builder, [_join(builder, rows[i], rows[i + 4]) for i in range(4)], 4)


def _at(builder: Any, data: Any, place: Any) -> Any:
    """Go `place` bytes on."""
    return builder.gep(builder.bitcast(data, ir.IntType(8).as_pointer()), [place])


def _transpose(builder: Any, rows: list[Any], half: int) -> list[Any]:
    """Four vectors of 2 * half lanes from (or for) as many vectors of four: a 4x4 block each half.

    ``rows[i]`` holds four values of lane i and four of lane i + 4, and the result's vector j the
    values j of all lanes. The operation is its own inverse.
    """

    def pick(left: Any, right: Any, lanes: list[int]) -> Any:
        lanes = lanes + [lane + half for lane in lanes]
        mask = ir.Constant(ir.VectorType(INT, 2 * half), lanes)
        return builder.shuffle_vector(left, right, mask)

    low, high = [0, 2 * half, 1, 2 * half + 1], [2, 2 * half + 2, 3, 2 * half + 3]
    first, second = [0, 1, 2 * half, 2 * half + 1], [2, 3, 2 * half + 2, 2 * half + 3]
    a, b = pick(rows[0], rows[1], low), pick(rows[0], rows[1], high)
    c, d = pick(rows[2], rows[3], low), pick(rows[2], rows[3], high)
    return [pick(a, c, first), pick(a, c, second), pick(b, d, first), pick(b, d, second)]


def _join(builder: Any, left: Any, right: Any) -> Any:
    mask = ir.Constant(ir.VectorType(INT, LANES), list(range(LANES)))
    return builder.shuffle_vector(left, right, mask)
