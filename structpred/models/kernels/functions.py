"""Kernels: positive semidefinite similarities between the feature rows of positions, one or several at once."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from structpred.core.types import ArrayLike, Floats
from structpred.errors import DataError, ParameterError
from structpred.models.settings import settings_of
from structpred.runtime.discovery import public_subclasses
from structpred.runtime.settings import checked_nonnegative, checked_positive, checked_whole, is_number
from structpred.text.suggestions import named

#: a SciPy sparse matrix of float64 in CSR format, a row for each position
Rows = Any
#: a share of entries that are not zero from which on products of dense matrices are faster
_DENSE = 0.1


class Kernel(ABC):
    """k(x, x') for all pairs of rows of two matrices. A subclass in this package goes by its `name`."""

    name: ClassVar[str] = ""
    #: whether it is explicit features, which have weights of their own in place of a Gram matrix
    explicit: bool = False

    @abstractmethod
    def __call__(self, A: Rows, B: Rows) -> Floats:
        """The matrix of k(a, b), (rows of A, rows of B), float64."""

    def fitted(self, rows: Rows) -> Self:
        """The kernel with the numbers that it takes from the training data."""
        return self

    @property
    def complete(self) -> bool:
        """Whether it has them."""
        return None not in vars(self).values()


class ProductKernel(Kernel):
    """A kernel that is a function of <x, x'>, |x|^2 and |x'|^2."""

    @abstractmethod
    def of_products(self, inner: Floats, a: Floats, b: Floats) -> Floats:
        """The values for the matrix of inner products, whose memory may be used, and the squares |x|^2 and |x'|^2."""

    def fitted(self, rows: Rows) -> Self:
        """With a number for gamma where it is None."""
        return self if self.complete else replace(self, gamma=_scale_of(rows))  # type: ignore[type-var]

    def __call__(self, A: Rows, B: Rows) -> Floats:
        """The values for all pairs of rows."""
        if not self.complete:
            raise ParameterError(f"{self!r}: None is to be taken from training data: call fitted(rows) first")
        return self.of_products(products(A, B), _squares(A), _squares(B))


@dataclass(frozen=True)
class Linear(ProductKernel):
    """k(x, x') = <x, x'>; normalised: divided by |x| |x'|, so that k(x, x) = 1, and 0 for x = 0.

    explicit: as one of several kernels it is trained as weights of the features themselves. The model is the same.

    >>> from scipy import sparse
    >>> Linear()(sparse.csr_array([[1.0, 2.0]]), sparse.csr_array([[3.0, 4.0]])).tolist()
    [[11.0]]
    """

    name = "linear"
    normalised: bool = False
    explicit: bool = False

    def of_products(self, inner: Floats, a: Floats, b: Floats) -> Floats:
        """The products themselves."""
        return _to_unit(inner, a, b) if self.normalised else inner


@dataclass(frozen=True)
class Polynomial(ProductKernel):
    """k(x, x') = (gamma <x, x'> + constant)^degree; positive semidefinite for gamma > 0, constant >= 0, degree 1, 2, ...

    normalised: divided by the root of k(x, x) k(x', x'), so that k(x, x) = 1. gamma=None: as of `RBF`.
    """

    name = "polynomial"
    degree: int = 2
    gamma: float | None = 1.0
    constant: float = 1.0
    normalised: bool = False

    def __post_init__(self) -> None:
        checked_whole(self.degree, "Polynomial: degree")
        checked_nonnegative(self.constant, "Polynomial: constant")
        if self.gamma is not None:
            checked_positive(self.gamma, "Polynomial: gamma")

    def of_products(self, inner: Floats, a: Floats, b: Floats) -> Floats:
        """(gamma <x, x'> + constant)^degree."""
        assert self.gamma is not None
        inner *= self.gamma
        inner += self.constant
        if self.normalised:  # before the power, which may be large
            inner = _to_unit(inner, self.gamma * a + self.constant, self.gamma * b + self.constant)
        with np.errstate(over="ignore"):  # whoever asked looks whether the values are finite
            inner **= self.degree
        return inner


@dataclass(frozen=True)
class RBF(ProductKernel):
    """k(x, x') = exp(-gamma |x - x'|^2).

    gamma=None takes 1 / (number of features times the variance of all entries of the training data), as scikit-learn's "scale".
    """

    name = "rbf"
    gamma: float | None = None

    def __post_init__(self) -> None:
        if self.gamma is not None:
            checked_positive(self.gamma, "RBF: gamma")

    def of_products(self, inner: Floats, a: Floats, b: Floats) -> Floats:
        """exp(-gamma (|x|^2 + |x'|^2 - 2 <x, x'>))."""
        distances = _squared_distances(inner, a, b)
        distances *= -self.gamma  # type: ignore[operator]
        return np.exp(distances, out=distances)


@dataclass(frozen=True)
class B1Spline(ProductKernel):
    """k(x, x') = max(0, 1 - |x - x'| / width): zero for all but near neighbours, so its Gram matrix is sparse.

    width=None takes the quantile `share` of the distances between training positions: so large is the share of entries that are
    not zero.

    With more than one feature it need not be positive semidefinite; in training, what the Gram matrix lacks is then added to its
    diagonal. Martins et al. (2011), section 4.
    """

    name = "b1spline"
    share: float = 0.05
    width: float | None = None

    def __post_init__(self) -> None:
        if not (is_number(self.share) and 0 < self.share <= 1):
            raise ParameterError(f"B1Spline: share must be a number in (0, 1], got {self.share!r}")
        if self.width is not None:
            checked_positive(self.width, "B1Spline: width")

    def fitted(self, rows: Rows) -> Self:
        """With a number for the width, from the distances between at most a thousand positions and all others."""
        if self.width is not None:
            return self
        some = rows[:: max(1, rows.shape[0] // 1000)]
        distances = np.sqrt(_squared_distances(products(some, rows), _squares(some), _squares(rows)))
        width = float(np.quantile(distances, self.share))
        return type(self)(self.share, width if width > 0 else 1.0)

    def of_products(self, inner: Floats, a: Floats, b: Floats) -> Floats:
        """max(0, 1 - |x - x'| / width)."""
        distances = _squared_distances(inner, a, b)
        np.sqrt(distances, out=distances)
        distances /= -self.width  # type: ignore[operator]
        distances += 1.0
        return np.maximum(distances, 0.0, out=distances)


@dataclass(frozen=True)
class Precomputed(Kernel):
    """X holds kernel values: row t of a sequence has k(its position t, each training position), in the order of training."""

    name = "precomputed"

    def __call__(self, A: Rows, B: Rows) -> Floats:
        """Never called: there is nothing to compute."""
        raise TypeError("a precomputed kernel is read, not called")


class Own(Kernel):
    """A function of the user: function(A, B) -> array (rows of A, rows of B), for two CSR matrices."""

    def __init__(self, function: Callable[[Rows, Rows], ArrayLike]) -> None:
        self.function = function

    def __call__(self, A: Rows, B: Rows) -> Floats:
        """What the function gives; DataError for anything but finite numbers of the right shape."""
        found = np.asarray(self.function(A, B))
        if found.shape != (A.shape[0], B.shape[0]) or found.dtype.kind not in "fiub":
            expected = f"numbers of shape {(A.shape[0], B.shape[0])}"
            raise DataError(f"kernel {name_of(self.function)}: expected {expected}, got {found.dtype} of shape {found.shape}")
        return found.astype(np.float64)


class Missing(Kernel):
    """In place of a user's function, which model files do not hold."""

    def __init__(self, function: str) -> None:
        self.function = function

    def __call__(self, A: Rows, B: Rows) -> Floats:
        """ParameterError that says what to do."""
        raise ParameterError(f"this model was trained with the kernel function {self.function}: give load(path, kernel=...)")


@cache
def kernels() -> dict[str, type[Kernel]]:
    """The kernels that go by a name."""
    found = public_subclasses("structpred.models.kernels", Kernel)  # type: ignore[type-abstract]
    return {kind.name: kind for kind in found if kind.name}


def resolve_kernel(kernel: Any) -> Kernel:
    """The kernel for a name or a function, or the object itself; ParameterError for anything else.

    >>> resolve_kernel("rbf"), resolve_kernel(Polynomial(3)).degree
    (RBF(gamma=None), 3)
    """
    if isinstance(kernel, str):
        return named("kernel", kernel, kernels(), ", a kernel object or a function")()
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) or not callable(kernel):
        raise ParameterError(f"kernel: expected a name, an instance such as RBF(0.1), or a function (A, B), got {kernel!r}")
    return Own(kernel)


def name_of(kernel: Any) -> str:
    """What messages and files call a kernel."""
    kernel = getattr(kernel, "function", kernel)
    if isinstance(kernel, str):
        return kernel
    return str(getattr(kernel, "name", "") or getattr(kernel, "__name__", type(kernel).__name__))


def saved(kernel: Any) -> dict[str, Any] | str:
    """A kernel for the header of a model file: a name, or a class with its settings; of a function its name alone."""
    if isinstance(kernel, str) or type(kernel) in kernels().values():
        return settings_of(kernel)
    return {"class": name_of(kernel), "settings": {}}


def restored_complete(entry: dict[str, Any] | str) -> Kernel:
    """As `restored`, of a kernel that was fitted; ValueError where a number is missing."""
    kernel = restored(entry)
    if not kernel.complete:
        raise ValueError(f"{kernel!r} lacks a number")
    return kernel


def restored(entry: dict[str, Any] | str) -> Kernel:
    """The inverse of `saved`; what was no kernel of ours becomes `Missing`."""
    if isinstance(entry, str):
        return resolve_kernel(entry)
    kinds = {kind.__name__: kind for kind in kernels().values()}
    made = kinds.get(entry["class"])
    return Missing(entry["class"]) if made is None else made(**entry["settings"])


def products(A: Rows, B: Rows) -> Floats:
    """A B' as an array."""
    if B.nnz >= _DENSE * B.shape[0] * B.shape[1]:
        return np.asarray(A.toarray() @ B.toarray().T)
    return np.asarray((A @ B.T).toarray(), dtype=np.float64)


def _scale_of(rows: Rows) -> float:
    """1 / (number of features times the variance of all entries)."""
    size = rows.shape[0] * rows.shape[1]
    with np.errstate(over="ignore"):  # refused below
        squares = float(rows.data @ rows.data)
    if not np.isfinite(squares):
        raise DataError(
            f"kernel: the variance of the features, which gamma=None follows, is no finite number: values of up to "
            f"{np.abs(rows.data).max():.3g} are too large to be squared; scale the features"
        )
    variance = squares / size - (float(rows.data.sum()) / size) ** 2 if size else 0.0
    return 1.0 / (rows.shape[1] * variance) if variance > 0 else 1.0


def _squared_distances(inner: Floats, a: Floats, b: Floats) -> Floats:
    """|x|^2 + |x'|^2 - 2 <x, x'>, in the memory of `inner`; rounding leaves none below zero."""
    inner *= -2.0
    inner += a[:, None]
    inner += b
    return np.maximum(inner, 0.0, out=inner)


def _to_unit(inner: Floats, a: Floats, b: Floats) -> Floats:
    """Divided by the roots of a and b, in place; what belongs to a zero is zero itself."""
    inner /= np.sqrt(np.where(a > 0.0, a, 1.0))[:, None]
    inner /= np.sqrt(np.where(b > 0.0, b, 1.0))
    return inner


def _squares(rows: Rows) -> Floats:
    """|row|^2 of each row."""
    return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()


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
    "features", the linear kernel as explicit features, comes last.

    >>> listed_kernels(["quadratic", ("rbf", 5.0)])
    [Polynomial(degree=2, gamma=1.0, constant=1.0, normalised=True), RBF(gamma=0.1)]
    """
    if isinstance(given, str | bytes) or not isinstance(given, Sequence) or not len(given):
        raise ParameterError(f"kernels: expected a list such as ['linear', ('rbf', 5.0)], got {given!r}")
    found = sorted((_one(entry) for entry in given), key=lambda kernel: kernel.explicit)
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
        "features": lambda: Linear(normalised=True, explicit=True),
        "quadratic": lambda: Polynomial(2, normalised=True),
        "polynomial": lambda degree=2: Polynomial(degree, normalised=True),
        "rbf": lambda *variance: RBF(*(0.5 / checked_positive(x, "kernels: sigma^2 of 'rbf'") for x in variance)),
        "b1spline": B1Spline,
    }
    if name not in makers:
        return resolve_kernel(name if not parameters else repr(entry))
    try:
        kernel: Kernel = makers[name](*parameters)
    except TypeError:
        raise ParameterError(f"kernels: {name!r} has no such parameter, got {entry!r}") from None
    return kernel


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
    quadratic = isinstance(kernel, Polynomial) and kernel.degree == 2
    return "features" if kernel.explicit else "quadratic" if quadratic else name_of(kernel)
