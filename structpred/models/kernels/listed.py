"""Several kernels at once: what `kernels=` may hold, what they are called, and their mean."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.models.kernels.functions import (
    RBF,
    B1Spline,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Rows,
    is_number,
    kernels,
    name_of,
    resolve_kernel,
)


class Mean(Kernel):
    """The mean of some kernels, each with the same weight."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = list(kernels)

    def __call__(self, A: Rows, B: Rows) -> Floats:
        """The mean of their values."""
        return np.asarray(sum(kernel(A, B) for kernel in self.kernels) / len(self.kernels))

    def fitted(self, rows: Rows) -> Self:
        """The mean of kernels that have their numbers."""
        return type(self)([kernel.fitted(rows) for kernel in self.kernels])


def listed_kernels(given: Any) -> list[Kernel]:
    """The kernels for a list of names, (name, parameter), kernel objects and functions; ParameterError for anything else.

    Those that go by a name have k(x, x) = 1. The parameter of "polynomial" is the degree, of "rbf" sigma^2, so that k(x, x') =
    exp(-|x - x'|^2 / (2 sigma^2)), and of "b1spline" the share of entries that are not zero. "quadratic" is ("polynomial", 2).

    >>> listed_kernels(["quadratic", ("rbf", 5.0)])
    [Polynomial(degree=2, gamma=1.0, constant=1.0, normalised=True), RBF(gamma=0.1)]
    """
    if isinstance(given, str | bytes) or not isinstance(given, Sequence) or not len(given):
        raise ParameterError(f"kernels: expected a list such as ['linear', ('rbf', 5.0)], got {given!r}")
    found = [_one(entry) for entry in given]
    if 0 < sum(isinstance(kernel, Precomputed) for kernel in found) < len(found):
        raise ParameterError("kernels: either all are 'precomputed', or none: X holds kernel values, or features")
    return found


def _one(entry: Any) -> Kernel:
    if not isinstance(entry, str | tuple | list):
        return resolve_kernel(entry)
    name, *parameters = (entry,) if isinstance(entry, str) else entry
    if not isinstance(name, str) or len(parameters) > 1:
        raise ParameterError(f"kernels: expected (name, parameter), got {entry!r}")
    makers: dict[str, Any] = {
        "linear": lambda: Linear(normalised=True),
        "quadratic": lambda: Polynomial(2, normalised=True),
        "polynomial": lambda degree=2: Polynomial(degree, normalised=True),
        "rbf": lambda *variance: RBF(*(_gamma(x) for x in variance)),
        "b1spline": B1Spline,
    }
    if name not in makers:
        return resolve_kernel(name if not parameters else repr(entry))
    try:
        kernel: Kernel = makers[name](*parameters)
    except TypeError:
        raise ParameterError(f"kernels: {name!r} has no such parameter, got {entry!r}") from None
    return kernel


def _gamma(variance: Any) -> float:
    if not (is_number(variance) and variance > 0):
        raise ParameterError(f"kernels: expected ('rbf', sigma^2) with a number > 0, got {variance!r}")
    return 1.0 / (2.0 * float(variance))


def names_of(found: Sequence[Kernel]) -> list[str]:
    """What the kernels are called: their names, numbered where they are the same.

    >>> names_of(listed_kernels(["linear", ("rbf", 1.0), ("rbf", 5.0)]))
    ['linear', 'rbf 1', 'rbf 2']
    """
    plain = [_plain_name(kernel) for kernel in found]
    counts, seen = Counter(plain), Counter[str]()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(name if counts[name] == 1 else f"{name} {seen[name]}")
    return names


def _plain_name(kernel: Kernel) -> str:
    if isinstance(kernel, Mean):
        return f"mean of {', '.join(names_of(kernel.kernels))}"
    return "quadratic" if isinstance(kernel, Polynomial) and kernel.degree == 2 else name_of(kernel)


def is_definite(kernel: Kernel) -> bool:
    """Whether the kernel is known to be positive semidefinite."""
    if isinstance(kernel, Mean):
        return all(is_definite(one) for one in kernel.kernels)
    return type(kernel) in set(kernels().values()) - {B1Spline, Precomputed}
