"""Online exponentiated gradient on the dual of conditional random fields (Collins, Globerson, Koo, Carreras & Bartlett 2008).

The dual of  min_w lam/2 |w|^2 + sum_i p_i log-loss_i(w)  is

    max  sum_i p_i H(alpha_i) - lam/2 |w|^2,   w = sum_i p_i/lam Psi_i^T (mu_i(truth) - mu_i(alpha_i)),

H the entropy of the distribution alpha_i over the outputs of instance i; with signs, or an l1 term, w is the regulariser's map of
that sum u, and r* takes the place of the square. alpha_i is kept by part scores theta_i,
alpha_i(y) prop. to exp(theta_i . mu(y)); one step moves one block,  theta_i <- (1 - eta) theta_i + eta Psi_i w.
For the margin, with the costs c_i of the parts, the dual has no entropy, and adds what it costs to be wrong,

    max  sum_i p_i <c_i, mu_i(alpha_i) - mu_i(truth)> - lam/2 |w|^2,       theta_i <- theta_i + eta (c_i + Psi_i w).

The dual never falls: its change, or a bound of it where r* bends less than the square, is computed before a step is taken, and
eta is cut until it is an increase.
"""

from dataclasses import replace
from typing import Annotated, NamedTuple, cast

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.products import dot
from structpred.core.regulariser import DualMap, Regulariser, pieces_of
from structpred.core.result import sound
from structpred.core.types import Floats, Integers
from structpred.core.weights import Weights
from structpred.errors import ParameterError
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.task.steps import running_sum
from structpred.task.task import Task
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.states import FIXED, Values

#: the largest step with the margin: distributions may come near to a single output, and must come back
MOST = 1e3


class OEGState(NamedTuple):
    """weights: w. theta, mu: part scores and marginals of all blocks, flat; block i is offsets[i]:offsets[i+1].

    entropy: H(alpha_i). eta: the present step size of each block.
    scratch: zeros, between steps. point: u, where w is not u itself; else empty.
    """

    weights: Weights
    theta: Floats
    mu: Floats
    offsets: Annotated[Integers, FIXED]
    entropy: Floats
    eta: Annotated[Floats, Values(0, MOST)]
    scratch: Annotated[Floats, FIXED]
    point: Floats


class OnlineEG(Trainer):
    """Conditional random fields with a certified gap, one sample at a time; needs `marginals` only (chains, trees, ...).

    Also max-margin networks, with the surrogate `margin`.

    Parameters
    ----------
    start : float
        How steeply alpha_i falls with the loss at the beginning. If it is large, alpha_i starts near the truth and w near zero.
    eta : float
        The first step size of each block, in (0, 1]. It grows by 3 % with each step that is taken at once, and shrinks to 0.7
        of its value while a step would lower the dual.
    max_cuts : int
        How often eta is cut before a step is abandoned.

    Raises
    ------
    ParameterError
        For start < 0, eta outside (0, 1] or max_cuts < 1.

    References
    ----------
    Collins, Globerson, Koo, Carreras and Bartlett (2008).

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=OnlineEG(), tol=0.01).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "oeg"
    requires = ("marginals",)
    regulariser_requires = ("dual_map",)
    surrogates = (LogLoss, MarginRescaling)
    kinds = (LogLoss, MarginRescaling)
    certified = True

    def __init__(self, *, start: float = 12.0, eta: float = 0.5, max_cuts: int = 30) -> None:
        if not (np.isfinite(start) and start >= 0 and 0 < eta <= 1 and max_cuts >= 1):
            raise ParameterError(f"expected start >= 0, 0 < eta <= 1, max_cuts >= 1, got {start}, {eta}, {max_cuts}")
        self.start, self.eta, self.max_cuts = start, eta, max_cuts

    @classmethod
    def fits(cls, regulariser: Regulariser) -> bool:
        """Whether r* bends as the square at most, and stays the same: the rule of the steps knows no scales."""
        table = regulariser.dual_map()  # type: ignore[attr-defined]
        return not regulariser.adapts and isinstance(table, DualMap) and bool((table.scale == 1.0).all())

    def init_state(self, problem: Problem) -> OEGState:
        """alpha_i(y) prop. to exp(-start * loss(y_i, y)), and the w that belongs to it."""
        task = cast(Task, problem.task)
        offsets = np.cumsum([0, *(task.features.n_parts(i) for i in range(len(task)))])
        theta, mu, entropy = np.zeros(offsets[-1]), np.zeros(offsets[-1]), np.zeros(len(task))
        for i in range(len(task)):
            block = slice(offsets[i], offsets[i + 1])
            theta[block] = -self.start * task.costs(i)[1]
            log_z, mu[block] = task.marginals(theta[block], i)
            entropy[i] = log_z - dot(theta[block], mu[block])
        weights, u = Weights.zeros(task.dim, task.dtype), weights_of(problem, mu, offsets)
        weights.v[:] = u if problem.dual_map.linear else problem.dual_map.weights(u)
        point = u if not problem.dual_map.linear else np.zeros(0)
        return OEGState(weights, theta, mu, offsets, entropy, np.full(len(task), self.eta), task.features.scratch(), point)

    def update(self, problem: Problem, state: OEGState, item: int) -> tuple[OEGState, bool]:
        """One step on block `item`."""
        task, w = cast(Task, problem.task), state.weights.v
        block = slice(state.offsets[item], state.offsets[item + 1])
        theta, mu, p = state.theta[block], state.mu[block], float(problem.p[item])
        scores = task.scores(w, item)
        costs = _costs(problem, item)
        most = 1.0 if costs is None else MOST
        eta = float(state.eta[item])
        for attempt in range(self.max_cuts):
            proposal = (1.0 - eta) * theta + eta * scores if costs is None else theta + eta * (costs + scores)
            log_z, marginals = task.marginals(proposal, item)
            entropy = log_z - dot(proposal, marginals)
            shift = mu - marginals
            square = task.features.spread(item, shift, state.scratch)
            # D(new) - D(old), exactly: entropies, and w moves by p/lam Psi^T shift
            rise = entropy - float(state.entropy[item]) if costs is None else -dot(costs, shift)
            gain = p * rise - p * dot(scores, shift) - 0.5 * p * p / problem.lam * square
            if gain >= 0.0:
                task.features.flush(item, state.scratch, p / problem.lam, state.point if len(state.point) else w)
                if len(state.point):
                    w[:] = problem.dual_map.weights(state.point)
                theta[:], mu[:] = proposal, marginals
                state.entropy[item] = entropy
                state.eta[item] = min(most, eta * 1.03) if attempt == 0 else eta
                return state, True
            task.features.flush(item, state.scratch, 0.0, w)
            eta *= 0.7
        state.eta[item] = eta
        return state, False

    def objective(self, problem: Problem, state: OEGState) -> tuple[float, float]:
        """Primal at the weights, and the dual value, with the sum over the blocks recomputed in float64."""
        loss, total = self.dual_part(problem, state), self.own_sum(problem, state)
        return problem.primal(self.weights(problem, state)), problem.regulariser.bound(loss, problem.lam, pieces_of(total))

    # what CoCoA asks of the solver of a shard (trainers/cocoa.py)

    def local_problem(self, problem: Problem, curvature: DualMap) -> Problem:
        """With lam / sigma', at which w moves sigma' times as fast. Its steps know one sigma', the largest of any weight."""
        return replace(problem, lam=problem.lam / float(curvature.scale.max()))

    def begin(self, problem: Problem, blocks: OEGState, w: Floats) -> OEGState:
        """The blocks at other weights than their sum."""
        weights = Weights.zeros(problem.task.dim, problem.task.dtype)
        weights.v[:] = w
        return blocks._replace(weights=weights, scratch=cast(Task, problem.task).features.scratch())

    def without_weights(self, state: OEGState) -> OEGState:
        """The blocks alone."""
        return state._replace(weights=Weights.zeros(0, state.weights.v.dtype), scratch=state.scratch[:0].copy())

    def own_sum(self, problem: Problem, state: OEGState) -> Floats:
        """The w that belongs to the blocks."""
        return weights_of(problem, state.mu, state.offsets)

    def dual_part(self, problem: Problem, state: OEGState) -> float:
        """sum_i p_i H(alpha_i), in order, and what fixed scores add; minus infinity where rounding may be all of it. With the
        margin, sum_i p_i <c_i, mu_i - mu_i(truth)>.

        H is the difference of log_z and theta . mu, which are about 1e24 where features are about 1e12.
        """
        if isinstance(problem.surrogate, MarginRescaling):
            errors = np.split(-_errors(problem, state.mu, state.offsets), state.offsets[1:-1])
            costs = [dot(cast(Floats, _costs(problem, i)), error) for i, error in enumerate(errors)]
            return running_sum(problem.p * np.array(costs))
        fixed = [float(problem.p[i]) * self._fixed_part(problem, state, i) for i in range(len(problem.task))]
        sizes = np.abs(state.theta) * state.mu * np.repeat(problem.p, np.diff(state.offsets))
        return sound(running_sum(problem.p * state.entropy) + sum(fixed), 2.0 * float(sizes.sum()))

    @staticmethod
    def _fixed_part(problem: Problem, state: OEGState, i: int) -> float:
        """What fixed scores add to the dual: their expectation less their value at the truth; zero for hard constraints."""
        task = cast(Task, problem.task)
        fixed = task.features.fixed_scores(i)
        if fixed is None:
            return 0.0
        possible = np.where(fixed > 0.5 * FORBIDDEN, fixed, 0.0)  # what is forbidden has probability zero
        return dot(possible, state.mu[state.offsets[i] : state.offsets[i + 1]]) - float(possible[task.parts[i]].sum())


def weights_of(problem: Problem, mu: Floats, offsets: Integers) -> Floats:
    """w = sum_i p_i/lam Psi_i^T (mu_i(truth) - mu_i), in float64."""
    return cast(Task, problem.task).features.total(_errors(problem, mu, offsets), offsets, problem.p / problem.lam)


def _errors(problem: Problem, mu: Floats, offsets: Integers) -> Floats:
    """mu_i(truth) - mu_i of all samples."""
    errors = -mu
    true = [parts + start for parts, start in zip(cast(Task, problem.task).parts, offsets[:-1].tolist(), strict=True)]
    np.add.at(errors, np.concatenate([*true, np.empty(0, np.int64)]), 1.0)
    return errors


def _costs(problem: Problem, i: int) -> Floats | None:
    """c_i with the weight that the loss has; None for the log loss."""
    weight = problem.surrogate.loss_weight if isinstance(problem.surrogate, MarginRescaling) else None
    return None if weight is None else weight * cast(Task, problem.task).costs(i)[1]
