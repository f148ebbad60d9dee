"""Support vector machines for data of which most have no label: the labels are learnt together with the classifier."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from structpred.core.result import History
from structpred.core.types import Flags, Floats, Integers
from structpred.errors import DataError, ParameterError, StructpredWarning
from structpred.models.base import seed_of
from structpred.models.bundles import CLASS
from structpred.models.kernel_machine import LEVELS, KernelMachine, machine_header
from structpred.nonconvex.problem import SemiSupervisedProblem
from structpred.nonconvex.search import Search, Solution, Solver, resolve_solver
from structpred.runtime.settings import checked_positive, is_number
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, ListOf, Number, Plain

#: how many numbers of positives are solved for from scratch; the most inner problems for each of the others
_SOLVED, _BETWEEN = 9, 100


def over_shares(problem: SemiSupervisedProblem, solver: Solver, seed: int, least: int, most: int) -> dict[int, Solution]:
    """The solution for each number of positives from `least` to `most`.

    At nine numbers at most, even apart, by the solver; between these by alternating steps from the labels of both neighbours,
    one label more or less, of which the better count: their labels are local solutions, their bounds those of no labels at all.
    """
    solved = np.unique(np.linspace(least, most, min(_SOLVED, most - least + 1)).round().astype(int)).tolist()
    found = {k: solver.solve(problem.with_positives(k), seed) for k in solved}
    for step, order in ((1, range(least + 1, most)), (-1, range(most - 1, least, -1))):
        for k in order:
            if k not in solved:
                here = problem.with_positives(k)
                search = Search(here, _BETWEEN)
                start = here.best_vertex(here.gradient(found[k - step].inner))
                search.offer(*search.climb(start, found[k - step].inner), "share")
                found[k] = min([search.solution(), *([found[k]] if k in found else [])], key=lambda one: one.objective)
    return dict(sorted(found.items()))


#: folds; and how rare a lead of the labelled points alone must be by chance
_FOLDS, _RARE = 5, 0.05


def left_out(problem: SemiSupervisedProblem, p: Floats, folds: Integers) -> tuple[Floats, Floats]:
    """(n,), twice: h at the labelled points of classifiers without their fold, with the labels p of the others and with none.

    folds: (n,) the fold of each labelled point, -1 elsewhere. Two inner problems for each fold. The labels p were found with all
    labelled points, which favours the first.
    """
    nothing, found = np.zeros(problem.u), np.zeros((2, problem.n))
    for k, weights in enumerate(((p, 1.0 - p), (nothing, nothing))):
        for fold in range(int(folds.max()) + 1):
            out = folds == fold
            upper, lower = (np.where(out, 0.0, side) for side in problem.boxes(*weights))
            found[k, out] = problem.solve_boxes(upper, lower).h[out]
    return found[0], found[1]


def worse(problems: Sequence[SemiSupervisedProblem], ps: Sequence[Floats], codes: Integers) -> tuple[int, int] | None:
    """(wrong with the labels p, wrong with none) of the labelled points; None unless the first are more than chance allows.

    problems, ps: for each class against the others, or one for two classes. codes: the classes of the labelled points. What one
    classifier gets right and the other wrong is counted for either, and judged by a sign test.
    """
    from scipy.stats import binom

    labelled = np.flatnonzero(problems[0].y != 0)
    folds = np.full(problems[0].n, -1)
    for code in np.unique(codes):
        own = labelled[codes == code]
        folds[own] = np.arange(len(own)) % _FOLDS
    both = [left_out(problem, p, folds) for problem, p in zip(problems, ps, strict=True)]
    wrong: list[Flags] = []
    for h in (np.array([one[k][labelled] for one in both]) for k in (0, 1)):
        wrong.append(((h[0] > 0.0) if len(h) == 1 else h.argmax(axis=0)) != codes)
    lost, won = int((wrong[0] & ~wrong[1]).sum()), int((wrong[1] & ~wrong[0]).sum())
    is_rare = lost > won and binom.sf(lost - 1, lost + won, 0.5) < _RARE
    return (int(wrong[0].sum()), int(wrong[1].sum())) if is_rare else None


#: what folds of the labelled points say against the labels that were found
_WORSE = (
    "the labels that were found make a worse classifier: trained without a fifth of the labelled points, it errs on {0} of {2}, "
    "that of the labelled points alone on {1}. A low objective means little here: is the balance right ({3!r})? Are C and C2?"
)


@dataclass(eq=False, repr=False)
class SemiSupervisedSVM(KernelMachine):
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
        ``RBF(gamma=10.0)``, or a function of two CSR matrices. ``RandomFeatures(1000, gamma=10.0)``, for many points, comes
        close to the RBF kernel without a kernel matrix.
    C, C2 : float
        The weights of the losses of labelled and unlabelled points, > 0. Where C2 is at least a tenth of C, proofs are short.
    balance : "labelled", "interval", float, dict or None
        The share of each class among the unlabelled points: that among the labelled ones, a number for the second of two classes,
        or a table of classes. Rounded to whole points. None: anything; the best labels are then often of one class only.
        "interval": the best of the shares that 95 % of samples of the labelled points' size allow; `history_` has each of them.
    solver : str or Solver
        "staged", "branch_and_bound", "pdm", "pdm_rounds", "ao", "cccp", "gradient", "local_search", "annealing",
        "path_annealing", "printed_pdm", or an object such as ``BranchAndBound(max_inner=1_000_000)``.
    n_components : int, optional
        For many points: how many of them, at random, are landmarks, whose similarities replace the kernel matrix as features
        (Nystroem's method); b is then regularised, too, as it is with random features. Memory: 8 n n_components bytes; None:
        8 n^2 bytes.
    random_state : int or RandomState, optional
        Seeds the solver and the choice of landmarks; None means 0.
    verbose : int
        1: a line on standard error for each better solution; 0: silent.

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
        A row for each improvement, or each share of an interval: inner problems solved, objective, event; "output", the class.
    n_inner_ : int
        Inner problems, each a support vector machine, that were solved.
    support_ : ndarray (n_support,)
        The numbers of the support vectors, or of the landmarks; none with random features.
    dual_coef_, intercept_ : ndarray (n_outputs, n_support), (n_outputs,)
        beta and b: h(x) = sum_i beta_i k(x_i, x) + b; with random features their weights, (n_outputs, n_components), and b.

    Raises
    ------
    DataError
        For X or y that cannot be used: no labelled point, one class only, a matrix or function that is no kernel.
    ParameterError
        For settings out of range, and a balance that is impossible.

    Warns
    -----
    StructpredWarning
        Where the labels that were found make a worse classifier than none, by folds of the labelled points.

    Examples
    --------
    >>> X = [[0.0], [0.3], [0.6], [2.0], [2.3], [2.6]]
    >>> model = SemiSupervisedSVM(C=10.0, C2=1.0).fit(X, [0, -1, -1, -1, -1, 1])
    >>> model.transduction_.tolist(), model.level_
    ([0, 0, 0, 1, 1, 1], 'global')
    """

    C2: float = 1.0
    _: KW_ONLY
    balance: str | float | Mapping[Any, float] | None = "labelled"
    solver: str | Solver = "staged"

    transduction_: npt.NDArray[Any] = field(init=False)

    _HEADER = machine_header(
        {"C": Number(), "C2": Number(), "balance": Plain(), "n_components": Plain(), "random_state": Plain()},
        transduction=Field(ListOf(CLASS), "transduction_", np.ndarray.tolist, np.array),
    )

    def fit(self, X: Any, y: Any) -> Self:
        """Find labels and classifier. y: (n,) classes; -1 or None is an unlabelled point."""
        C, C2, solver = checked_positive(self.C, "C"), checked_positive(self.C2, "C2"), resolve_solver(self.solver)
        rows, y, labelled = self._read_labels(X, y)
        classes, codes = np.unique(y[labelled], return_inverse=True)
        if len(classes) < 2:
            found = f"one class only: {classes.tolist()}" if len(classes) else "no labelled point (-1 or None is unlabelled)"
            if classes.tolist() == [1] and not labelled.all():
                found += "; -1 stands for an unlabelled point, as in scikit-learn: call classes -1 and 1 something else, 0 and 1"
            raise DataError(f"y: expected labelled points of at least two classes, got {found}")
        space = self._space(rows)
        shares = self._shares(classes, codes)
        solutions: list[Solution] = []
        problems = []
        for k in range(len(classes)) if len(classes) > 2 else [1]:
            signs = np.zeros(len(y), np.int64)
            signs[labelled] = np.where(codes == k, 1, -1)
            positives = None if shares is None else round(shares[k] * int((~labelled).sum()))
            problem = self._shown(space.problem(space.values, signs, C, C2, positives))
            problems.append(problem)
            if isinstance(self.balance, str) and self.balance == "interval":
                solutions.append(self._best_share(problem, solver, int((codes == k).sum()), len(codes)))
            else:
                solutions.append(solver.solve(problem, seed_of(self.random_state)))
        if not labelled.all() and (counts := worse(problems, [one.p for one in solutions], codes)) is not None:
            warnings.warn(_WORSE.format(*counts, len(codes), self.balance), StructpredWarning, stacklevel=2)
        self.classes_ = classes
        self._keep(space.expansion([solution.inner for solution in solutions]), space.kernel, rows)
        self.objective_ = float(sum(solution.objective for solution in solutions))
        self.lower_bound_ = float(sum(solution.lower_bound for solution in solutions))
        self.level_ = min((solution.level for solution in solutions), key=LEVELS.index)
        self.history_ = History({**row, "output": k} for k, solution in enumerate(solutions) for row in solution.history)
        self.n_inner_ = sum(solution.n_inner for solution in solutions)
        if len(classes) == 2:
            chosen = (solutions[0].labels > 0).astype(int)
        else:
            chosen = np.array([solution.inner.h[~labelled] for solution in solutions]).argmax(axis=0)
        self.transduction_ = np.empty(len(y), classes.dtype)
        self.transduction_[labelled], self.transduction_[~labelled] = y[labelled], classes[chosen]
        return self

    def _best_share(self, problem: Any, solver: Solver, count: int, n: int) -> Solution:
        """The best of all shares that are likely where `count` of n labelled points are of the class."""
        from scipy.stats import binomtest

        low, high = binomtest(count, n).proportion_ci()  # Clopper & Pearson 1934
        found = over_shares(problem, solver, seed_of(self.random_state), int(np.ceil(low * problem.u)), int(high * problem.u))
        inner = np.cumsum([one.n_inner for one in found.values()]).tolist()
        rows = [
            {"inner": done, "objective": one.objective, "event": f"{k} of {problem.u}"}
            for done, (k, one) in zip(inner, found.items(), strict=True)
        ]
        bound = min(one.lower_bound for one in found.values())
        level = min((one.level for one in found.values()), key=LEVELS.index)
        best = min(found.values(), key=lambda one: one.objective)
        return replace(best, lower_bound=bound, level=level, history=rows, n_inner=inner[-1])

    def _read_labels(self, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any], npt.NDArray[np.bool_]]:
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
        rows, given = self._read(X, given)
        labelled = ~missing if missing is not None else np.ones(len(given), bool)
        if given.dtype.kind in "iuf":
            if missing is not None and missing.any() and (given[labelled] == -1).any():
                raise DataError(
                    "y: got None and -1, which both stand for an unlabelled point: write one of them; if -1 is a class, call it "
                    "something else, such as 0"
                )
            labelled &= given != -1
        return rows, given, labelled

    def _shares(self, classes: npt.NDArray[Any], codes: npt.NDArray[np.int64]) -> dict[int, float] | None:
        """The share of each class, by its number; ParameterError for a balance that is impossible."""
        if self.balance is None or (isinstance(self.balance, str) and self.balance == "interval"):
            return None
        if isinstance(self.balance, str) and self.balance == "labelled":
            return {k: float((codes == k).mean()) for k in range(len(classes))}
        table: Any = self.balance
        if not isinstance(table, Mapping) and len(classes) == 2 and is_number(table):
            table = {classes[0]: 1.0 - table, classes[1]: table}
        if not isinstance(table, Mapping) or not all(is_number(share) and 0 <= share <= 1 for share in table.values()):
            expected = "a share in [0, 1]" if len(classes) == 2 else "a table of shares in [0, 1]"
            raise ParameterError(f"balance: expected 'labelled', 'interval', None or {expected}, got {self.balance!r}")
        if set(table) != set(classes.tolist()):
            raise ParameterError(f"balance: expected a share for each of {classes.tolist()}, got {dict(table)}")
        if abs(sum(table.values()) - 1.0) > 1e-6:
            raise ParameterError(f"balance: the shares must sum to 1, got {sum(table.values()):.6g}")
        return {k: float(table[label]) for k, label in enumerate(classes.tolist())}

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        model = cls._expanded(head, bundle, 1 if len(head["classes"]) == 2 else len(head["classes"]))
        if len(model.transduction_) != head["n"] or not np.isin(model.transduction_, model.classes_).all():
            raise ValueError("transduction: expected a class for each point")
        return model
