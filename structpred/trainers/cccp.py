"""The concave-convex procedure for outputs that are known in part (Yu & Joachims 2009, algorithm 1; Yuille & Rangarajan 2003).

Where the truth of instance i is some output of a set A_i, and no choice among them costs anything, the objective is

    F(w) = lam r(w) + sum_i p_i min_{h in A_i} H_i(w; h),

H_i(w; h) the convex surrogate with h as the true output. For the hinge it is convex minus convex,
max_y [loss(y) + <w, phi(y)>] - max_{h in A_i} <w, phi(h)>. A round completes the outputs, h_i = argmax_{h in A_i} <w, phi(h)>,
and minimises the convex function that these give, which lies above F and touches it at w. So F falls from round to round, to a
local optimum at best.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector, Weights
from structpred.errors import ParameterError
from structpred.objectives.margin import LatentHinge
from structpred.runtime.ranges import packed
from structpred.task.partial_task import PartialTask, is_partial
from structpred.trainers.problem import ByInner, Problem, Surrogate, Trainer, kept
from structpred.trainers.states import COUNT, Values

_WHOLE = Values(-(2**62), 2**62, grows=True)
_LEVEL = Values(0, np.inf)


class CCCPState(NamedTuple):
    """inner: of the trainer inside. first: the weights of the latent perceptron, empty once it is over. labels, ends: the outputs
    of the present round, flat. best: the weights with the smallest F so far; value: their F, inf while it is not known. before:
    F where the present round began. passes: of this round. rounds: how many were begun. done: 1 at the end. values: F at the
    end of each round.
    """

    inner: Any
    first: Weights
    labels: Annotated[Integers, _WHOLE]
    ends: Annotated[Integers, Values(0, 2**60)]
    best: Vector
    value: Annotated[Floats, _LEVEL]
    before: Annotated[Floats, _LEVEL]
    passes: Annotated[Integers, COUNT]
    rounds: Annotated[Integers, COUNT]
    done: Annotated[Integers, Values(0, 1)]
    values: Annotated[Floats, Values(grows=True)]

    def outputs(self) -> list[Labels]:
        """The outputs of the present round, one array each."""
        return [self.labels[a:b] for a, b in pairwise(self.ends.tolist())]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        whole = self.ends[0] == 0 and (np.diff(self.ends) >= 0).all() and self.ends[-1] == len(self.labels)
        return None if whole else "ends: expected ascending places in labels"


class CCCP(ByInner, Trainer):
    """Outputs that are known in part: rounds of completing them and of training on them, by any trainer.

    The first completion is that of a latent perceptron. A trainer that keeps a dual value is judged by F: a round ends after
    `passes` passes that lowered F, its weights are kept only if they did, and training ends where the trainer's gap proves
    that no weights of the round have an F lower by more than a share `tol`. Other trainers go on to the next round after
    `passes` passes, until nothing changes. Where the trainer can, a round starts from the state of the one before.
    Without missing labels it is the trainer inside, with the same weights.

    Parameters
    ----------
    trainer : Trainer
        The trainer of a round: any that minimises the surrogate.
    passes : int
        Passes over the data in a round.
    rounds : int
        The largest number of rounds; max_iter bounds the passes of all together.
    start : int
        Passes of the latent perceptron before the first round.
    tol : float
        By which share of itself F has to fall.

    Raises
    ------
    ParameterError
        For passes, rounds or start below 1, tol below 0, or something that is not a trainer.

    References
    ----------
    Yu and Joachims (2009), Learning Structural SVMs with Latent Variables, algorithm 1.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> from structpred.trainers.bcfw import BCFW
    >>> X = [np.eye(2)] * 3
    >>> model = ChainLabeler(trainer=CCCP(BCFW()), missing="_").fit(X, [["a", None], [None, "b"], ["a", "b"]])
    >>> model.predict(X)[1].tolist()
    ['a', 'b']
    """

    completes = True

    def __init__(self, trainer: Trainer, *, passes: int = 2, rounds: int = 50, start: int = 3, tol: float = 1e-3) -> None:
        if not isinstance(trainer, Trainer) or trainer.completes:
            raise ParameterError(f"CCCP: expected the trainer of a round, such as BCFW(), got {trainer!r}")
        if min(passes, rounds, start) < 1 or not (np.isfinite(tol) and tol >= 0):
            raise ParameterError(f"expected passes, rounds, start >= 1 and tol >= 0, got {passes}, {rounds}, {start} and {tol}")
        self.trainer, self.passes, self.rounds, self.start, self.tol = trainer, passes, rounds, start, float(tol)

    def certifies(self, surrogate: Surrogate) -> bool:  # type: ignore[override]
        """Never: the problem is not convex."""
        return False

    def init_state(self, problem: Problem) -> CCCPState:
        """Zero weights, and the completions that belong to them."""
        labels, ends = packed(_partial(problem).labels)
        first = Weights.zeros(problem.task.dim, problem.task.dtype, averaged=True)
        inner = self.trainer.init_state(_round_problem(problem, _partial(problem).labels))
        numbers = np.array(np.inf), np.array(np.inf), np.array(0), np.array(0), np.array(0)
        return CCCPState(inner, first, labels, ends, first.v.copy(), *numbers, np.empty(0))

    def state_after(self, problem: Problem, state: CCCPState, passes: int) -> CCCPState:
        """Without the weights of the latent perceptron once its passes are over."""
        return state if passes < self.start else state._replace(first=Weights.zeros(0, problem.task.dtype))

    def order(self, problem: Problem, state: CCCPState, rng: np.random.Generator, n_pass: int) -> Integers:
        """That of the trainer of a round; nothing at the end."""
        if state.done:
            return np.empty(0, np.int64)
        if len(state.first.v):
            return rng.permutation(len(problem.task))
        return self.trainer.order(_present(problem, state), state.inner, rng, int(state.passes))

    def update(self, problem: Problem, state: CCCPState, item: int) -> tuple[CCCPState, bool]:
        """A step of the latent perceptron at first, then one of the trainer of a round."""
        if len(state.first.v):
            step = LatentHinge(loss_weight=0.0).term(problem.task, state.first.v, item).difference
            state.first.add(step, 1.0)
            state.first.include(1.0)
            return state, len(step.indices) > 0
        inner, changed = self.trainer.update(_present(problem, state), state.inner, item)
        return (state if inner is state.inner else state._replace(inner=inner)), changed

    def finish_pass(self, problem: Problem, state: CCCPState) -> CCCPState:
        """After the last pass of a round: what it reached, and the next one."""
        if state.done:
            return state
        state = state._replace(passes=np.array(state.passes + 1))
        if len(state.first.v):
            if state.passes < self.start:
                return state
            w = state.first.average()
            state = self.state_after(problem, state._replace(best=w), self.start)
            return self._next_round(problem, state, _partial(problem).completed(w))
        present = _present(problem, state)
        state = state._replace(inner=self.trainer.finish_pass(present, state.inner))
        if state.passes % self.passes:
            return state
        w = self.trainer.weights(present, state.inner)
        outputs = _partial(problem).completed(w)  # line 4: the best completions at the new weights
        value = self.trainer.primal(_round_problem(problem, outputs), w)
        safe = self.trainer.certifies(problem.surrogate)
        if value < state.value or not safe:
            state = state._replace(best=w, value=np.array(value))
        fell = bool(state.before - value > self.tol * abs(value))
        state = state._replace(values=np.append(state.values, state.value))
        if safe and not fell:
            primal, dual = self.trainer.objective(present, state.inner)
            if primal is not None and dual is not None and primal - dual <= self.tol * abs(value):
                return state._replace(done=np.array(1))  # line 6: this round's convex function cannot fall any more
            return state  # it was not minimised well enough: go on with the same outputs
        if state.rounds >= self.rounds:
            return state._replace(done=np.array(1))
        return self._next_round(problem, state._replace(before=np.array(value)), outputs)

    def _next_round(self, problem: Problem, state: CCCPState, outputs: list[Labels]) -> CCCPState:
        """Line 5: minimise the convex function of these outputs, from where the trainer can begin."""
        rows = [i for i, (y, h) in enumerate(zip(state.outputs(), outputs, strict=True)) if not np.array_equal(y, h)]
        labels, ends = packed(outputs) if rows else (state.labels, state.ends)
        present = _present(problem, state._replace(labels=labels, ends=ends))
        inner = self.trainer.relabelled(present, state.inner, np.array(rows, dtype=np.int64)) if rows else state.inner
        rounds = np.array(state.rounds + 1)
        return state._replace(inner=inner, labels=labels, ends=ends, passes=np.array(0), rounds=rounds)

    def weights(self, problem: Problem, state: CCCPState) -> Vector:
        """Those with the smallest F at the end of a round; the present ones of trainers without a dual value."""
        if len(state.first.v):
            return state.first.average()
        if state.rounds == 1 and state.passes == 0:  # no pass of the first round yet
            return state.best.copy()
        if np.isfinite(state.value) and self.trainer.certifies(problem.surrogate):
            return state.best.copy()
        return self.trainer.weights(_present(problem, state), state.inner)

    def objective(self, problem: Problem, state: CCCPState) -> tuple[float, None]:
        """F at the weights to return; no bound on its minimum is known."""
        known = np.isfinite(state.value) and self.trainer.certifies(problem.surrogate)
        return float(state.value) if known else self.primal(problem, self.weights(problem, state)), None

    def primal(self, problem: Problem, w: Vector) -> float:
        """F(w): the convex function of the best completions at w."""
        return self.trainer.primal(_round_problem(problem, _partial(problem).completed(w)), w)

    def finished(self, problem: Problem, state: CCCPState) -> bool:
        """Whether the last round could not lower F."""
        return bool(state.done)

    def report(self, problem: Problem, state: CCCPState) -> dict[str, Floats]:
        """round_objectives: the smallest F so far at the end of each round (of a part of it, where it took more passes)."""
        return {"round_objectives": state.values}


def _partial(problem: Problem) -> PartialTask:
    if not is_partial(problem.task):
        raise ParameterError("CCCP: all outputs are known; take the trainer inside as it is")
    return problem.task


def _present(problem: Problem, state: CCCPState) -> Problem:
    """The convex problem of the present round, made once."""
    present: dict[str, Any] = kept(problem, "problem of the present round of CCCP, by its labels", dict)
    if present.get("labels") is not state.labels:
        present.update(labels=state.labels, problem=_round_problem(problem, state.outputs()))
    return cast(Problem, present["problem"])


def _round_problem(problem: Problem, outputs: list[Labels]) -> Problem:
    return replace(problem, task=_partial(problem).with_labels(outputs))
