"""Support vector machines whose classes are known by their group only: the classes within each group are learnt."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import DataError, ParameterError
from structpred.models.base import seed_of
from structpred.models.kernel_machine import Columns, KernelMachine, machine_header
from structpred.nonconvex.latent import FeatureSpace, GramSpace, LatentProblem, Space
from structpred.nonconvex.latent_search import LatentSolver
from structpred.nonconvex.problem import checked_gram
from structpred.nonconvex.search import resolve_solver
from structpred.runtime.settings import checked_positive, checked_whole
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Array, Number, Plain, Whole, array_of


@dataclass(eq=False, repr=False)
class LatentSVM(KernelMachine):
    """A kernel support vector machine with hidden states: each group of y consists of several classes that nobody named.

    State k has the score s_k(x) = <w_k, phi(x)> + b_k, a group that of its best state, and training minimises over all of them

        1/2 sum_k (|w_k|^2 + b_k^2) + C sum_i max(0, 1 + max_{k not in G(y_i)} s_k(x_i) - max_{z in G(y_i)} s_z(x_i)),

    G(y) the states of group y: the boundary between groups becomes the meeting of simpler ones. The problem is not convex: which
    state each training row is in is searched for. Felzenszwalb et al. 2010; Yu & Joachims 2009, eq. 3, with cost 1 between groups
    and 0 within them.

    Parameters
    ----------
    kernel : str, Kernel or callable
        As for `SemiSupervisedSVM`, random features included.
    C : float
        The weight of the losses, > 0.
    n_states : int or dict
        How many hidden states a group has, >= 1: a number for all, or a table of groups.
    solver : str or LatentSolver
        "pdm", "cccp", "annealing", "gradient", "local_search", "branch_and_bound" (for some ten rows), or an object such as
        ``LatentPDM(max_inner=5000)``.
    n_components : int, optional
        For many rows: the number of landmarks, as for `SemiSupervisedSVM`.
    random_state : int or RandomState, optional
        Seeds the solver and the choice of landmarks; None means 0.
    verbose : int
        1: a line on standard error for each better solution; 0: silent.

    Attributes
    ----------
    classes_ : ndarray
        The groups in ascending order.
    group_of_state_ : ndarray (n_states,)
        The group of each state, as its number in classes_.
    states_ : ndarray (n,)
        The states of the training rows.
    dual_coef_, intercept_ : ndarray (n_states, n_support), (n_states,)
        s_k(x) = sum_i dual_coef_[k, i] k(x_i, x) + intercept_[k], over the rows `support_`.
    lower_bound_ : float or None
        What no choice of states can be below; None where the solver knows of no bound above zero, as all but branch and bound.
    support_, objective_, level_, history_, n_inner_
        As for `SemiSupervisedSVM`.

    Raises
    ------
    DataError
        For X or y that cannot be used, such as one group only, or a function that is no kernel.
    ParameterError
        For settings out of range, and a table that lacks a group or names one without rows.

    Examples
    --------
    >>> X = [[-3.0], [-2.5], [0.0], [0.5], [3.0], [3.5]]
    >>> model = LatentSVM("linear", C=10.0, n_states={"in": 1, "out": 2}).fit(X, ["out", "out", "in", "in", "out", "out"])
    >>> model.predict([[-4.0], [0.2], [4.0]]).tolist()
    ['out', 'in', 'out']
    >>> len(set(model.predict_hidden([[-4.0], [4.0]]).tolist()))
    2
    """

    n_states: int | Mapping[Any, int] = 2
    _: KW_ONLY
    solver: str | LatentSolver = "pdm"

    group_of_state_: Integers = field(init=False)
    states_: Integers = field(init=False)

    _SOLVER = LatentSolver
    _HEADER = machine_header(
        {"C": Number(), "n_states": Plain(), "n_components": Plain(), "random_state": Plain()}, outputs=Whole(2)
    )

    def fit(self, X: Any, y: Any) -> Self:
        """Find states and classifier. y: (n,) groups."""
        C, solver = checked_positive(self.C, "C"), resolve_solver(self.solver, LatentSolver)
        rows, given = self._read(X, y)
        groups, codes = np.unique(given, return_inverse=True)
        if len(groups) < 2:
            raise DataError(f"y: expected at least two groups, got one class only: {groups.tolist()}")
        group_of_state = np.repeat(np.arange(len(groups)), self._sizes(groups.tolist()))
        inputs = self._space(rows)
        space: Space
        if isinstance(inputs, Columns):
            features = np.concatenate((inputs.values, np.ones((len(codes), 1), np.float32)), axis=1)
            space = FeatureSpace(features)
        else:
            space = GramSpace(checked_gram(inputs.values) + 1.0)  # the constant is for the intercepts
        problem = self._shown(LatentProblem(space, codes, group_of_state, C))
        found = solver.solve(problem, seed_of(self.random_state))
        self.classes_, self.group_of_state_, self.states_ = groups, group_of_state, found.states
        coef = found.inner.coef
        if isinstance(inputs, Columns):
            w = np.asarray(features.T @ coef, np.float64)
            expansion = inputs.from_weights(w[:-1].T, w[-1])
        else:
            support = np.flatnonzero(coef.any(axis=1))
            expansion = support, coef[support].T, coef.sum(axis=0)
        self._keep(expansion, inputs.kernel, rows)
        self._keep_report(found)
        return self

    def _sizes(self, groups: list[Any]) -> list[int]:
        """The number of states of each group; ParameterError for what is no such table."""
        table: Any = self.n_states
        if not isinstance(table, Mapping):
            table = dict.fromkeys(groups, table)
        if set(table) != set(groups):
            raise ParameterError(f"n_states: expected a number for each of the groups with rows, {groups}, got {dict(table)}")
        for group, size in table.items():
            checked_whole(size, f"n_states of group {group!r}")
        return [int(table[group]) for group in groups]

    def decision_function(self, X: Any) -> Floats:
        """(n,) the lead of the second of two groups; else (n, n_groups), the score of each group's best state."""
        scores = self._scores(X)
        best = np.stack([scores[:, self.group_of_state_ == k].max(axis=1) for k in range(len(self.classes_))], axis=1)
        return np.asarray(best[:, 1] - best[:, 0] if len(self.classes_) == 2 else best)

    def predict_hidden(self, X: Any) -> Integers:
        """(n,) the state with the best score, of any group: a row's group is ``classes_[group_of_state_[state]]``."""
        return np.asarray(self._scores(X).argmax(axis=1), np.int64)

    def _contents(self) -> Bundle:
        found = super()._contents()
        found.header["outputs"] = len(self.group_of_state_)
        found.arrays |= {"states": self.states_, "groups": self.group_of_state_}
        return found

    @classmethod
    def _from_bundle(cls, head: dict[str, Any], bundle: Bundle, oracle: Any) -> Self:
        outputs, n_groups = head["outputs"], len(head["classes"])
        model = cls._expanded(head, bundle, outputs)
        groups = array_of(bundle.arrays, "groups", Array(("int64",), (outputs,), below=n_groups)).copy()
        if set(groups.tolist()) != set(range(n_groups)):
            raise ValueError("groups: expected a state of each group")
        model.states_ = array_of(bundle.arrays, "states", Array(("int64",), (head["n"],), below=outputs)).copy()
        model.group_of_state_ = groups
        return model
