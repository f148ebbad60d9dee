# mypy: ignore-errors
"""Eight float64 side by side as one value of kernels: `from structpred.runtime import lanes`.

Compilers make loops over short rows of unknown width slow by what surrounds them. These are vector instructions of any CPU's
width. Each operation is rounded alone, and `total` has one order, so bits do not depend on the CPU.
"""

from math import factorial, log

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from structpred.runtime.bounds import checks_bounds

WIDTH = 8
#: what `exp` makes zero, far from where numbers become denormal
TINY_LOG = -460.0
_VECTOR, _WHOLE = (ir.VectorType(kind, WIDTH) for kind in (ir.DoubleType(), ir.IntType(64)))


class _Lanes(types.Type):
    """The type of eight numbers."""


_LANES = _Lanes("Lanes")
register_model(_Lanes)(lambda manager, kind: models.PrimitiveModel(manager, kind, _VECTOR))


def _operation(make, returned, *kinds):
    """A call for kernels, of one or two values of these types."""

    @intrinsic
    def operation(context, *given):
        def generate(target, builder, signature, values):
            return make(builder, *(builder.extract_value(values[0], k) for k in range(len(kinds))))

        return returned(types.StarArgTuple(kinds)), generate

    return operation


def _all(number, kind=_VECTOR):
    return ir.Constant(kind, [number] * WIDTH)


def _picked(builder, vector, places):
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), [*places]))


def _folded(builder, vector, join):
    """The upper half is joined to the lower, and so on."""
    for half in (4, 2, 1):
        vector = join(builder, _picked(builder, vector, range(half)), _picked(builder, vector, range(half, 2 * half)))
    return builder.extract_element(vector, ir.IntType(32)(0))


def _exp(builder, x):
    """2^k exp(r), where k = x / log 2 is rounded by a sum whose last bits are then k, and exp(r) is Taylor's polynomial."""
    add, subtract, times = builder.fadd, builder.fsub, builder.fmul
    shifted = add(times(x, _all(1.0 / log(2.0))), _all(1.5 * 2.0**52))
    k = subtract(shifted, _all(1.5 * 2.0**52))
    high, low = 0x162E42FEE / 2.0**33, 1.90821492927058770e-10  # of log 2; k * high is exact
    r = subtract(subtract(x, times(k, _all(high))), times(k, _all(low)))
    y = _all(1.0 / factorial(13))
    for degree in range(12, -1, -1):
        y = add(times(y, r), _all(1.0 / factorial(degree)))
    power = builder.add(builder.shl(builder.bitcast(shifted, _WHOLE), _all(52, _WHOLE)), _all(1023 << 52, _WHOLE))
    y = times(y, builder.bitcast(power, _VECTOR))
    return builder.select(builder.fcmp_ordered("<=", x, _all(TINY_LOG)), _all(0.0), y)


def _place(target, builder, signature, values):
    """Where table[row, column] lies; with checks of indices all eight must be in the table."""
    table = target.make_array(signature.args[0])(target, builder, values[0])
    start = builder.ptrtoint(table.data, ir.IntType(64))
    for k, reach in enumerate((0, WIDTH - 1)):
        index = target.cast(builder, values[1 + k], signature.args[1 + k], types.int64)
        start = builder.add(start, builder.mul(index, builder.extract_value(table.strides, k)))
        for end in (0, reach) if checks_bounds() else ():
            size, last = builder.extract_value(table.shape, k), builder.add(index, index.type(end))
            with builder.if_then(builder.icmp_unsigned(">=", last, size)):
                target.call_conv.return_user_exc(builder, IndexError, ("a kernel used eight numbers beyond a table",))
    return builder.inttoptr(start, _VECTOR.as_pointer())


def _larger(builder, x, y):
    return builder.select(builder.fcmp_ordered(">", x, y), x, y)


@intrinsic
def load(context, table, row, column):
    """Eight entries of a row of float64, from `column` on."""
    return _LANES(table, row, column), lambda *given: given[1].load(_place(*given), align=WIDTH)


@intrinsic
def store(context, table, row, column, vector):
    """Put them there."""
    return types.void(table, row, column, vector), lambda *given: given[1].store(given[3][3], _place(*given), align=WIDTH)


#: eight times x
spread = _operation(lambda b, x: _picked(b, b.insert_element(_all(0.0), x, ir.IntType(32)(0)), [0] * 8), _LANES, types.float64)
plus = _operation(lambda builder, x, y: builder.fadd(x, y), _LANES, _LANES, _LANES)
minus = _operation(lambda builder, x, y: builder.fsub(x, y), _LANES, _LANES, _LANES)
times = _operation(lambda builder, x, y: builder.fmul(x, y), _LANES, _LANES, _LANES)
larger = _operation(_larger, _LANES, _LANES, _LANES)
#: cut(x, y): x where it is above y, else zero
cut = _operation(lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, _all(0.0)), _LANES, _LANES, _LANES)
#: of numbers up to 700; zero from TINY_LOG downwards
exp = _operation(_exp, _LANES, _LANES)
total = _operation(lambda builder, x: _folded(builder, x, lambda b, y, z: b.fadd(y, z)), types.float64, _LANES)
largest = _operation(lambda builder, x: _folded(builder, x, _larger), types.float64, _LANES)
