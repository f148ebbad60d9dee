"""Contract check for trainers: bounds, weights and states on a small problem are what the shared loop takes them for."""

from contextlib import suppress
from typing import Any

import numpy as np

from structpred.contracts.engine import Examiner, Report, examined, kind_of
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats
from structpred.errors import OracleError, StructpredError
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.names import require, trainers
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.states import flatten, rebuild

#: passes, what bounds may differ by, and who says what the optimum is at most: the first that can minimise the problem
PASSES, NEAR, REFERENCES = 3, 1e-6, ("bmrm", "lbfgs", "bcfw", "sgd")


def check_trainer(trainer: Trainer, problem: Problem | None = None, *, seed: int = 0) -> Report:
    """Check a trainer for three passes over a problem with an exact oracle; None: a few rows of four classes.

    After the first step and each pass the weights must be finite, of length dim and the task's dtype. The primal of `objective`
    must be `primal` at what `weights` gives, the dual at most each primal that is known, a reference run's among them. A state
    that is flattened and built again must go on with the same bits; `last_objective` must agree. Raises OracleError, which
    lists every broken rule.

    >>> from structpred.trainers.bcfw import BCFW
    >>> check_trainer(BCFW()).checked["dual"]
    3
    """
    given = few_classes(trainer) if problem is None else problem
    require(trainer, given)
    return examined(trainer, lambda examiner: _Run(examiner, trainer, given).examine(), OracleError, seed)


def few_classes(trainer: Trainer) -> Problem:
    """A few rows of four classes, with what the trainer minimises by itself."""
    from structpred.features.label_rows import LabelRows
    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.multiclass import MulticlassOracle
    from structpred.task.task import Task

    rng = np.random.default_rng(0)
    rows, y = LabelRows(rng.normal(size=(12, 3)), 4, dtype=np.float64), rng.integers(4, size=(12, 1))
    task = Task(rows, MulticlassOracle(), list(y), rows.shapes, Hamming())
    return Problem(task, trainer.surrogates[0](), 0.05, regulariser=trainer.default_regulariser())


class _Run:
    """Some passes of a trainer, and the least primal that is known."""

    def __init__(self, examiner: Examiner, trainer: Trainer, problem: Problem) -> None:
        self.examiner, self.trainer, self.problem = examiner, trainer, problem
        self.least = trainer.primal(problem, np.zeros(problem.task.dim, problem.task.dtype))
        for kind in (trainers()[name] for name in REFERENCES if trainer.certifies(problem.surrogate)):
            with suppress(StructpredError):  # it cannot minimise this problem: the next one may
                found = train(problem, kind(), RunSettings(max_iter=30, tol=NEAR))
                self.least = min(self.least, trainer.primal(problem, found.weights))
                break

    def ask(self, method: str, where: str, *args: Any) -> Any:
        return self.examiner.ask(getattr(self.trainer, method), where, self.problem, *args)

    def examine(self) -> None:
        state, insist, n = self.ask("init_state", "the start"), self.examiner.insist, len(self.problem.task)
        arrays = isinstance(state, tuple) and hasattr(state, "_fields") and flatten(state)
        cause = _cause(state, "numbers are arrays, np.array(0)")
        insist("state", arrays, "the start", "a NamedTuple of arrays", kind_of(state), cause)
        for n_pass in range(PASSES):
            where = f"pass {n_pass}"
            order = self.ask("order", where, state, self.examiner.rng, n_pass)
            whole = isinstance(order, np.ndarray) and order.dtype.kind == "i" and (np.abs(order) <= n).all()
            insist("order", whole, where, f"whole numbers from -{n} to {n}", kind_of(order), "another range")
            for k, item in enumerate(order.tolist()):
                found = self.ask("update", where, state, item)
                pair = isinstance(found, tuple) and len(found) == 2 and isinstance(found[1], bool | np.bool_)
                cause = _cause(found, "a state alone")
                insist("update", pair, where, "(state, whether the weights changed)", kind_of(found), cause)
                state = found[0]
                if n_pass == k == 0:
                    self.weights(state, "the first step")
            state = self.ask("finish_pass", where, state)
            insist("finish_pass", isinstance(state, tuple), where, "the state", kind_of(state), _cause(state, "a part of it"))
            self.examine_copies(state, where, n_pass, *self.examine_bounds(state, where))

    def weights(self, state: Any, where: str) -> Floats:
        """What the trainer would return."""
        found, task = self.ask("weights", where, state), self.problem.task
        right = isinstance(found, np.ndarray) and found.shape == (task.dim,) and found.dtype == task.dtype
        expected = f"weights of length {task.dim}, {task.dtype}"
        self.examiner.insist("weights", right, f"the end of {where}", expected, kind_of(found), "intercepts, or another type")
        self.examiner.finite(found, f"the end of {where}", "weights")
        return np.array(found)

    def examine_bounds(self, state: Any, where: str) -> tuple[Floats, float | None, float | None]:
        """The weights and both bounds."""
        expect, bounds = self.examiner.expect, self.ask("objective", where, state)
        pair = isinstance(bounds, tuple) and len(bounds) == 2
        self.examiner.insist("objective", pair, where, "(primal, dual)", kind_of(bounds), _cause(bounds, "one number"))
        primal, dual = bounds
        w = self.weights(state, where)  # afterwards, as in the loop: a trainer may have two to choose from
        at_w = self.ask("primal", where, w)
        self.least = min(self.least, at_w)
        if primal is not None:
            cause = "the objective of other weights (not averaged, of another pass), or a term left out"
            self.examiner.near("primal", primal, at_w, where, "the objective at the weights returned", cause, NEAR)
        if dual is not None:
            ok, cause = (
                dual <= self.least + NEAR * (1.0 + abs(self.least)),
                "a dual of another problem, or a wrong factor or sign",
            )
            expect("dual", ok, where, f"a lower bound on the optimum, which is at most {self.least:.9g}", dual, cause)
            says = self.trainer.certifies(self.problem.surrogate)
            expect("certified", says, where, "certified = True, as there is a dual", says, "another value of `certified`")
        return w, primal, dual

    def examine_copies(self, state: Any, where: str, n_pass: int, w: Floats, *bounds: float | None) -> None:
        """States from a checkpoint, which go on alike; and one that is abandoned."""
        near, cause, ends = self.examiner.near, "something that changes and is not in the state", []
        like = [self.ask("state_after", where, self.ask("init_state", where), n_pass + 1) for _ in range(3)]
        dim = self.trainer.state_dim(self.problem)
        *twins, last = (self.examiner.ask(rebuild, where, new, flatten(state), dim) for new in like)
        for twin in twins:
            near("checkpoint", self.weights(twin, where), w, where, "the weights of the state", cause, 0.0)
            for item in self.ask("order", where, twin, np.random.default_rng(1), n_pass + 1)[:3].tolist():
                twin = self.ask("update", where, twin, item)[0]
            ends.append(self.weights(twin, where))
        near("checkpoint", ends[1], ends[0], where, "the same steps from the same state", cause, 0.0)
        if (call := stand_in(self.trainer, "last_objective", ("weights", "objective"))) is not None:
            for own, wanted in zip(self.examiner.ask(call, where, self.problem, last), (w, *bounds), strict=True):
                if own is not None and wanted is not None:
                    near("last_objective", own, wanted, where, "what `weights` and `objective` give", "another average", NEAR)


def _cause(found: object, otherwise: str) -> str:
    return "a `return` that is missing" if found is None else otherwise
