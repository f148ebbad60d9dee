"""A debugging build of the kernels: with STRUCTPRED_CHECK_BOUNDS=1 every index is checked at both ends.

numba can check that an index is below the end of an array; a negative index counts from the end, as in Python, and passes. Here
the source of each kernel is changed before it is compiled: `a[i, j]` becomes `a[not_negative(i), not_negative(j)]`, and so do the
ends of slices. Constants stay as they are: who writes `a[-1]` means it. `structpred.runtime.jit` applies this.
"""

import ast
import inspect
import os
import textwrap
from collections.abc import Callable
from typing import Any

#: set to 1, kernels are compiled with checks; read once, when the first kernel file is imported
VARIABLE = "STRUCTPRED_CHECK_BOUNDS"
_CHECK = "_structpred_not_negative"


def checks_bounds() -> bool:
    """Whether the environment asks for checked kernels."""
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def not_negative(index: Any) -> Any:
    """`index`, if it is not a negative number; else IndexError.

    >>> not_negative(3)
    3
    """
    if isinstance(index, int) and index < 0:
        raise IndexError("a kernel used a negative index")
    return index


def with_checks(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with `not_negative` around each index of its source that is not a constant; lines keep their numbers."""
    lines, first = inspect.getsourcelines(kernel)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.decorator_list = []
    tree = ast.increment_lineno(ast.fix_missing_locations(_Checks().visit(tree)), first - 1)
    names = kernel.__globals__
    names[_CHECK] = not_negative
    made: dict[str, Any] = {}
    exec(compile(tree, kernel.__code__.co_filename, "exec"), names, made)
    changed: Callable[..., Any] = made[kernel.__name__]
    changed.__qualname__ = kernel.__qualname__
    return changed


class _Checks(ast.NodeTransformer):
    """Wraps what is in the brackets of each subscript."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        node.slice = _checked(node.slice)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node  # annotations are not indices


def _checked(index: ast.expr) -> ast.expr:
    if isinstance(index, ast.Tuple):
        index.elts = [_checked(one) for one in index.elts]
        return index
    if isinstance(index, ast.Slice):
        index.lower, index.upper = (None if end is None else _checked(end) for end in (index.lower, index.upper))
        return index
    if isinstance(index, ast.Constant) or (isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant)):
        return index
    return ast.Call(ast.Name(_CHECK, ast.Load()), [index], [])
