"""Support vector machines with the ramp loss: a point that is far on the wrong side costs no more than the cap."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError
from structpred.models.base import seed_of
from structpred.models.kernel_machine import KernelMachine, machine_header
from structpred.nonconvex.branch_and_bound import EXACT
from structpred.nonconvex.search import Search, Solver, resolve_solver
from structpred.runtime.settings import checked_positive
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Array, Number, Plain, array_of, maybe


@dataclass(eq=False, repr=False)
class RobustSVM(KernelMachine):
    """A kernel support vector machine of two classes that discards outliers.

    It minimises over w and b

        1/2 |w|^2 + C sum_i min(cap, V(y_i, h_i)),    V(y, h) = max(0, 1 - y h),    h_i = <w, phi(x_i)> + b,

    so a point whose loss exceeds the cap has no influence on the boundary. The problem is not convex: which points are discarded
    is searched for. For up to some fifty points branch and bound usually proves the optimum. Xu, Crammer & Schuurmans 2006;
    Collobert, Sinz, Weston & Bottou 2006.

    Parameters
    ----------
    kernel : str, Kernel or callable
        As for `SemiSupervisedSVM`, random features included.
    C : float
        The weight of the losses, > 0.
    cap : float
        The largest loss of a point, > 0; infinite: the hinge loss, nothing is discarded. With 2 the loss stops growing at the
        other class's margin.
    solver : str or Solver
        "staged", "branch_and_bound", "pdm", "ao" (from all points kept; often enough, and fast for many points), "local_search",
        "annealing", or an object such as ``BranchAndBound(max_inner=1_000_000)``.
    n_components : int, optional
        For many points: the number of landmarks, as for `SemiSupervisedSVM`.
    random_state : int or RandomState, optional
        Seeds the solver; None means 0.
    verbose : int
        1: a line on standard error for each better solution; 0: silent.

    Attributes
    ----------
    classes_ : ndarray (2,)
        The classes in ascending order.
    discarded_ : ndarray (n,) of bool
        The training points whose loss is the cap.
    lower_bound_ : float or None
        What no choice of points can be below; None where the solver knows of no bound above zero, as most do not.
    objective_, level_, history_, n_inner_, support_, dual_coef_, intercept_
        As for `SemiSupervisedSVM`.

    Raises
    ------
    DataError
        For X or y that cannot be used: other than two classes, a matrix or function that is no kernel.
    ParameterError
        For settings out of range, and solvers of problems with unlabelled points.

    Examples
    --------
    >>> X = [[-2.0], [-1.0], [-1.5], [1.0], [2.0], [1.5], [9.0]]
    >>> model = RobustSVM("linear", C=10.0).fit(X, ["a", "a", "a", "b", "b", "b", "a"])
    >>> model.predict([[3.0]]).tolist(), np.flatnonzero(model.discarded_).tolist(), model.level_
    (['b'], [6], 'global')
    """

    cap: float = 2.0
    _: KW_ONLY
    solver: str | Solver = "staged"

    discarded_: npt.NDArray[np.bool_] = field(init=False)

    _HEADER = machine_header({"C": Number(), "cap": maybe(Number()), "n_components": Plain(), "random_state": Plain()})

    def fit(self, X: Any, y: Any) -> Self:
        """Find the points to discard and the classifier. y: (n,) two classes."""
        C, solver, cap = checked_positive(self.C, "C"), resolve_solver(self.solver), self.cap
        cap = np.inf if isinstance(cap, float) and cap == np.inf else checked_positive(cap, "cap")
        rows, given = self._read(X, y)
        classes, codes = np.unique(given, return_inverse=True)
        if len(classes) != 2:
            many = f"{len(classes)} classes" if len(classes) > 2 else f"one class only: {classes.tolist()}"
            only = "Only binary classification is supported. " if len(classes) > 2 else ""
            raise DataError(f"{only}y: expected two classes, got {many}")
        space = self._space(rows)
        problem = self._shown(space.ramp_problem(space.values, 2 * codes - 1, C, cap))
        everything = np.ones(problem.n)
        if np.isfinite(cap):
            found = solver.solve(problem, seed_of(self.random_state), everything)
        else:  # a convex problem
            search = Search(problem, 1)
            search.offer(everything, None, "all points kept")
            assert search.inner is not None
            proven = search.objective - search.inner.objective <= EXACT * search.objective
            found = search.solution("global" if proven else "eps-global", search.objective)
        self.classes_, self.discarded_ = classes, found.p < 0.5
        self._keep(space.expansion([found.inner]), space.kernel, rows)
        self._keep_report(found)
        return self

    def _contents(self) -> Bundle:
        found = super()._contents()
        found.arrays["discarded"] = self.discarded_.astype(np.int64)
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        cap = np.inf if head["settings"]["cap"] is None else head["settings"]["cap"]
        model = cls._expanded({**head, "settings": {**head["settings"], "cap": cap}}, bundle, 1)
        model.discarded_ = array_of(bundle.arrays, "discarded", Array(("int64",), (head["n"],), below=2)).astype(bool)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
