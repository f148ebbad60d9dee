"""Support vector machines for data of which most have no label: the labels are learnt together with the classifier."""

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from structpred.errors import DataError, ParameterError
from structpred.models.base import NotFittedError, checked_C, seed_of
from structpred.models.bundles import read_model, write_model
from structpred.models.kernels.functions import Precomputed, resolve_kernel, restored_complete, saved
from structpred.models.kernels.spaces import KernelMatrix, Landmarks
from structpred.models.settings import settings_of
from structpred.nonconvex.names import resolve_solver, solvers
from structpred.nonconvex.search import Level, Solution, Solver
from structpred.runtime.memory import check_fits
from structpred.storage.bundles import Bundle
from structpred.storage.schema import (
    AnyOf,
    Array,
    Flag,
    ListOf,
    Number,
    OneOf,
    Plain,
    Record,
    TableOf,
    Text,
    Whole,
    array_of,
)

Floats = npt.NDArray[np.float64]
#: kernel values that are held at once when rows are scored
_BLOCK = 1 << 22
_LEVELS: tuple[Level, ...] = ("local", "eps-global", "global")  # from the weakest
_OBJECT = AnyOf((Text(), Record({"class": Text(), "settings": TableOf(Plain())})))


class SemiSupervisedSVM(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A kernel support vector machine that also finds the labels of the unlabelled training points.

    It minimises, over w, b and the labels yhat of the unlabelled points, which must satisfy the balance,

        1/2 |w|^2 + C sum_labelled V(y_i, h_i) + C2 sum_unlabelled V(yhat_i, h_i),    V(y, h) = max(0, 1 - y h),

    with h_i = <w, phi(x_i)> + b: the boundary goes where there are few points. The problem has many local optima, so the solver
    matters: the default one combines branch and bound, which may prove the optimum, with a search from labels to better ones.
    With more than two classes there is such a problem for each, against all others.

    Parameters
    ----------
    kernel : str, Kernel or callable
        As for `KernelChainLabeler`: "rbf", "linear", "polynomial", "precomputed" (X holds kernel values), an object such as
        ``RBF(gamma=10.0)``, or a function of two CSR matrices.
    C, C2 : float
        The weights of the losses of labelled and unlabelled points, > 0. Where C2 is at least a tenth of C, proofs are short.
    balance : "labelled", float, dict or None
        The share of each class among the unlabelled points: that among the labelled ones, a number for the second of two classes,
        or a table of classes. Rounded to whole points. None: anything; the best labels are then often of one class only.
    solver : str or Solver
        "staged", "branch_and_bound", "pdm", "ao", "cccp", "gradient", "local_search", "annealing", "printed_pdm", or an
        object such as ``BranchAndBound(max_inner=1_000_000)``.
    n_components : int, optional
        For many points: so many of them at random are landmarks, whose similarities are features in place of the kernel matrix
        (Nystroem's method); b is then regularised, too. Memory: 4 n n_components bytes; None: 8 n^2 bytes.
    random_state : int or RandomState, optional
        Seeds the solver and the choice of landmarks; None means 0.

    Attributes
    ----------
    classes_ : ndarray
        The classes in ascending order, without -1.
    transduction_ : ndarray (n,)
        The labels of the training points, the given ones and those that were found.
    objective_, lower_bound_ : float
        The objective, and what no labels can be below; of more than two classes the sums.
    level_ : str
        "global" or "eps-global" where branch and bound has closed: no labels are better, or none by more than its eps; else
        "local". Of more than two classes the weakest.
    history_ : list of dict
        A row for each improvement: inner problems solved until then, objective, event; "output", the class's number.
    n_inner_ : int
        Inner problems, each a support vector machine, that were solved.
    support_ : ndarray (n_support,)
        The numbers of the support vectors, or of the landmarks.
    dual_coef_, intercept_ : ndarray (n_outputs, n_support), (n_outputs,)
        beta and b: h(x) = sum_i beta_i k(x_i, x) + b.

    Raises
    ------
    DataError
        For X or y that cannot be used: no labelled point, one class only, a matrix or function that is no kernel.
    ParameterError
        For settings out of range, and a balance that is impossible.

    Examples
    --------
    >>> X = [[0.0], [0.3], [0.6], [2.0], [2.3], [2.6]]
    >>> model = SemiSupervisedSVM(C=10.0, C2=1.0).fit(X, [0, -1, -1, -1, -1, 1])
    >>> model.transduction_.tolist(), model.level_
    ([0, 0, 0, 1, 1, 1], 'global')
    """

    classes_: npt.NDArray[Any]
    transduction_: npt.NDArray[Any]
    n_features_in_: int

    def __init__(
        self,
        kernel: Any = "rbf",
        C: float = 1.0,
        C2: float = 1.0,
        *,
        balance: str | float | Mapping[Any, float] | None = "labelled",
        solver: str | Solver = "staged",
        n_components: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel, self.C, self.C2 = kernel, C, C2
        self.balance, self.solver, self.n_components, self.random_state = balance, solver, n_components, random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Find labels and classifier. y: (n,) classes; -1 or None is an unlabelled point."""
        C, C2, solver = checked_C(self.C), checked_C(self.C2, "C2"), resolve_solver(self.solver)
        rows, y, labelled = self._read(X, y)
        classes, codes = np.unique(y[labelled], return_inverse=True)
        if len(classes) < 2:
            found = f"one class only: {classes.tolist()}" if len(classes) else "no labelled point (-1 or None is unlabelled)"
            raise DataError(f"y: expected labelled points of at least two classes, got {found}")
        space = self._space(rows)
        shares = self._shares(classes, codes)
        solutions: list[Solution] = []
        for k in range(len(classes)) if len(classes) > 2 else [1]:
            signs = np.zeros(len(y), np.int64)
            signs[labelled] = np.where(codes == k, 1, -1)
            positives = None if shares is None else round(shares[k] * int((~labelled).sum()))
            solutions.append(solver.solve(space.problem(signs, C, C2, positives), seed_of(self.random_state)))
        self.classes_, self._kernel = classes, space.kernel
        self._keep(solutions, space, rows)
        if len(classes) == 2:
            chosen = (solutions[0].labels > 0).astype(int)
        else:
            chosen = np.array([solution.inner.h[~labelled] for solution in solutions]).argmax(axis=0)
        self.transduction_ = np.empty(len(y), classes.dtype)
        self.transduction_[labelled], self.transduction_[~labelled] = y[labelled], classes[chosen]
        return self

    def _read(self, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """(rows, y, which points are labelled)."""
        given: Any = y if y is None else np.asarray(y)
        missing = None
        if given is not None and given.dtype == object and given.ndim == 1:
            missing = np.array([label is None for label in given])
            known = given[~missing]
            if missing.any() and len(known):
                given = given.copy()
                given[missing] = known[0]
                given = np.array(given.tolist())
        try:
            rows, given = validate_data(self, X, given, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
            check_classification_targets(given)
        except ValueError as error:
            raise DataError(str(error)) from error
        labelled = ~missing if missing is not None else np.ones(len(given), bool)
        if given.dtype.kind in "iuf":
            labelled &= given != -1
        return rows, given, labelled

    def _space(self, rows: Any) -> KernelMatrix | Landmarks:
        """The kernel's space: its matrix, or the features that landmarks give."""
        kernel = resolve_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            if rows.shape[0] != rows.shape[1] or self.n_components is not None:
                expected = "a square matrix of kernel values in fit, and no n_components"
                raise DataError(f"kernel='precomputed': expected {expected}, got shape {rows.shape}")
            return KernelMatrix(_dense(rows), kernel)
        thin, n = sparse.csr_array(rows), rows.shape[0]
        kernel = kernel.fitted(thin)
        if self.n_components is not None:
            return Landmarks(thin, kernel, self.n_components, seed_of(self.random_state))
        check_fits(16 * n * n, f"the kernel matrix of {n:,} points; n_components=1000 takes features in its place, and")
        return KernelMatrix(kernel(thin, thin), kernel)

    def _shares(self, classes: npt.NDArray[Any], codes: npt.NDArray[np.int64]) -> dict[int, float] | None:
        """The share of each class, by its number; ParameterError for a balance that is impossible."""
        if self.balance is None:
            return None
        if isinstance(self.balance, str) and self.balance == "labelled":
            return {k: float((codes == k).mean()) for k in range(len(classes))}
        table: Any = self.balance
        if not isinstance(table, Mapping) and len(classes) == 2 and _is_share(table):
            table = {classes[0]: 1.0 - table, classes[1]: table}
        if not isinstance(table, Mapping) or not all(_is_share(share) for share in table.values()):
            expected = "a share in [0, 1]" if len(classes) == 2 else "a table of shares in [0, 1]"
            raise ParameterError(f"balance: expected 'labelled', None or {expected}, got {self.balance!r}")
        if set(table) != set(classes.tolist()):
            raise ParameterError(f"balance: expected a share for each of {classes.tolist()}, got {dict(table)}")
        if abs(sum(table.values()) - 1.0) > 1e-6:
            raise ParameterError(f"balance: the shares must sum to 1, got {sum(table.values()):.6g}")
        return {k: float(table[label]) for k, label in enumerate(classes.tolist())}

    def _keep(self, found: list[Solution], space: KernelMatrix | Landmarks, rows: Any) -> None:
        """Set the fitted attributes."""
        self.support_, self.dual_coef_, self.intercept_ = space.expansion([solution.inner for solution in found])
        self.objective_ = float(sum(solution.objective for solution in found))
        self.lower_bound_ = float(sum(solution.lower_bound for solution in found))
        self.level_ = min((solution.level for solution in found), key=_LEVELS.index)
        self.history_ = [{**row, "output": k} for k, solution in enumerate(found) for row in solution.history]
        self.n_inner_ = sum(solution.n_inner for solution in found)
        self._rows = None if isinstance(self._kernel, Precomputed) else sparse.csr_array(rows)[self.support_]

    def decision_function(self, X: Any) -> Floats:
        """(n,) h for two classes, positive for the second; else (n, n_classes)."""
        self._check_fitted()
        try:
            rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        except ValueError as error:
            raise DataError(str(error)) from error
        beta = self.dual_coef_.T
        if self._rows is None:
            h = np.asarray(_dense(rows)[:, self.support_] @ beta) + self.intercept_
        else:
            thin, size = sparse.csr_array(rows), max(1, _BLOCK // max(1, len(self.support_)))
            blocks = [self._kernel(thin[a : a + size], self._rows) @ beta for a in range(0, thin.shape[0], size)]
            h = np.vstack(blocks) + self.intercept_
        return np.asarray(h[:, 0] if len(self.intercept_) == 1 else h)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The classes (n,)."""
        h = self.decision_function(X)
        return np.asarray(self.classes_[(h > 0.0).astype(int) if h.ndim == 1 else h.argmax(axis=1)])

    def _check_fitted(self) -> None:
        if not hasattr(self, "dual_coef_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(X, y) first, or load a model")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one file, atomically, without pickle."""
        self._check_fitted()
        write_model(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model file; ModelFileError for anything that is not a whole, unaltered model of this class."""
        model = read_model(path, {cls.__name__: cls}, None, only=True)
        assert isinstance(model, cls)
        return model

    _HEADER: ClassVar[Record] = Record(
        {
            "estimator": Text(),
            "kernel": _OBJECT,
            "fitted_kernel": _OBJECT,
            "solver": _OBJECT,
            "settings": Record(
                {"C": Number(), "C2": Number(), "balance": Plain(), "n_components": Plain(), "random_state": Plain()}
            ),
            "classes": ListOf(AnyOf((Text(), Flag(), Whole(-(2**63), 2**63 - 1), Number())), 2),
            "level": OneOf(_LEVELS),
            "objective": Number(),
            "lower_bound": Number(),
            "n_inner": Whole(),
            "n_features": Whole(1),
            "n": Whole(2),
            "rows": Flag(),
            "history": ListOf(TableOf(Plain())),
            "transduction": ListOf(AnyOf((Text(), Flag(), Whole(-(2**63), 2**63 - 1), Number()))),
        }
    )

    def _to_bundle(self) -> Bundle:
        balance = self.balance if isinstance(self.balance, str | int | float) or self.balance is None else "(give it again)"
        state = self.random_state if isinstance(self.random_state, int) else None
        head = {
            "estimator": type(self).__name__, "kernel": saved(self.kernel), "fitted_kernel": saved(self._kernel),
            "solver": settings_of(self.solver),
            "settings": {"C": float(self.C), "C2": float(self.C2), "balance": balance,
                         "n_components": self.n_components, "random_state": state},
            "classes": self.classes_.tolist(), "level": self.level_, "objective": self.objective_,
            "lower_bound": self.lower_bound_, "n_inner": self.n_inner_, "n_features": self.n_features_in_,
            "n": len(self.transduction_), "rows": self._rows is not None, "history": self.history_,
            "transduction": self.transduction_.tolist(),
        }  # fmt: skip
        arrays = {"beta": self.dual_coef_, "b": self.intercept_, "support": self.support_.astype(np.int64)}
        if self._rows is not None:
            parts = (self._rows.indptr.astype(np.int64), self._rows.indices.astype(np.int64), self._rows.data)
            arrays |= dict(zip(("indptr", "indices", "values"), parts, strict=True))
        return Bundle(head, arrays, {})

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        solver, kernel = head["solver"], restored_complete(head["fitted_kernel"])
        if isinstance(solver, dict):
            solver = {kind.__name__: kind for kind in solvers().values()}[solver["class"]](**solver["settings"])
        own = head["kernel"] if isinstance(head["kernel"], str) else kernel
        model = cls(own, solver=solver, **head["settings"])
        outputs = 1 if len(head["classes"]) == 2 else len(head["classes"])
        n, d, arrays = head["n"], head["n_features"], bundle.arrays
        model._kernel, model.n_features_in_ = kernel, d
        model.classes_, model.transduction_ = np.array(head["classes"]), np.array(head["transduction"])
        if len(model.transduction_) != n or not np.isin(model.transduction_, model.classes_).all():
            raise ValueError("transduction: expected a class for each point")
        model.support_ = array_of(arrays, "support", Array(("int64",), (None,), below=n)).copy()
        model.dual_coef_ = array_of(arrays, "beta", Array(("float64",), (outputs, len(model.support_)))).copy()
        model.intercept_ = array_of(arrays, "b", Array(("float64",), (outputs,))).copy()
        for name in ("level", "objective", "lower_bound", "n_inner", "history"):
            setattr(model, f"{name}_", head[name])
        model._rows = _read_rows(arrays, len(model.support_), d) if head["rows"] else None
        if head["rows"] == isinstance(kernel, Precomputed) or (not head["rows"] and d != n):
            raise ValueError("the kernel does not fit the rows")
        return model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.pairwise = True, self.kernel == "precomputed"
        return tags


def _read_rows(arrays: Mapping[str, npt.NDArray[Any]], n: int, d: int) -> Any:
    """The rows of the support vectors; ValueError where their parts do not fit."""
    indptr = array_of(arrays, "indptr", Array(("int64",), (n + 1,)))
    indices = array_of(arrays, "indices", Array(("int64",), (None,), below=d))
    values = array_of(arrays, "values", Array(("float64",), (len(indices),)))
    if indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr) < 0).any():
        raise ValueError(f"indptr: expected ascending numbers from 0 to {len(indices)}")
    return sparse.csr_array((values, indices, indptr), shape=(n, d))


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(0 <= value <= 1)


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
