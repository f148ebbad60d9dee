# mypy: allow-untyped-defs
"""The compiler's decorator for kernel files (`from structpred.runtime.jit import njit`), with a cache folder chosen first.

Importing this loads numba: only `_x_kernels.py` files do, and those are imported inside functions. With
STRUCTPRED_CHECK_BOUNDS=1 kernels check their indices (`structpred.runtime.bounds`).
"""

import functools
from types import FunctionType

from structpred.runtime.bounds import checks_bounds, not_negative, with_checks
from structpred.runtime.compiled import prepare

prepare()

from llvmlite import ir  # noqa: E402
from numba import njit as _njit  # noqa: E402 - numba must find the cache folder chosen
from numba import prange, types  # noqa: E402
from numba.extending import intrinsic, overload  # noqa: E402

from structpred.runtime.kernel_cache import keep  # noqa: E402

__all__ = ["family", "njit", "prange", "prefetch"]


@intrinsic
def prefetch(typing_context, table, row, column):
    """Ask for the cache line of table[row, column]: a hint, which changes no result and cannot fail."""

    def generate(context, builder, signature, arguments):
        kind, *kinds = signature.args
        array = context.make_array(kind)(context, builder, arguments[0])
        place = builder.ptrtoint(array.data, ir.IntType(64))
        for k, (at, given) in enumerate(zip(arguments[1:], kinds, strict=True)):
            steps = context.cast(builder, at, given, types.int64)
            place = builder.add(place, builder.mul(steps, builder.extract_value(array.strides, k)))
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        declared = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), declared)
        builder.call(fetch, [builder.inttoptr(place, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(table, row, column), generate


def njit(*, cache=False, borrows=False, **options):
    """numba's decorator, without what no kernel needs and all would compile.

    That is an entry for C code; one for Python where other kernels call; and a version of its own wherever a kernel is called
    with a constant: the number 0 and True are types to numba, beside int64 and bool. Optimisation sees the constants of inlined
    calls without that.

    borrows: the kernel makes no array, gets none from a call and returns none. Its caller holds all its arrays until it is done,
    so references to them are not counted, which takes longer than a small kernel. A wrong mark is a use after free, or memory
    that is never given back: tests/runtime/borrowing.py looks at each kernel that is marked.
    """
    options = dict(options, no_cfunc_wrapper=True, _nrt=not borrows)

    def decorate(kernel):
        dispatcher = _njit(**options)(kernel)
        if cache:
            keep(dispatcher, kernel)

        @functools.cache
        def callee():
            return _njit(no_cpython_wrapper=True, **options)(kernel)

        def get_call_template(args, kws):
            plain = {name: types.unliteral(kind) for name, kind in kws.items()}
            return callee().get_call_template(tuple(map(types.unliteral, args)), plain)

        dispatcher.get_call_template = get_call_template
        dispatcher.get_overload = lambda signature: callee().get_overload(signature)
        return dispatcher

    return decorate


def family(name, bodies, *calls, borrows=False):
    """Kernels of plain functions that know what they call by name alone: one body for kernels that differ in some calls.

    Each of `calls`, and each body for those after it, is global under its own name; other names mean what they mean in the file
    of the body. name: of the module that asks, which tells its kernels from others of the same bodies; borrows: as for `njit`, of
    them all. Returned in their order.
    """
    known, made = {call.__name__: call for call in calls}, []
    for body in bodies:
        own = FunctionType(body.__code__, body.__globals__ | known, body.__name__)
        own.__qualname__ = f"{name}.{body.__name__}"
        known[body.__name__] = njit(cache=True, nogil=True, borrows=borrows)(own)
        made.append(known[body.__name__])
    return made


if checks_bounds():
    _unchecked = njit

    @overload(not_negative)
    def _compiled_not_negative(index):
        def checked(index):
            if index < 0:
                raise IndexError("a kernel used a negative index")
            return index

        return checked if isinstance(index, types.Integer) and index.signed else lambda index: index

    def njit(**options):
        """numba's decorator for the kernel with its checks."""
        return lambda kernel: _unchecked(boundscheck=True, **options)(with_checks(kernel))
