"""Compiled kernels without numba's look at the types of all arguments, which takes 1 to 4 microseconds at each call."""

from collections.abc import Callable
from typing import Any


def entry_of(kernel: Any, *examples: Any) -> Callable[..., Any]:
    """The compiled code of `kernel` for arguments of the types that `examples` have: compiled, or loaded, now.

    It trusts its caller, and would misread an array of another type or layout. So it is kept next to the arrays that it was made
    for, and made again for other ones. Numbers are converted: give the examples the types that the kernel should get.
    """
    return kernel.compile(tuple(kernel.typeof_pyval(example) for example in examples))
