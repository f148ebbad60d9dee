"""What kernel machines share that choose labels, states or points: the kernel matrix, scores of new rows, and the file."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from structpred.core.result import History
from structpred.core.types import AnyArray, Floats, Integers
from structpred.errors import DataError, ParameterError
from structpred.models.base import seed_of
from structpred.models.bundles import CLASS, COMMON, OBJECT, computed, read_own, restored, save
from structpred.models.kernels.functions import Kernel, Precomputed, resolve_kernel, restored_complete, saved
from structpred.models.linear.similarities import RandomFeatures
from structpred.models.settings import settings_of
from structpred.models.sklearn_bridge import NotFittedError, refusals
from structpred.nonconvex.latent import LatentProblem
from structpred.nonconvex.problem import FeatureProblem, Inner, SemiSupervisedProblem
from structpred.nonconvex.ramp import RampFeatureProblem, RampLossProblem
from structpred.nonconvex.search import Level, Solution, Solver, solvers
from structpred.runtime.memory import check_fits
from structpred.runtime.settings import checked_whole
from structpred.runtime.standard_error import say
from structpred.storage.bundles import Bundle
from structpred.storage.schema import (
    Array,
    Field,
    Flag,
    ListOf,
    Number,
    OneOf,
    Record,
    Spec,
    Text,
    Whole,
    array_of,
    maybe,
)
from structpred.trainers.running.progress import checked_verbose

#: kernel values that are held at once
_BLOCK = 1 << 22


class KernelMatrix:
    """The kernel matrix of the training points."""

    #: the problem of points without labels, and that of points that may be discarded
    problem, ramp_problem = SemiSupervisedProblem, RampLossProblem

    def __init__(self, values: Any, kernel: Kernel) -> None:
        self.values, self.kernel = values, kernel

    def expansion(self, found: list[Inner]) -> tuple[Integers, Floats, Floats]:
        """(support vectors, their coefficients, offsets)."""
        beta = np.array([inner.beta for inner in found])
        support = np.flatnonzero(beta.any(axis=0))
        return support, beta[:, support], np.array([inner.b for inner in found])


class Columns:
    """Features in place of the kernel matrix, as float32.

    kernel: what scores new rows. support: the training rows whose kernel values it needs; None: it transforms rows to features.
    turn: from kernel values to features; None where they are the same.
    """

    problem, ramp_problem = FeatureProblem, RampFeatureProblem

    def __init__(self, values: Any, kernel: Any, support: Integers | None = None, turn: Floats | None = None) -> None:
        self.values, self.kernel, self.support, self.turn = values, kernel, support, turn

    def expansion(self, found: list[Inner]) -> tuple[Integers, Floats, Floats]:
        """(landmarks, their coefficients or those of the features, offsets)."""
        from structpred.nonconvex._dual_kernels import weights

        w = np.array([weights(self.values, inner.beta) for inner in found])
        return self.from_weights(w, np.array([inner.beta.sum() for inner in found]))

    def from_weights(self, w: Floats, b: Floats) -> tuple[Integers, Floats, Floats]:
        """As `expansion`, for weights of the features (n_outputs, m) and offsets."""
        support = np.zeros(0, np.int64) if self.support is None else self.support
        return support, w if self.turn is None else w @ self.turn.T, b


def landmarks(rows: Any, kernel: Kernel, n_components: Any, seed: int) -> Columns:
    """phi(x) = S^-1/2 U' k(landmarks, x) with k(landmarks, landmarks) = U S U' (Williams & Seeger 2001)."""
    n, size = rows.shape[0], min(checked_whole(n_components, "n_components"), rows.shape[0])
    check_fits(8 * n * size, f"{size:,} features of {n:,} points")
    chosen: Integers = np.sort(np.random.default_rng(seed).choice(n, size, replace=False))
    base = rows[chosen]
    values, vectors = np.linalg.eigh(kernel(base, base))
    kept = values > 1e-8 * values[-1]
    turn = vectors[:, kept] / np.sqrt(values[kept])
    features, step = np.empty((n, int(kept.sum())), np.float32), max(1, _BLOCK // size)
    for a in range(0, n, step):
        features[a : a + step] = kernel(rows[a : a + step], base) @ turn
    return Columns(features, kernel, chosen, turn)


Problem = TypeVar("Problem", SemiSupervisedProblem, LatentProblem)
LEVELS: tuple[Level, ...] = ("local", "eps-global", "global")  # from the weakest


@dataclass(eq=False, repr=False)
class KernelMachine(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """The parent of classifiers h_k(x) = sum_i beta_ki k(x_i, x) + b_k that come with a level of proof.

    A child is a dataclass, too, whose fields are further settings, and its `fit` calls `_read`, `_space` and `_keep`.
    """

    kernel: Any = "rbf"
    C: float = 1.0
    _: KW_ONLY
    solver: Any = "staged"
    n_components: int | None = None
    random_state: Any = None
    verbose: int = 0

    classes_: AnyArray = field(init=False)
    n_features_in_: int = field(init=False)
    _kernel: Any = field(init=False)
    _rows: Any = field(init=False)

    _HEADER: ClassVar[Record]
    #: the parent of the solvers of its problem
    _SOLVER: ClassVar[Any] = Solver

    @abstractmethod
    def fit(self, X: Any, y: Any) -> Self:
        """Train. y: (n,) classes."""

    def _read(self, X: Any, y: Any) -> tuple[Any, AnyArray]:
        """X, dense or CSR, and y, one class for each row; DataError for anything else."""
        with refusals():
            rows, given = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
            check_classification_targets(given)
        return rows, np.asarray(given)

    def _space(self, rows: Any) -> KernelMatrix | Columns:
        """The kernel's space: its matrix, or the features that random directions or landmarks give."""
        n_components = self.n_components
        if isinstance(self.kernel, RandomFeatures):
            if n_components is not None:
                raise ParameterError("n_components: there are no landmarks of RandomFeatures; give their own n_components")
            phi = RandomFeatures(**self.kernel.get_params()).fit(_dense(rows))
            return Columns(phi.transform(_dense(rows)), phi)
        kernel = resolve_kernel(self.kernel)
        if isinstance(kernel, Precomputed):
            if rows.shape[0] != rows.shape[1] or n_components is not None:
                expected = "a square matrix of kernel values in fit, and no n_components"
                raise DataError(f"kernel='precomputed': expected {expected}, got shape {rows.shape}")
            return KernelMatrix(_dense(rows), kernel)
        thin, n = sparse.csr_array(rows), rows.shape[0]
        kernel = kernel.fitted(thin)
        if n_components is not None:
            return landmarks(thin, kernel, n_components, seed_of(self.random_state))
        check_fits(16 * n * n, f"the kernel matrix of {n:,} points; n_components=1000 takes features in its place, and")
        return KernelMatrix(kernel(thin, thin), kernel)

    def _shown(self, problem: Problem) -> Problem:
        """The problem; with verbose=1 each better solution that a solver finds is a line on standard error."""
        if checked_verbose(self.verbose):
            problem.told = _tell
        return problem

    def _keep_report(self, found: Solution) -> None:
        """Set what the solver says. That no objective is below zero is no bound that it has found."""
        self.objective_, self.level_ = found.objective, found.level
        self.lower_bound_ = found.lower_bound if found.lower_bound > 0.0 else None
        self.history_, self.n_inner_ = History(found.history), found.n_inner

    def _keep(self, expansion: tuple[Integers, Floats, Floats], kernel: Any, rows: Any) -> None:
        """Set what is needed to score: the numbers of support vectors or landmarks, (n_outputs, n_support), (n_outputs,)."""
        self.support_, self.dual_coef_, self.intercept_ = expansion
        self._kernel, self._n_rows = kernel, rows.shape[0]
        self._rows = None if isinstance(kernel, Precomputed | RandomFeatures) else sparse.csr_array(rows)[self.support_]

    def _scores(self, X: Any) -> Floats:
        """(n, n_outputs)."""
        self._check_fitted()
        with refusals():
            rows = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        beta, step = self.dual_coef_.T, max(1, _BLOCK // max(1, self.dual_coef_.shape[1]))
        if isinstance(self._kernel, Precomputed):
            return np.asarray(_dense(rows)[:, self.support_] @ beta) + self.intercept_
        if isinstance(self._kernel, RandomFeatures):
            parts = [self._kernel.transform(_dense(rows[a : a + step])) @ beta for a in range(0, rows.shape[0], step)]
        else:
            thin = sparse.csr_array(rows)
            parts = [self._kernel(thin[a : a + step], self._rows) @ beta for a in range(0, thin.shape[0], step)]
        return np.asarray(np.vstack(parts) + self.intercept_)

    def decision_function(self, X: Any) -> Floats:
        """(n,) h for two classes, positive for the second; else (n, n_classes)."""
        h = self._scores(X)
        return np.asarray(h[:, 0] if h.shape[1] == 1 else h)

    def predict(self, X: Any) -> AnyArray:
        """The classes (n,)."""
        h = self.decision_function(X)
        return np.asarray(self.classes_[(h > 0.0).astype(int) if h.ndim == 1 else h.argmax(axis=1)])

    def _check_fitted(self) -> None:
        if not hasattr(self, "dual_coef_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit(X, y) first, or load a model")

    save = save

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model file; ModelFileError for anything that is not a whole, unaltered model of this class."""
        return read_own(path, cls)

    def _contents(self) -> Bundle:
        own = {"kernel": _saved(self.kernel), "fitted_kernel": _saved(self._kernel), "rows": self._rows is not None}
        arrays = {"beta": self.dual_coef_, "b": self.intercept_, "support": self.support_.astype(np.int64)}
        if self._rows is not None:
            parts = (self._rows.indptr.astype(np.int64), self._rows.indices.astype(np.int64), self._rows.data)
            arrays |= dict(zip(("indptr", "indices", "values"), parts, strict=True))
        if isinstance(self._kernel, RandomFeatures):
            arrays |= {"directions": self._kernel.directions_, "gamma": np.array([self._kernel.gamma_])}
        return Bundle({**computed(self), **own}, arrays)

    @classmethod
    def _expanded(cls, head: dict[str, Any], bundle: Bundle, outputs: int) -> Self:
        """The machine of a file, with its expansion for this number of outputs."""
        solver, kernel = head["solver"], _read_kernel(head["fitted_kernel"], bundle.arrays, head["n_features"])
        if isinstance(solver, dict):
            solver = {kind.__name__: kind for kind in solvers(cls._SOLVER).values()}[solver["class"]](**solver["settings"])
        own = head["kernel"] if isinstance(head["kernel"], str) else kernel
        model = restored(cls, head, kernel=own, solver=solver, **head["settings"])
        n, d, arrays = head["n"], head["n_features"], bundle.arrays
        model._kernel, model._n_rows = kernel, n
        model.support_ = array_of(arrays, "support", Array(("int64",), (None,), below=n)).copy()
        size = kernel.n_components if isinstance(kernel, RandomFeatures) else len(model.support_)
        model.dual_coef_ = array_of(arrays, "beta", Array(("float64",), (outputs, size))).copy()
        model.intercept_ = array_of(arrays, "b", Array(("float64",), (outputs,))).copy()
        model._rows = _read_rows(arrays, len(model.support_), d) if head["rows"] else None
        if head["rows"] == isinstance(kernel, Precomputed | RandomFeatures) or (isinstance(kernel, Precomputed) and d != n):
            raise ValueError("the kernel does not fit the rows")
        return model

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.pairwise = True, self.kernel == "precomputed"
        return tags


def machine_header(settings: dict[str, Spec], **further: Spec) -> Record:
    """What the header of a kernel machine's file must hold: these settings, what all have, and further entries."""
    return Record({
        "estimator": Text(),
        "kernel": OBJECT,
        "fitted_kernel": OBJECT,
        "solver": Field(OBJECT, "solver", settings_of),
        "settings": Record({name: Field(spec, name, _plain) for name, spec in settings.items()}),
        "classes": Field(ListOf(CLASS, 2), "classes_", np.ndarray.tolist, np.array),
        "level": Field(OneOf(LEVELS), "level_"),
        "objective": Field(Number(), "objective_"),
        "lower_bound": Field(maybe(Number()), "lower_bound_"),
        "n_inner": Field(Whole(), "n_inner_"),
        "n_features": Field(Whole(1), "n_features_in_"),
        "n": Field(Whole(2), "_n_rows"),
        "rows": Flag(),
        "history": COMMON["history"],
        **further,
    })  # fmt: skip


def _tell(row: dict[str, Any]) -> None:
    say(f"inner problem {row['inner']}: objective {row['objective']:.6g}, {row['event']}")


def _plain(value: Any) -> Any:
    """A setting as a file holds it; what is no plain value must be given again."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else "(give it again)"


def _saved(kernel: Any) -> dict[str, Any] | str:
    """A kernel, or random features, for the header."""
    if not isinstance(kernel, RandomFeatures):
        return saved(kernel)
    return {"class": RandomFeatures.__name__, "settings": {name: _plain(value) for name, value in kernel.get_params().items()}}


def _read_kernel(entry: Any, arrays: Mapping[str, AnyArray], d: int) -> Any:
    """The fitted kernel, or the fitted random features of d columns of rows."""
    if not isinstance(entry, dict) or entry["class"] != RandomFeatures.__name__:
        return restored_complete(entry)
    phi = RandomFeatures(**entry["settings"])
    half = (phi.n_components + 1) // 2
    phi.directions_ = array_of(arrays, "directions", Array(("float64",), (d, half))).copy()
    phi.gamma_, phi.n_features_in_ = float(array_of(arrays, "gamma", Array(("float64",), (1,)))[0]), d
    return phi


def _read_rows(arrays: Mapping[str, AnyArray], n: int, d: int) -> Any:
    """The rows of the support vectors; ValueError where their parts do not fit."""
    indptr = array_of(arrays, "indptr", Array(("int64",), (n + 1,)))
    indices = array_of(arrays, "indices", Array(("int64",), (None,), below=d))
    values = array_of(arrays, "values", Array(("float64",), (len(indices),)))
    rows = sparse.csr_array((values, indices, indptr), shape=(n, d))
    rows.check_format(full_check=True)
    return rows


def _dense(rows: Any) -> Floats:
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
