"""Online proximal descent (Martins, Smith, Xing, Aguiar & Figueiredo 2011, algorithm 1), for composite regularisers.

Minimises  lam sum_j r_j(w) + sum_i p_i H_i(w)  by one instance at a time: a subgradient step on H_i alone, then the prox of each
term

    prox_{eta lam r_j}(w) = argmin_x |x - w|^2 / 2 + eta lam r_j(x),

which sets groups or weights to zero, as steps on a subgradient of r_j would not. Where r_j depends on the norms of groups alone,
its prox is a factor for each group (proposition 1): with lazily scaled groups a step costs what it touches.

Two bounds come with a run. The regret against any w*: with eta_t falling, sum_t F_t(w_t) - F_t(w*) is at most
D^2 / (2 eta_T) + 1/2 sum_t eta_t |g_t|^2, where D bounds the distances |w_t - w*| and g_t is the subgradient of step t
(lemma 4, summed up as in proposition 5). With eta_t = 1 / (sigma t) and lam r at least sigma-strongly convex it is
sigma/2 |w*|^2 + sum_t |g_t|^2 / (2 sigma t), which grows as log t: equation 16. The paper's L~ (25) moves sigma/2 |w|^2 to the
loss, whose slope it makes larger; in the prox it takes as much from the distances and leaves g_t as it is. And a dual value: the
mean of the outputs found, those of later passes weighing more, is a feasible dual point.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Literal, NamedTuple

import numpy as np

from structpred.core.regulariser import Regulariser, capabilities, shares
from structpred.core.sparse import add_sparse
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import ConvergenceError, ParameterError
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.signed import Signed
from structpred.trainers.online.grouped_weights import FunctionWeights, GroupedWeights, online_weights
from structpred.trainers.problem import Problem, Surrogate, Trainer, is_convex, once_per_problem
from structpred.trainers.states import COUNT, Values


class ProximalState(NamedTuple):
    """weights: w. steps: t. corners: the sum of the differences found, those of pass e weighed by e n p_i; empty if no dual value
    is kept. offset, mass: of their offsets, and of e. energy: 1/2 sum_t eta_t |g_t|^2. farthest: the largest |w_t|. These are
    single numbers, and so is n_pass, e. group_weights: after each pass |w_k| / sum_k |w_k|. regrets: then the bound on the regret
    of a step, on average.
    """

    weights: GroupedWeights | FunctionWeights
    steps: Annotated[Integers, COUNT]
    corners: Floats
    offset: Floats
    mass: Annotated[Floats, Values(0)]
    energy: Annotated[Floats, Values(0)]
    farthest: Annotated[Floats, Values(0)]
    n_pass: Annotated[Integers, COUNT]
    group_weights: Annotated[Floats, Values(0, 1, grows=True)]
    regrets: Annotated[Floats, Values(0, np.inf, grows=True)]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        right = self.group_weights.shape == (int(self.n_pass) - 1, len(self.weights.factors)) and int(self.n_pass) > 0
        return None if right and len(self.regrets) == int(self.n_pass) - 1 else "group_weights, regrets: expected a row a pass"


class OnlineProximal(Trainer):
    """Any regulariser with a prox, online: a subgradient step on the loss, then a prox step for each term of the regulariser.

    Parameters
    ----------
    eta0 : float
        The step size of step t is eta0 / sqrt(t), eta0 > 0. `best_rate` chooses one as the paper does.
    sigma : float, optional
        If given, the step size is 1 / (sigma t) instead: for lam r whose last term is sigma-strongly convex, such as
        `ElasticNetMKL`, or any r and `L2` in a `Composite` (problem 25). The regret is then O(log t), else it need not fall.
    radius : float or "reach", optional
        After each step w is projected onto the ball |w| <= radius (line 9); "reach": onto one that is known to hold every optimum
        (proposition 8), for |w|^2 <= 2 r(w) the radius sqrt(2 J(0) / lam).
    averaged : bool
        Whether to return the mean of the iterates, which is not sparse; False: the last one, as in the paper.
    certificate : bool
        Whether to keep a dual point (a float64 for each weight).

    Raises
    ------
    ParameterError
        For eta0, sigma or radius that are not positive; in training for "reach" where no ball is known to hold the optima.

    References
    ----------
    Martins et al. (2011), Online Multiple Kernel Learning for Structured Prediction, algorithm 1 and propositions 1 and 5.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=OnlineProximal(), regulariser="l1", C=10.0).fit([np.eye(2)], [["a", "b"]])
    >>> model.predict([np.eye(2)])[0].tolist()
    ['a', 'b']
    """

    name = "proximal"
    regulariser_requires = ()
    surrogates = (MarginRescaling, LogLoss)
    certified = True
    online = True
    needs_n_total = True
    nonconvex = True

    def __init__(
        self, *, eta0: float = 1.0, sigma: float | None = None, radius: float | Literal["reach"] | None = None,
        averaged: bool = False, certificate: bool = True,
    ) -> None:  # fmt: skip
        for name, value in (("eta0", eta0), ("sigma", sigma), ("radius", None if radius == "reach" else radius)):
            if value is not None and (isinstance(value, bool | str) or not (np.isfinite(value) and value > 0)):
                raise ParameterError(f"{name} must be a positive number, got {value!r}")
        self.eta0, self.sigma, self.radius, self.averaged, self.certificate = eta0, sigma, radius, averaged, certificate

    @classmethod
    def certifies(cls, surrogate: Surrogate) -> bool:
        """Whether there is a gap: only a maximum of linear functions has the dual value."""
        return surrogate.piecewise_linear and is_convex(surrogate)

    def init_state(self, problem: Problem) -> ProximalState:
        """Line 2: w = 0."""
        task = problem.task
        kept = self.certificate and self.certifies(problem.surrogate)
        weights = online_weights(task, averaged=self.averaged)
        offset, mass, energy, farthest = (np.array(0.0) for _ in range(4))
        return ProximalState(
            weights, np.array(0), np.zeros(task.dim if kept else 0), offset, mass, energy, farthest,
            np.array(1), np.empty((0, len(weights.factors))), np.empty(0),
        )  # fmt: skip

    def update(self, problem: Problem, state: ProximalState, item: int) -> tuple[ProximalState, bool]:
        """Lines 4-9 for one instance."""
        weights, share, t = state.weights, problem.share(item), state.steps.item() + 1
        eta = self.eta0 / np.sqrt(t) if self.sigma is None else 1.0 / (self.sigma * t)
        step = problem.surrogate.term(problem.task, weights.v, item, weights.scales)  # line 4
        psi = step.difference
        if len(psi.indices):
            square = share * share * weights.add(psi, eta * share)  # line 5
            state.energy.fill(state.energy.item() + 0.5 * eta * square)
        if len(state.corners):
            e = state.n_pass.item()
            add_sparse(state.corners, psi, e * share)
            state.offset.fill(state.offset.item() + e * share * problem.surrogate.offset(step))
            state.mass.fill(state.mass.item() + e)
        if isinstance(problem.regulariser, Signed):
            weights.cut(psi.indices, problem.regulariser.signs)  # shrinking changes no sign: the step alone may have
        for term, reduced in _terms(problem):  # lines 6-8
            if reduced:
                norms = weights.norms
                weights.shrink(norms, term.group_prox(norms, eta * problem.lam))  # type: ignore[attr-defined]
            else:
                weights.prox(term, eta * problem.lam)
        # line 9, and the largest |w_t| so far
        norms, radius = weights.norms, self._ball(problem)
        length = float(np.sqrt(norms @ norms))
        if length > radius:
            weights.shrink(norms, norms * (radius / length))
            length = radius
        if length > state.farthest.item():
            state.farthest.fill(length)
        state.steps.fill(t)
        if self.averaged:
            weights.include()
        return state, len(psi.indices) > 0

    def _ball(self, problem: Problem) -> float:
        """The radius of line 9, inf for none."""
        radius = (_reach(problem) if self.radius == "reach" else self.radius) or np.inf
        if self.radius == "reach" and not np.isfinite(radius):
            raise ParameterError(
                f'radius="reach": no ball is known to hold the optima of {type(problem.regulariser).__name__} on these data; '
                "give a number"
            )
        return radius

    def finish_pass(self, problem: Problem, state: ProximalState) -> ProximalState:
        """The squares anew, and what is reported of the pass."""
        state.weights.recount()
        row = shares(state.weights.norms)
        regret = regret_bound(self, problem, state)
        state.n_pass.fill(state.n_pass.item() + 1)
        return state._replace(
            group_weights=np.concatenate((state.group_weights, row[None])), regrets=np.append(state.regrets, regret)
        )

    def weights(self, problem: Problem, state: ProximalState) -> Vector:
        """The last iterate, or the mean, which rounding may have taken out of the regulariser's domain."""
        found, r = state.weights.average(), problem.regulariser
        if isinstance(r, Signed):
            found = r.cut(found)
        return r.prox(found, 0.0) if self.averaged and "terms" not in capabilities(r) else found

    def objective(self, problem: Problem, state: ProximalState) -> tuple[float, float | None]:
        """Primal at the returned weights; the dual value of the mean output, if the passes so far were whole."""
        primal, mass = problem.primal(self.weights(problem, state)), state.mass.item()
        if not len(state.corners) or mass == 0.0 or state.steps.item() % len(problem.task):
            return primal, None
        pieces = (state.corners[k : k + (1 << 18)] / (mass * problem.lam) for k in range(0, len(state.corners), 1 << 18))
        dual = problem.regulariser.bound(state.offset.item() / mass, problem.lam, pieces)
        return primal, dual if np.isfinite(dual) else None  # none where the conjugate is infinite there

    def report(self, problem: Problem, state: ProximalState) -> dict[str, Floats]:
        """group_weights: a row a pass; regret_bound: after each pass, by how much a step was worse than the best fixed w;
        dual_point: u of the mean output, where w is known as a function of it that is not linear."""
        known = {"regret_bound": state.regrets} if np.isfinite(state.regrets).all() else {}
        r = problem.regulariser
        bent = isinstance(r, Signed) or ("dual_map" in capabilities(r) and not problem.dual_map.linear)
        if bent and state.mass.item() > 0.0:
            known["dual_point"] = state.corners / (state.mass.item() * problem.lam)
        return {"group_weights": state.group_weights, **known}


@once_per_problem
def _terms(problem: Problem) -> list[tuple[Regulariser, bool]]:
    """The terms of the regulariser, and whether each has a prox of group norms."""
    r = problem.regulariser.of if isinstance(problem.regulariser, Signed) else problem.regulariser
    terms = r.terms() if "terms" in capabilities(r) else (r,)  # type: ignore[attr-defined]
    return [(term, "group_prox" in capabilities(term)) for term in terms]


@once_per_problem
def _reach(problem: Problem) -> float:
    """The largest |w*|: at the optimum lam r(w*) is at most the objective at w = 0; inf for a part of the data."""
    if not np.isclose(problem.p.sum(), 1.0):
        return np.inf
    zero: Vector = np.zeros(problem.task.dim, problem.task.dtype)
    return problem.regulariser.reach(problem.primal(zero) / problem.lam)


def regret_bound(trainer: OnlineProximal, problem: Problem, state: ProximalState) -> float:
    """By how much the steps so far were worse than the best fixed w, at most, on average; inf where |w*| has no known bound."""
    t, best = state.steps.item(), min(_reach(problem), trainer._ball(problem))  # the best w of the ball
    if t == 0 or not np.isfinite(best):
        return np.inf
    distance = best + state.farthest.item()
    if trainer.sigma is None:
        eta = trainer.eta0 / np.sqrt(t)
        return float((distance * distance / (2.0 * eta) + state.energy.item()) / t)
    # 1 / eta_t grows by sigma a step: the prox of the last term pays for as much of it as that term is strongly convex
    unpaid = max(trainer.sigma - _convexity(problem), 0.0) * (t - 1)
    return (0.5 * (trainer.sigma * best * best + unpaid * distance * distance) + float(state.energy)) / t


def _convexity(problem: Problem) -> float:
    """How strongly convex the last term of lam r is; the steps of the others follow, so theirs do not count."""
    return problem.lam * _terms(problem)[-1][0].strong_convexity


def steps_needed(problem: Problem, trainer: OnlineProximal, slope: float, accuracy: float, delta: float = 0.05) -> int:
    """Proposition 6, with constants: after this many steps the mean of the iterates is within `accuracy` of the optimum with
    probability 1 - delta, over instances drawn with replacement. slope: no n p_i |psi_i| is above it.

    With sigma the expected excess is at most the mean regret (16), and Markov's inequality gives the probability. Else it is
    that of (15) and of Hoeffding's inequality for martingales.

    Raises ParameterError where no ball or strong convexity makes the bound fall, or delta is not in (0, 1), accuracy above 0.
    """
    reach, ball = _reach(problem), trainer._ball(problem)
    known = np.isfinite(ball) if trainer.sigma is None else _convexity(problem) >= trainer.sigma * (1.0 - 1e-12)
    if not (known and np.isfinite(reach) and accuracy > 0.0 and 0.0 < delta < 1.0):
        raise ParameterError(
            "steps_needed: expected accuracy > 0, delta in (0, 1), and a radius, or a sigma that the last term of lam r is "
            f"strongly convex with; got {accuracy}, {delta} and {trainer}"
        )
    if trainer.sigma is None:
        span = min(reach, ball) + ball
        root = span * span / (2.0 * trainer.eta0) + slope * slope * trainer.eta0
        root += slope * span * float(np.sqrt(2.0 * np.log(1.0 / delta)))
        return int(np.ceil((root / accuracy) ** 2)) + 1
    first, steps = 0.5 * trainer.sigma * min(reach, ball) ** 2, 1.0
    for _ in range(100):  # T = B(T + 1) / (delta accuracy) from below: B grows as log T, so that the iteration contracts
        total = first + slope * slope * (1.0 + float(np.log(steps + 1.0))) / (2.0 * trainer.sigma)
        steps = max(total / (delta * accuracy), 1.0)
    return int(np.ceil(steps)) + 1


def best_rate(objective: Callable[[float], float | None], rates: Sequence[float] = (0.01, 0.1, 1.0, 10.0)) -> float:
    """The eta0 with the least objective after a few passes, as the paper chooses it (section 4.1): of `rates`, and where the best
    of them is the first or the last one in size, of powers of ten beyond it, as long as they are better.

    objective: trains with an eta0. Raises ParameterError where the weights grow beyond bounds with each of them.

    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(C=10.0, max_iter=5)
    >>> X, y = [np.eye(2)], [["a", "b"]]
    >>> best_rate(lambda eta0: model.set_params(trainer=OnlineProximal(eta0=eta0)).fit(X, y).certificate_.primal)
    0.1
    """

    @cache
    def value(rate: float) -> float:
        try:
            found = objective(rate)
        except ConvergenceError:
            return np.inf
        return np.inf if found is None else found

    best = min(rates, key=value)
    factor = {max(rates): 10.0, min(rates): 0.1}.get(best, 1.0)
    while value(factor * best) < value(best):
        best *= factor
    if not np.isfinite(value(best)):
        raise ParameterError(f"eta0: none of {rates} gives finite weights; scale the features, or try smaller ones")
    return best
