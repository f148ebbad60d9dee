"""A kernel as features: the Gram matrix of the training positions, taken apart exactly by Cholesky's method with pivots.

With K = Phi Phi' the problem with the kernel is the one with the feature rows Phi: the same objective, the same certificate, any
trainer. The pivots are the support: Phi[p] = L for them, K[p, p] = L L', and phi(x) = L^-1 k(p, x) for any other position.
"""

import logging
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.runtime.memory import check_fits

log = logging.getLogger("structpred.models")

#: what is left of the diagonal, as a share of its largest entry, when the factorisation ends; of values read as 32-bit numbers
EXACT, ROUNDED = 1e-10, 1e-6


class Factor(NamedTuple):
    """K = Phi Phi'. pivots: the r positions that span all others, in order.

    triangle: (N, N), its lower part: row places[i] has the features of position i in its first r columns.
    """

    pivots: Integers
    places: Integers
    triangle: Floats

    @property
    def rank(self) -> int:
        """r, the number of features."""
        return len(self.pivots)

    def row(self, i: int) -> Floats:
        """The features of position i that are not zero: the first ones."""
        place = int(self.places[i])
        return self.triangle[place, : min(place + 1, self.rank)]


def distinct_rows(rows: Any) -> tuple[Integers, Integers]:
    """(first, number) of a canonical CSR matrix: the first of each set of equal rows, and for each row the number of its set.

    >>> from scipy import sparse
    >>> [found.tolist() for found in distinct_rows(sparse.csr_array([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]]))]
    [[0, 1], [0, 1, 0]]
    """
    seen: dict[bytes, int] = {}
    first: list[int] = []
    number = np.empty(rows.shape[0], np.int64)
    bounds = rows.indptr.tolist()
    for t in range(rows.shape[0]):
        own = slice(bounds[t], bounds[t + 1])
        key = rows.indices[own].tobytes() + rows.data[own].tobytes()
        k = seen.setdefault(key, len(seen))
        number[t] = k
        if k == len(first):
            first.append(t)
    return np.array(first, dtype=np.int64), number


def check_room(n_distinct: int, n_tokens: int) -> None:
    """Log what the Gram matrix of the distinct positions and the features made of it take; DataError where that does not fit.

    8 bytes for each entry of the Gram matrix, which is factorised in place; 8 bytes for each feature of each position.
    """
    size = 8 * n_distinct**2 + 8 * n_tokens * n_distinct
    what = f"the Gram matrix of {n_distinct:,} distinct positions and the features of {n_tokens:,} positions"
    log.info("%s: at most %.1f GiB, some %.2g operations", what, size / 2**30, n_distinct**3 / 3)
    check_fits(size, what)


def factorise(gram: Floats, what: str, tolerance: float = EXACT) -> Factor:
    """Cholesky's method with complete pivoting (Higham 2002, section 10.3), O(N r^2), in the memory of `gram`.

    It ends when no entry of the rest's diagonal exceeds `tolerance` times the largest of `gram`: K - Phi Phi' is then positive
    semidefinite with entries of at most that size. DataError where `gram` is not finite, symmetric and positive semidefinite.
    """
    from scipy.linalg.lapack import dpstrf

    n, diagonal = len(gram), gram.diagonal().copy()
    low, high = float(gram.min(initial=0.0)), float(gram.max(initial=0.0))
    if not (np.isfinite(low) and np.isfinite(high)):
        raise DataError(f"{what}: its values must be finite; are features scaled?")
    largest = max(-low, high)
    check_symmetric(gram, max(tolerance, 1e-8) * largest, what)
    tests = np.random.default_rng(0).choice([-1.0, 1.0], (n, 3))
    wanted = gram @ tests
    order, rank = np.arange(n), 0
    if n:  # U' U of the transposed matrix, in place: the columns of U are the rows of the triangle
        small = tolerance * max(float(diagonal.max()), 0.0)
        upper, found, rank, _ = dpstrf(gram.T, tol=small, lower=0, overwrite_a=1)
        gram, order = upper.T, found.astype(np.int64) - 1
    places = np.empty(n, np.int64)
    places[order] = np.arange(n)
    factor = Factor(order[:rank], places, gram)
    _check_rest(factor, diagonal, wanted, tests, max(n, 10) * tolerance * largest, what)
    return factor


def check_symmetric(gram: Any, most: float, what: str) -> None:
    """DataError where some |k(a, b) - k(b, a)| of a matrix, an array or sparse, is larger than `most`."""
    step = 512 if isinstance(gram, np.ndarray) else max(gram.shape[0], 1)  # in pieces: no second matrix of that size
    for a in range(0, gram.shape[0], step):
        found = gram[a : a + step] - gram[:, a : a + step].T
        if np.abs(found if isinstance(found, np.ndarray) else found.data).max(initial=0.0) > most:
            raise DataError(f"{what}: it is not symmetric; k(a, b) must equal k(b, a)")


def _check_rest(found: Factor, diagonal: Floats, wanted: Floats, tests: Floats, most: float, what: str) -> None:
    """DataError unless Phi Phi' is the matrix: on its diagonal, and times a few vectors of signs."""
    rest, sums = diagonal.copy(), np.zeros((found.rank, tests.shape[1]))
    rows = [found.row(i) for i in range(len(diagonal))]
    for i, row in enumerate(rows):
        rest[i] -= row @ row
        sums[: len(row)] += row[:, None] * tests[i]
    missed = max((float(np.abs(row @ sums[: len(row)] - wanted[i]).max()) for i, row in enumerate(rows)), default=0.0)
    if max(-float(rest.min(initial=0.0)), missed) > most:
        raise DataError(f"{what}: it is not positive semidefinite, so it is no kernel (it has a negative eigenvalue)")
