"""Gram matrices for the kernel form: float32, dense or sparse, checked before anything is trained with them."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError
from structpred.models.kernels.functions import B1Spline, Kernel, Rows, name_of
from structpred.models.kernels.gram import check_symmetric
from structpred.models.kernels.listed import Mean, is_definite
from structpred.runtime.memory import check_fits
from structpred.task.function_space import Gram

log = logging.getLogger("structpred.models")

#: rows that are computed at once, in float64
BLOCK = 512
#: a matrix is symmetric, and has no negative eigenvalue, up to these shares of its largest entry and eigenvalue
ASYMMETRY, NEGATIVE = 1e-5, 1e-5
#: from this size on only the smallest eigenvalue is looked for, by Lanczos' method
LARGE = 500


def check_room(kernels: Sequence[Kernel], n: int) -> None:
    """DataError, with what to do, where the Gram matrices of n positions do not fit; sparse ones are counted by their share."""
    size = sum(int(8 * n * n * kernel.share) if isinstance(kernel, B1Spline) else 4 * n * n for kernel in kernels)
    what = f"{len(kernels)} Gram matrices of {n:,} positions"
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
    if not _may_lack(kernel):
        raise DataError(f"{what}: it is not positive semidefinite, so it is no kernel (it has the eigenvalue {low:.3g})")
    log.info("%s: its smallest eigenvalue is %.3g, which is added to its diagonal", what, low)
    return _with_diagonal(gram, -low * (1.0 + 1e-3))


def _may_lack(kernel: Kernel) -> bool:
    """Whether a kernel is known not to be positive semidefinite."""
    of = kernel.kernels if isinstance(kernel, Mean) else [kernel]
    return any(isinstance(one, B1Spline) for one in of) and all(isinstance(one, B1Spline) or is_definite(one) for one in of)


def _with_diagonal(gram: Gram, added: float) -> Gram:
    from scipy import sparse

    if isinstance(gram, np.ndarray):
        gram[np.diag_indices(len(gram))] += np.float32(added)
        return gram
    found = (gram + sparse.diags_array(np.full(gram.shape[0], added, np.float32))).tocsr()
    found.sort_indices()
    return found


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


def stacked(sequences: Sequence[Sequence[Any]], k: int, n_columns: int | None) -> tuple[Any, npt.NDArray[np.int64]]:
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
            raise DataError(
                f"sample {i}, kernel {k}: expected a column for each training position, {n_columns}, got {part.shape[1]}"
            )
        parts.append(part)
        lengths.append(part.shape[0])
    if any(sparse.issparse(part) for part in parts):
        found = sparse.vstack(parts, format="csr").astype(np.float32)
        found.sum_duplicates()
        return found, np.array(lengths)
    return np.concatenate([np.empty((0, n_columns or 0)), *parts]).astype(np.float32), np.array(lengths)
