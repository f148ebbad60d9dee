"""Gram matrices: checked before anything is trained with them, in kernel form; or taken apart into features."""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.models.kernels.functions import B1Spline, Kernel, Mean, Precomputed, Rows, kernels, name_of
from structpred.runtime.memory import check_fits
from structpred.task.function_space import Gram

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

    def cut(self, n_components: float) -> "Factor":
        """With its first features only: so many, or for a number below 1 those that have this share of the trace."""
        gained = np.zeros(self.rank)
        for row in map(self.row, range(len(self.places))):
            gained[: len(row)] += row**2
        enough = np.searchsorted(np.cumsum(gained), n_components * gained.sum()) + 1
        return self._replace(pivots=self.pivots[: enough if n_components < 1 else int(n_components)])


def solved(triangle: Floats, right: Floats, transposed: bool = False) -> Floats:
    """L^-1 B of a lower triangle L; transposed: L^-T B."""
    from scipy.linalg import solve_triangular

    if not len(right):
        return right
    return np.asarray(solve_triangular(triangle, right, lower=True, trans="T" if transposed else "N", check_finite=False))


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


def check_factor_fits(n_distinct: int, n_tokens: int) -> None:
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


#: rows that are computed at once, in float64
BLOCK = 512
#: a matrix is symmetric, and has no negative eigenvalue, up to these shares of its largest entry and eigenvalue
ASYMMETRY, NEGATIVE = 1e-5, 1e-5
#: from this size on only the smallest eigenvalue is looked for, by Lanczos' method
LARGE = 500


def check_room(of: Sequence[Kernel], n: int) -> None:
    """DataError, with what to do, where the Gram matrices of n positions do not fit; sparse ones are counted by their share."""
    size = sum(int(8 * n * n * kernel.share) if isinstance(kernel, B1Spline) else 4 * n * n for kernel in of)
    what = f"{len(of)} Gram matrices of {n:,} positions"
    log.info("%s: about %.2f GiB", what, size / 2**30)
    try:
        check_fits(size, what)
    except DataError as error:
        raise DataError(f"{error}; or give n_components=1000, say: coordinates by as many landmarks (Nystroem)") from None


def gram_of(kernel: Kernel, rows: Rows) -> Gram:
    """The Gram matrix over the rows; DataError, with the name of the kernel, where it is none."""
    from scipy import sparse

    n, is_sparse = rows.shape[0], isinstance(kernel, B1Spline)
    blocks: list[Any] = []
    full = np.empty((0 if is_sparse else n, n), np.float32)
    for a in range(0, n, BLOCK):
        found = kernel(rows[a : a + BLOCK], rows).astype(np.float32)
        if is_sparse:
            blocks.append(sparse.csr_array(found))
        else:
            full[a : a + BLOCK] = found
    gram = sparse.vstack(blocks, format="csr") if is_sparse else full
    return checked_gram(gram, f"the matrix of kernel {name_of(kernel)} over the training positions", kernel)


def checked_gram(gram: Gram, what: str, kernel: Kernel) -> Gram:
    """The matrix, symmetric and positive semidefinite; DataError where it is not."""
    from scipy import sparse

    values = gram if isinstance(gram, np.ndarray) else gram.data
    if not np.isfinite(values).all():
        raise DataError(f"{what}: its values must be finite; are features scaled?")
    largest = float(np.abs(values).max(initial=0.0))
    check_symmetric(gram, ASYMMETRY * largest, what)
    if is_definite(kernel):
        return gram
    low, high = _extremes(gram)
    if low >= -NEGATIVE * max(high, largest):
        return gram
    of = kernel.kernels if isinstance(kernel, Mean) else [kernel]
    known = any(isinstance(one, B1Spline) for one in of) and all(isinstance(one, B1Spline) or is_definite(one) for one in of)
    if not known:  # that it need not be
        raise DataError(f"{what}: it is not positive semidefinite, so it is no kernel (it has the eigenvalue {low:.3g})")
    log.info("%s: its smallest eigenvalue is %.3g, which is added to its diagonal", what, low)
    added = np.float32(-low * (1.0 + 1e-3))
    if isinstance(gram, np.ndarray):
        gram[np.diag_indices(len(gram))] += added
        return gram
    found = (gram + sparse.diags_array(np.full(gram.shape[0], added))).tocsr()
    found.sort_indices()
    return found


def is_definite(kernel: Kernel) -> bool:
    """Whether the kernel is known to be positive semidefinite."""
    if isinstance(kernel, Mean):
        return all(is_definite(one) for one in kernel.kernels)
    return type(kernel) in set(kernels().values()) - {B1Spline, Precomputed}


def _extremes(gram: Gram) -> tuple[float, float]:
    """The smallest and the largest eigenvalue."""
    n = gram.shape[0]
    if n <= LARGE:
        full = gram if isinstance(gram, np.ndarray) else gram.toarray()
        values = np.linalg.eigvalsh(full.astype(np.float64)) if n else np.zeros(1)
        return float(values[0]), float(values[-1])
    from scipy.sparse.linalg import eigsh

    first = np.random.default_rng(0).normal(size=n).astype(np.float32)
    low, high = (
        eigsh(gram, k=1, which=which, tol=1e-3, v0=first, maxiter=n, return_eigenvectors=False)[0] for which in ("SA", "LA")
    )
    return float(low), float(high)


def stacked(sequences: Sequence[Sequence[Any]], k: int, n_columns: int | None) -> tuple[Any, Integers]:
    """(the values of kernel k for all positions, as float32 or CSR; the length of each sequence).

    DataError, naming the sample, for anything but numbers of the right shape.
    """
    from scipy import sparse

    parts: list[Any] = []
    lengths: list[int] = []
    for i, sequence in enumerate(sequences):
        part = sequence[k] if sparse.issparse(sequence[k]) else np.asarray(sequence[k])
        if part.ndim != 2 or part.dtype.kind not in "fiub":
            raise DataError(f"sample {i}, kernel {k}: expected an array of kernel values (positions, training positions)")
        n_columns = part.shape[1] if n_columns is None else n_columns
        if part.shape[1] != n_columns:
            raise DataError(f"sample {i}, kernel {k}: expected a column per training position, {n_columns}, got {part.shape[1]}")
        parts.append(part)
        lengths.append(part.shape[0])
    if any(sparse.issparse(part) for part in parts):
        found = sparse.vstack(parts, format="csr").astype(np.float32)
        found.sum_duplicates()
        return found, np.array(lengths)
    return np.concatenate([np.empty((0, n_columns or 0)), *parts]).astype(np.float32), np.array(lengths)
