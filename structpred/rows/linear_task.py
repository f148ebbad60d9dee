"""Linear classification and regression as training sets: passes over CSR rows, for trainers of margins and of scalar losses."""

import hashlib
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from structpred.core.group_scales import GroupScales, Scale
from structpred.core.requirements import met
from structpred.core.sparse import SparseVector
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError, MissingCapabilityError
from structpred.task.instance_subset import checked_rows
from structpred.task.steps import Step, Terms, checked_shares
from structpred.task.task_checks import checked_weights


class RowTask:
    """What training sets of rows share: rows a_i as CSR with float64 weights, and a target for the score <w, a_i> of each.

    Attributes
    ----------
    indptr, indices, values : ndarray
        The rows a_i as CSR: int64, int32 and float64.
    targets : ndarray (n,)
        What scalar losses compare the scores with.
    """

    certified = True
    dtype = np.dtype(np.float64)
    #: what trainers may ask for, of TASK_CAPABILITIES and of inference
    capabilities = frozenset({"rows"})
    #: for errors: what it is, and what has more capabilities
    _kind, _instead = "a task of rows", "only scalar losses see its scores"

    def _keep(self, rows: Any, targets: Floats, factors: Floats | None, sample_weight: Any, intercept: float) -> None:
        """Keep the rows (checked CSR), each times its factor, with a constant feature after the others unless it is 0."""
        from scipy import sparse

        if intercept:
            constant: Any = np.full((rows.shape[0], 1), float(intercept))
            rows = sparse.hstack([rows, constant], format="csr")
        self.dim = int(rows.shape[1])
        self.indptr = rows.indptr.astype(np.int64)
        self.indices = rows.indices.astype(np.int32)
        self.values = rows.data if factors is None else rows.data * np.repeat(factors, np.diff(self.indptr))
        self.targets = targets
        self.sample_weight = checked_weights(sample_weight, len(targets))
        ends = [0, self.dim - 1, self.dim] if intercept else [0, self.dim]
        self.groups = np.array(ends, dtype=np.int64)
        self.group_names: Sequence[str] = ["features", "intercept"] if intercept else ["features"]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1

    def row(self, i: int) -> tuple[Integers, Floats]:
        """(indices, values) of row i."""
        start, stop = self.indptr[i], self.indptr[i + 1]
        return self.indices[start:stop].astype(np.int64), self.values[start:stop]

    def require(self, needs: Sequence[str | tuple[str, ...]], who: str) -> None:
        """Raise MissingCapabilityError unless the task's `capabilities` are enough."""
        if not met(needs, self.capabilities):
            lacking = [need for need in needs if not met([need], self.capabilities)]
            names = ", ".join(need if isinstance(need, str) else " or ".join(need) for need in lacking)
            offered = " and ".join(sorted(self.capabilities))
            raise MissingCapabilityError(f"{who} needs {names}, but {self._kind} offers {offered} alone: {self._instead}")

    def margins(self, w: Floats) -> Floats:
        """<w, a_i> of every row; of signed rows y_i <w, x_i>."""
        from structpred.rows._scalar_kernels import row_dots

        out = np.empty(len(self))
        row_dots(self.indptr, self.indices, self.values, np.ascontiguousarray(w, dtype=np.float64), out)
        return out

    def combined(self, shares: Floats) -> Floats:
        """sum_i shares_i a_i: the adjoint of `margins`."""
        from structpred.rows._scalar_kernels import add_rows

        out = np.zeros(self.dim)
        add_rows(self.indptr, self.indices, self.values, checked_shares(shares, len(self)), out)
        return out

    def squared_norms(self, scale: Floats | None = None) -> Floats:
        """sum_j scale_j a_ij^2 of every row, scale 1 if not given."""
        from structpred.rows._scalar_kernels import row_dots

        out, factors = np.empty(len(self)), np.ones(self.dim) if scale is None else np.ascontiguousarray(scale, np.float64)
        row_dots(self.indptr, self.indices, self.values**2, factors, out)
        return out

    def sample_with_priors(self) -> None:
        """There are no fixed scores."""
        return None

    def fingerprint(self) -> str:
        """A digest of rows, targets and weights."""
        digest = hashlib.sha256(repr((type(self).__name__, self.dim, self.groups.tolist())).encode())
        for array in (self.indptr, self.indices, self.values, self.targets, self.sample_weight):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()


class LinearTask(RowTask):
    """A training set of rows x_i with signs y_i of +1 or -1: the outputs of a row are the two signs, the features y x / 2.

    The margin-rescaled hinge is then the hinge of support vector machines, H_i(w) = max(0, loss_weight - y_i <w, x_i>), and
    the truth's features minus the other sign's are the signed row y_i x_i. Weights are float64.

    Parameters
    ----------
    X : 2-d array or SciPy sparse matrix, (n, d)
        Finite numbers. A dense matrix is stored as CSR, too.
    y : array of +1 and -1, (n,)
    sample_weight : array, optional
        One number >= 0 per row.
    intercept : float
        The value of a constant feature after the others, whose weight is the intercept divided by it; 0: none. The weight is
        a group of its own, "intercept".

    Attributes
    ----------
    indptr, indices, values : ndarray
        The signed rows y_i x_i as CSR: int64, int32 and float64.
    targets : ndarray (n,)
        Ones: scalar losses see the margin y_i <w, x_i> in place of the score.

    Raises
    ------
    DataError
        For rows and signs that do not fit each other, other signs, numbers that are not finite, no rows at all.

    Examples
    --------
    >>> task = LinearTask([[1.0, 0.0], [0.0, 2.0]], [1, -1])
    >>> task.violations(np.array([0.5, 0.5]), 1.0).tolist()
    [0.5, 2.0]
    """

    capabilities = frozenset({"argmax", "signed_rows", "rows"})
    _kind = "a linear task"
    _instead = 'its log loss is surrogate="logistic"; with an oracle over two labels (oracles.multiclass) and Task, there is more'

    def __init__(self, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None, intercept: float = 0.0) -> None:
        rows, signs = _checked(X), np.asarray(y, dtype=np.float64)
        if signs.shape != (rows.shape[0],):
            raise DataError(f"y: expected one sign per row, shape ({rows.shape[0]},), got shape {signs.shape}")
        if (wrong := np.flatnonzero(np.abs(signs) != 1.0)).size:
            raise DataError(f"y: expected +1 or -1, got {signs[wrong[0]]:g} for sample {wrong[0]}")
        self._keep(rows, np.ones(len(signs)), signs, sample_weight, intercept)

    def step(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """The sign with the larger score plus loss of row i, at the weights scale * w; the truth where they are equal."""
        indices, values = self.row(i)
        factor, own = (scale.of(indices), 1.0) if isinstance(scale, GroupScales) else (1.0, scale)
        violation = loss_weight - own * float(factor * w[indices] @ values)
        if violation > 0.0:
            return Step(SparseVector(indices, values), 1.0, violation, violation)
        return Step(SparseVector(indices[:0], values[:0]), 0.0, 0.0, 0.0)

    def violations(self, w: Vector, loss_weight: float) -> Floats:
        """The hinge of every row."""
        return np.maximum(loss_weight - self.margins(w.astype(np.float64, copy=False)), 0.0)

    def terms(self, w: Vector, rows: ArrayLike, shares: ArrayLike | None = None, *, loss_weight: float = 1.0) -> Terms:
        """The steps of these rows summed up, weighed by `shares` (ones if not given), in one pass over the rows."""
        from structpred.rows._scalar_kernels import hinge_terms

        at = checked_rows(rows, len(self))
        weights, difference, violations = checked_shares(shares, len(at)), np.zeros(self.dim), np.empty(len(at))
        dense = np.ascontiguousarray(w, dtype=np.float64)
        total = hinge_terms(self.indptr, self.indices, self.values, dense, at, weights, loss_weight, difference, violations)
        return Terms(difference, loss_weight * total, (violations > 0.0).astype(np.float64), violations, violations.copy())


class RegressionTask(RowTask):
    """A training set of rows x_i with a number y_i each, for scalar losses alone: H_i(w) = phi(<w, x_i>; y_i).

    Parameters
    ----------
    X, sample_weight, intercept
        As for LinearTask.
    y : array of finite numbers, (n,)

    Raises
    ------
    DataError
        For rows and targets that do not fit each other, numbers that are not finite, no rows at all.

    Examples
    --------
    >>> task = RegressionTask([[1.0, 0.0], [0.0, 2.0]], [0.5, -3.0])
    >>> task.margins(np.array([1.0, 1.0])).tolist(), task.targets.tolist()
    ([1.0, 2.0], [0.5, -3.0])
    """

    _kind = "a regression task"
    _instead = "it is for scalar losses (Squared, Absolute, Huber) and trainers that minimise these, such as SDCA"

    def __init__(self, X: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None, intercept: float = 0.0) -> None:
        rows = _checked(X)
        try:
            targets = np.array(y, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"y: expected numbers: {error}") from error
        if targets.shape != (rows.shape[0],):
            raise DataError(f"y: expected one number per row, shape ({rows.shape[0]},), got shape {targets.shape}")
        if (wrong := np.flatnonzero(~np.isfinite(targets))).size:
            raise DataError(f"y: expected finite numbers, got {targets[wrong[0]]} for sample {wrong[0]}")
        self._keep(rows, targets, None, sample_weight, intercept)

    def step(self, *args: Any, **options: Any) -> NoReturn:
        """There are no two outputs with a margin between them: refused, and so are `violations` and `terms`."""
        raise MissingCapabilityError(f"{self._kind} has no margins: {self._instead}")

    violations = terms = step


def _checked(X: Any) -> Any:
    """CSR with sorted, unique indices and float64 values; the matrix given stays as it was."""
    from scipy import sparse

    try:
        rows: Any = sparse.csr_matrix(X, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise DataError(f"X: expected a 2-d matrix of numbers: {error}") from error
    if not rows.shape[0] or not rows.shape[1]:
        raise DataError(f"X: expected at least one row and one column, got shape {rows.shape}")
    if rows.shape[1] >= np.iinfo(np.int32).max:
        raise DataError(f"X: expected fewer than 2^31 columns, got {rows.shape[1]:,}")
    if (wrong := np.flatnonzero(~np.isfinite(rows.data))).size:
        row = int(np.searchsorted(rows.indptr, wrong[0], side="right")) - 1
        raise DataError(f"X: sample {row} has a value that is not finite ({rows.data[wrong[0]]})")
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
