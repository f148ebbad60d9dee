"""A trainer that begins where some passes of another ended: what is quick at first, then what is quick at the end."""

from dataclasses import replace
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.types import Integers
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.objectives.regularisers.l2 import L2
from structpred.runtime.settings import checked_whole
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.names import can_minimise
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.problem import ByInner, Problem, Surrogate, Trainer, kept
from structpred.trainers.states import COUNT


class WarmState(NamedTuple):
    """done: passes so far of the trainer that begins, a single number. state: of whichever trainer is at work."""

    done: Annotated[Integers, COUNT]
    state: Any


class WarmStart(ByInner, Trainer):
    """L-BFGS or OWL-QN from the weights that some passes of another trainer lead to, as one run with one history.

    Exponentiated gradient comes near the optimum in few passes, however many samples there are; L-BFGS closes the rest of the
    gap, and its sums over the data do not mind how many machines share them. How strongly the loss curves along each weight
    where the first ends, the diagonal of the empirical Fisher information, is L-BFGS's first guess of the Hessian. A pass of
    the history is a pass or round of the trainer that begins, then an iteration of the other. The state of the first is
    dropped where the other begins.

    Parameters
    ----------
    trainer : Trainer
        The trainer that ends the run: `LBFGS`, the default, or `OWLQN`. What is minimised, and certified, is its objective.
    first : Trainer
        The one that begins: `OnlineEG` if none is given, or one such as `CoCoA(OnlineEG(), shards=16)`. Where it cannot minimise
        the problem's regulariser, it takes 1/2 |w|^2 in its place, and these passes have no dual value.
    passes : int
        Its passes.

    Raises
    ------
    ParameterError
        For passes < 1, and for a trainer that can begin at no weights but its own.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=WarmStart(LBFGS(), OnlineEG()), tol=0.01).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    def __init__(self, trainer: Trainer | None = None, first: Trainer | None = None, *, passes: int = 3) -> None:
        self.trainer, self.first = trainer or LBFGS(), first or OnlineEG()
        if not (isinstance(self.trainer, Trainer) and hasattr(self.trainer, "scaled_at") and isinstance(self.first, Trainer)):
            raise ParameterError(f"WarmStart: expected LBFGS() or OWLQN(), and a trainer that begins, got {trainer!r}, {first!r}")
        self.passes = checked_whole(passes, "passes")

    @property
    def requires(self) -> tuple[str | tuple[str, ...], ...]:  # type: ignore[override]
        """What both need of the oracle."""
        return (*self.trainer.requires, *self.first.requires)

    def minimises(self, surrogate: Surrogate) -> bool:  # type: ignore[override]
        """Whether both can."""
        return self.trainer.minimises(surrogate) and self.first.minimises(surrogate)

    def init_state(self, problem: Problem) -> WarmState:
        """That of the trainer that begins."""
        return WarmState(np.array(0), self.first.init_state(self._problem(problem)))

    def state_after(self, problem: Problem, state: WarmState, passes: int) -> WarmState:
        """Of the trainer that is at work after that many passes."""
        if passes < self.passes:
            return state
        return WarmState(np.array(self.passes), cast(Any, self.trainer).like(problem))

    def order(self, problem: Problem, state: WarmState, rng: np.random.Generator, n_pass: int) -> Integers:
        """That of the trainer at work."""
        if self._begins(state):
            return self.first.order(self._problem(problem), state.state, rng, n_pass)
        return self.trainer.order(problem, state.state, rng, n_pass - self.passes)

    def update(self, problem: Problem, state: WarmState, item: int) -> tuple[WarmState, bool]:
        """A step of the trainer at work."""
        if self._begins(state):
            inner, changed = self.first.update(self._problem(problem), state.state, item)
        else:
            inner, changed = self.trainer.update(problem, state.state, item)
        return (state if inner is state.state else state._replace(state=inner)), changed

    def finish_pass(self, problem: Problem, state: WarmState) -> WarmState:
        """After the last pass of the trainer that begins: the other one, at its weights."""
        if not self._begins(state):
            return state._replace(state=self.trainer.finish_pass(problem, state.state))
        before = self._problem(problem)
        inner = self.first.finish_pass(before, state.state)
        done = int(state.done) + 1
        if done < self.passes:
            return WarmState(np.array(done), inner)
        return WarmState(np.array(self.passes), cast(Any, self.trainer).scaled_at(problem, self.first.weights(before, inner)))

    def kept_elsewhere(self, state: WarmState) -> bool:
        """As the trainer at work says."""
        return (self.first if self._begins(state) else self.trainer).kept_elsewhere(state.state)

    def weights(self, problem: Problem, state: WarmState) -> Vector:
        """Those of the trainer at work."""
        if self._begins(state):
            return self.first.weights(self._problem(problem), state.state)
        return self.trainer.weights(problem, state.state)

    def objective(self, problem: Problem, state: WarmState) -> tuple[float | None, float | None]:
        """The objective of the trainer that ends the run, and the dual value of the one at work, under the same regulariser."""
        if not self._begins(state):
            return self.trainer.objective(problem, state.state)
        before = self._problem(problem)
        primal, dual = self.first.objective(before, state.state)
        if before is problem and type(self.trainer).primal is Trainer.primal:
            return primal, dual
        return self.trainer.primal(problem, self.weights(problem, state)), dual if before is problem else None

    def primal(self, problem: Problem, w: Vector) -> float:
        """The objective of the trainer that ends the run."""
        return self.trainer.primal(problem, w)

    def gap_estimate(self, problem: Problem, state: WarmState) -> float | None:
        """That of the trainer at work."""
        if self._begins(state):
            return self.first.gap_estimate(self._problem(problem), state.state)
        return self.trainer.gap_estimate(problem, state.state)

    def finished(self, problem: Problem, state: WarmState) -> bool:
        """Whether the trainer that ends the run has ended."""
        return not self._begins(state) and self.trainer.finished(problem, state.state)

    def _begins(self, state: WarmState) -> bool:
        return int(state.done) < self.passes

    def _problem(self, problem: Problem) -> Problem:
        """What the trainer that begins minimises."""
        if can_minimise(self.first, problem.regulariser):
            return problem
        return kept(problem, "warm start under 1/2 |w|^2", lambda: replace(problem, regulariser=L2()))
