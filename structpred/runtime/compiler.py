# mypy: ignore-errors
"""numba's compiler, without work that no kernel needs.

*Callees.* numba optimises each kernel and translates it to machine code, and does so also with what is only called by other
kernels, whose own code then holds all of it again. Here a callee goes no further than LLVM's intermediate code; what becomes of
it is decided once, in the kernel that Python calls.

*Borrowed arrays.* numba counts references to an array at each use of it, and has LLVM remove most of that again. A kernel that
makes no array and returns none has only arrays that its caller holds until it is done: nothing has to be counted.
"""

from numba.core import ir, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

#: expressions that make no array: their value is a part of what they are given, or a view of it
VIEWS = ("getitem", "static_getitem", "getattr", "exhaust_iter", "iternext", "pair_first", "build_tuple", "cast", "phi")


class KernelCompiler(CompilerBase):
    """numba's passes, with our last step."""

    def define_pipelines(self):
        """The passes that lead to machine code."""
        return [_passes_with(_Lowering, self.state)]


class CalleeCompiler(CompilerBase):
    """The same, for kernels as other kernels call them."""

    def define_pipelines(self):
        """The passes that lead to code that callers link."""
        return [_passes_with(_CalleeLowering, self.state)]


def _passes_with(lowering, state):
    passes = DefaultPassBuilder.define_nopython_pipeline(state)
    passes.passes = [(lowering if step is NativeLowering else step, why) for step, why in passes.passes]
    passes.finalize()
    return passes


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):
    """From numba's intermediate code to LLVM's, without counts of references where arrays are borrowed."""

    _name = "lowering_of_kernels"

    def run_pass(self, state):
        if borrows(state.func_ir, state.typemap, state.return_type):
            state.flags.nrt = False
            state.targetctx = state.targetctx.subtarget(enable_nrt=False)
        return super().run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class _CalleeLowering(_Lowering):
    """The same, and no further: the code is kept for callers."""

    _name = "lowering_of_callees"

    def run_pass(self, state):
        state.library = _Code(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        key = [].clear  # where callers would find the compiled function: any built-in function that equals no other
        state.targetctx.insert_user_function(key, state.cr.fndesc, [state.library])
        state.cr = state.cr._replace(cfunc=key)
        return True


class _Code(JITCodeLibrary):
    """Code that waits for its callers: they optimise it."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


def borrows(function, kinds, returned):
    """Whether a kernel makes no array and returns none. kinds: the types of its variables; returned: that of its value."""
    if _counted(returned) or any(isinstance(kind, _MADE) for kind in kinds.values()):
        return False
    for block in function.blocks.values():
        stored = [*block.find_insts(ir.SetItem), *block.find_insts(ir.StaticSetItem)]
        if any(_counted(kinds[step.value.name]) for step in stored):  # numba copies arrays by code that counts
            return False
        for step in block.find_insts(ir.Assign):
            expr = step.value
            if not isinstance(expr, ir.Expr) or not _counted(kinds[step.target.name]):
                continue
            if expr.op not in VIEWS or (expr.op == "getitem" and _counted(kinds[expr.index.name])):
                return False
    return True


#: what can only be there because the kernel made it
_MADE = (types.List, types.ListType, types.Set, types.DictType, types.UnicodeType, types.Generator)


def _counted(kind):
    """Whether a value of this type holds arrays."""
    if isinstance(kind, types.BaseTuple):
        return any(_counted(one) for one in kind)
    return isinstance(kind, types.Array) or (isinstance(kind, types.Optional) and _counted(kind.type))
