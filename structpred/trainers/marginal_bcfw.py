"""Block-coordinate Frank-Wolfe over marginals, for labels that share a row (Lacoste-Julien et al. 2013; Taskar et al. 2003).

The dual of  min_w lam/2 |w|^2 + sum_i p_i max_y (loss_i(y) + <w, psi_i(y)>),  psi_i(y) = phi_i(y) - phi_i(y_i),  depends on a
distribution over the outputs of instance i through its marginals mu_i alone:

    max_mu  sum_i p_i <costs_i, mu_i> - lam/2 |w|^2,   w = sum_i p_i/lam Psi_i' (truth_i - mu_i)

Where all labels share one row x_i, the gap and the line search of a block need no features: with the slopes g = theta + costs a
move d changes D / p_i by <g, d> - p_i/(2 lam) (2 |x_i|^2 |d_nodes|^2 + |d_edges|^2). Weights of off and on are opposite, so that
one table (d, L) holds them. A visit scores the instance once, finds the best output, and makes steps from the same scores: in
closed sets of a forest for each tree, subtree and label, else from the worst output with mass to the best, of all paths or of
those that searches found. Passes that lower the gap by little, as where C is large or rows separate, may be followed by a
proximal Newton step of all blocks (`fused/label_sets.py`).
"""

from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from structpred.core.products import dot
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.task.fast import marginal_blocks
from structpred.task.fast.marginal_blocks import MarginalBlocks, MarginalPoint
from structpred.task.task import Task
from structpred.trainers.problem import Problem, Trainer, once_per_problem
from structpred.trainers.states import Values

#: numbers that one compiled call may read: a tenth of a second, so that Ctrl-C is heard
CALL = 20_000_000
#: an objective as the visits saw it that is no larger than this times the SVMs' is computed
NEAR = 1.05
#: passes of the independent SVMs
SVM_PASSES = 8
#: a pass that leaves more than this share of the gap is followed by a step of all blocks; how far that reaches at first, by what
#: this grows and falls, and its largest value
SLOW, REACH, FACTOR, FAR = 0.7, 10.0, 3.0, 1e6
#: by what share weights are made longer at first, and at least
LONGER, LEAST = 0.5, 1e-3


class MarginalState(NamedTuple):
    """point: weights and marginals. visits: the order of the instances in the present pass. gaps, values: of each block, as its
    last visit found them (inf: never). pace: how far steps of all blocks reach, the sum of the gaps a pass ago, whether such a
    step was made in this pass. best, least: the weights with the smallest objective seen, and that; at first those of
    independent SVMs.
    """

    table: Floats
    pairs: Floats
    nodes: Annotated[Floats, Values(0.0, 1.0 + 1e-6)]
    listed: Annotated[npt.NDArray[np.int8], Values(0, 1)]
    visits: Annotated[Integers, Values(0)]
    gaps: Annotated[Floats, Values(0.0, np.inf)]
    values: Annotated[Floats, Values(0.0, np.inf)]
    pace: Annotated[Floats, Values(0.0, np.inf)]
    best: Floats
    least: Annotated[Floats, Values(0.0, np.inf)]

    @property
    def point(self) -> MarginalPoint:
        """The dual point, whose arrays steps change."""
        return MarginalPoint(*self[:4])

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        whole = np.array_equal(np.sort(self.visits), np.arange(len(self.visits)))
        return None if whole else "visits: expected a permutation of the instances"


class MarginalBCFW(Trainer):
    """The default trainer of label sets where it applies: each block a point of the marginal polytope, whole passes compiled.

    For `MultiLabelMRF` and `HierarchicalMultiLabel`, margin rescaling and 1/2 |w|^2, TreeMRF, EnumerationMRF or LabelPaths as
    oracle, one table of label costs, and all labels known. A pass costs a small part of one of `bcfw`, and steps of single
    labels save passes; the certificate is the same.

    The weights of independent linear SVMs, one for each label, with C_svm = 2 C, cost some of these passes and are good weights
    long before the dual is: they are what is returned until the dual's own have the better objective. After that it is the best
    weights that a pass ended with, or a multiple of them.

    Parameters
    ----------
    start : bool
        Whether independent SVMs are trained to be returned in the first passes.
    joint : bool
        Whether passes that lower the gap by little, as where C is large or rows separate, are followed by a proximal Newton step
        of all blocks. Such a step closes gaps that passes do not, and takes the time of ten to a hundred passes.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), algorithm 4. Taskar, Guestrin and Koller (2003), for the marginals.

    Examples
    --------
    >>> from structpred.models import MultiLabelMRF
    >>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [[0, 0], [0, 1], [1, 1], [1, 1]]
    >>> MultiLabelMRF("marginal_bcfw", C=10.0, max_iter=200).fit(X, Y).converged_
    True
    """

    name = "marginal_bcfw"
    requires = ("label_sets",)
    kinds = (MarginRescaling,)
    certified = True

    def __init__(self, *, start: bool = True, joint: bool = False) -> None:
        self.start, self.joint = start, joint

    @staticmethod
    def applies(task: Any) -> bool:
        """Whether it has blocks for the outputs and the loss of a training set."""
        return marginal_blocks.find(task) is not None and task.cost_grid is not None

    def init_state(self, problem: Problem) -> MarginalState:
        """Every block at the truth, w = 0."""
        n, start = len(problem.task), _blocks(problem).start()
        best, least = _independent(problem) if self.start else (np.zeros(problem.task.dim), np.inf)
        pace, unseen = np.array([REACH, np.inf, 0.0]), np.full(n, np.inf)
        return MarginalState(*start, np.arange(n), unseen, unseen.copy(), pace, best.copy(), np.array(least))

    def order(self, problem: Problem, state: MarginalState, rng: np.random.Generator, n_pass: int) -> Integers:
        """Compiled calls over runs of a new permutation of the instances; then -1, a step of all."""
        n = len(problem.task)
        state.visits[:] = rng.permutation(n)
        return np.append(np.arange(-(-n // _run(problem)), dtype=np.int64), -1)

    def update(self, problem: Problem, state: MarginalState, item: int) -> tuple[MarginalState, bool]:
        """One compiled call, or the step of all blocks where the pass did little."""
        if item < 0:
            return state, self._leap(problem, state)
        size = _run(problem)
        visits = state.visits[item * size : (item + 1) * size]
        return state, _blocks(problem).sweep(state.point, visits, state.gaps, state.values) > 0

    def _leap(self, problem: Problem, state: MarginalState) -> bool:
        before, gap = state.pace[1], dot(problem.p, state.gaps)
        state.pace[1:] = gap, self.joint and gap > SLOW * before
        if state.pace[2]:
            made = _blocks(problem).leap(state.point, float(state.pace[0]))
            state.pace[0] = min((FACTOR if made else 1.0 / FACTOR) * state.pace[0], FAR)
        return bool(state.pace[2])

    def finish_pass(self, problem: Problem, state: MarginalState) -> MarginalState:
        """Keep the point's weights, or multiples of them, if their objective is the smallest seen."""
        seen, point = problem.lam * _half_square(state.point) + dot(problem.p, state.values), state.point
        if not state.pace[2] and seen > NEAR * state.least:
            return state  # what visits saw says when a sweep over all is worth its time
        primal, longer = _primal(problem, point), LONGER if state.pace[2] else 0.0
        while longer > LEAST:  # where rows separate, a little more length leaves no loss, and C no longer matters
            other = point._replace(table=(1.0 + longer) * point.table, pairs=(1.0 + longer) * point.pairs)
            value = _primal(problem, other)
            primal, point, longer = (value, other, longer) if value < primal else (primal, point, longer / 3.0)
        if primal < state.least:
            state.least[...], state.best[:] = primal, _blocks(problem).weights(point)
        return state

    def weights(self, problem: Problem, state: MarginalState) -> Vector:
        """The best that were seen; in the first pass, without independent SVMs, those of the dual point."""
        found = state.best if np.isfinite(state.least) else _blocks(problem).weights(state.point)
        return cast(Vector, found.astype(problem.task.dtype))

    def objective(self, problem: Problem, state: MarginalState) -> tuple[float, float]:
        """Primal at the weights to return, and the dual value, with weights that are summed up anew."""
        point, losses = _blocks(problem).summed(state.point)
        dual = dot(problem.p, losses) - problem.lam * _half_square(point)
        return float(state.least) if np.isfinite(state.least) else _primal(problem, state.point), dual

    def gap_estimate(self, problem: Problem, state: MarginalState) -> float:
        """The gaps of the blocks, each as its last visit found it."""
        return dot(problem.p, state.gaps) if np.isfinite(state.gaps).all() else np.inf


@once_per_problem
def _blocks(problem: Problem) -> MarginalBlocks:
    """The blocks of the training set; ParameterError where it has none."""
    return _layout(problem).blocks(*_aims(problem))


def _layout(problem: Problem) -> marginal_blocks.MarginalLayout:
    if (layout := marginal_blocks.find(problem.task)) is None:
        oracle = type(getattr(problem.task, "oracle", None)).__name__
        raise ParameterError(f"marginal_bcfw works with TreeMRF, EnumerationMRF and LabelPaths, not with {oracle}; take bcfw")
    return layout


@once_per_problem
def _aims(problem: Problem) -> tuple[Integers, Floats, Floats]:
    """(true labels, what a wrong label costs, p_i / lam)."""
    task = cast(Task, problem.task)
    if (grid := task.cost_grid) is None:
        raise ParameterError(
            "marginal_bcfw needs one table of label costs for all samples: loss='hamming' or LabelCosts(matrix); take bcfw"
        )
    truth, table = np.stack(task.labels), grid.table(2)
    scale = cast(MarginRescaling, problem.surrogate).loss_weight
    costs = scale * np.where(truth == 1, table[1, 0], table[0, 1])
    if task.token_weights is not None:
        costs = costs * np.stack(task.token_weights)
    return truth, costs, problem.p / problem.lam


def _run(problem: Problem) -> int:
    """How many instances one compiled call visits."""
    return max(1, CALL // max(_blocks(problem).work, 1))


def _half_square(point: MarginalPoint) -> float:
    """1/2 |w|^2: the table counts twice, for labels that are on and off."""
    return float((point.table**2).sum()) + 0.5 * float((point.pairs**2).sum())


def _primal(problem: Problem, point: MarginalPoint) -> float:
    return problem.lam * _half_square(point) + dot(problem.p, _blocks(problem).values(point))


@once_per_problem
def _independent(problem: Problem) -> tuple[Floats, float]:
    """The weights of a linear SVM for each label, and their objective.

    Without edges H_i is a sum over labels; with u = w_on - w_off = 2 w_on the objective is 1/(2 C n) times the sum over labels of
    1/2 |u|^2 + 2 C sum_i max(0, cost - sign <u, x_i>): these SVMs are the same blocks without edges.
    """
    n, blocks, rng = len(problem.task), _layout(problem).independent(*_aims(problem)), np.random.default_rng(0)
    point, unused = blocks.start(), np.empty((2, n))
    for _ in range(SVM_PASSES):
        blocks.sweep(point, rng.permutation(n), *unused)
    weights = blocks.weights(point)
    return weights, problem.primal(weights.astype(problem.task.dtype))
