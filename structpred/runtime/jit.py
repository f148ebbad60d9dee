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
from numba.core import cgutils  # noqa: E402
from numba.extending import intrinsic, overload  # noqa: E402

from structpred.runtime.compiler import CalleeCompiler, KernelCompiler  # noqa: E402
from structpred.runtime.kernel_cache import keep  # noqa: E402

__all__ = ["family", "njit", "prange", "prefetch"]


@intrinsic
def prefetch(typing_context, table, row, column):
    """Ask for the cache line of table[row, column]: a hint, which changes no result and cannot fail."""

    def generate(context, builder, signature, arguments):
        kind, *kinds = signature.args
        array = context.make_array(kind)(context, builder, arguments[0])
        places = [context.cast(builder, at, given, types.intp) for at, given in zip(arguments[1:], kinds, strict=True)]
        place = cgutils.get_item_pointer(context, builder, kind, array, places, wraparound=False)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        declared = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        call = cgutils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0")
        builder.call(call, [builder.bitcast(place, byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(table, row, column), generate


def njit(*, cache=False, **options):
    """numba's decorator, without what no kernel needs and all would compile.

    That is an entry for C code; counts of references to borrowed arrays and machine code of kernels that only other kernels call
    (`structpred.runtime.compiler`); and a version of its own wherever a kernel is called with a constant: the number 0 and True
    are types to numba, beside int64 and bool. Optimisation sees the constants of inlined calls without that.
    """

    def decorate(kernel):
        dispatcher = _njit(no_cfunc_wrapper=True, pipeline_class=KernelCompiler, **options)(kernel)
        if cache:
            keep(dispatcher, kernel)

        @functools.cache
        def callee():
            return _njit(no_cfunc_wrapper=True, no_cpython_wrapper=True, pipeline_class=CalleeCompiler, **options)(kernel)

        def get_call_template(args, kws):
            plain = {name: types.unliteral(kind) for name, kind in kws.items()}
            return callee().get_call_template(tuple(map(types.unliteral, args)), plain)

        dispatcher.get_call_template = get_call_template
        dispatcher.get_overload = lambda signature: callee().get_overload(signature)
        return dispatcher

    return decorate


def family(name, bodies, *calls):
    """Kernels of plain functions that know what they call by name alone: one body for kernels that differ in some calls.

    Each of `calls`, and each body for those after it, is global under its own name; other names mean what they mean in the file
    of the body. name: of the module that asks, which tells its kernels from others of the same bodies. Returned in their order.
    """
    known, made = {call.__name__: call for call in calls}, []
    for body in bodies:
        own = FunctionType(body.__code__, body.__globals__ | known, body.__name__)
        own.__qualname__ = f"{name}.{body.__name__}"
        known[body.__name__] = njit(cache=True, nogil=True)(own)
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
