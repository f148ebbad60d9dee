"""Contract checks of what takes part in training: three functions of a task, surrogates and trainers.

Joint features and losses are what they should be, and no known output beats argmax's; values, pieces, tangents and gradients of a
surrogate belong to one function; bounds, weights and states of a trainer are what the shared loop takes them for.
"""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from structpred.contracts.engine import Examiner, Report, brief, examined, kind_of
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats
from structpred.errors import LossError, OracleError, StructpredError
from structpred.task.callback_task import CallbackTask
from structpred.task.steps import Step, TaskLike, offers
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.names import require, trainers
from structpred.trainers.problem import Problem, Surrogate, Trainer, is_convex
from structpred.trainers.states import flatten, rebuild

#: inputs that are tried, random weights, each with both signs, and samples whose truths are known outputs
KNOWN, WEIGHTS, MOST = 5, 2, 20


class _Known(NamedTuple):
    """An output, its joint features and its loss."""

    output: Any
    phi: SparseVector
    loss: float


def check_callbacks(task: CallbackTask, *, shared: bool = True, seed: int = 0) -> Report:
    """Check the three functions of a task: at zero and random weights, with the loss counted 0, 1 and -1 times; 75 searches.

    joint_feature must give the same numbers each time; a loss is >= 0, and 0 for the truth. With ``exact=True`` argmax must be as
    good as each output that is known: the truth, what it found at other weights, and, where `shared`, the truths of inputs that
    look alike (of one shape). shared=False: constraints depend on the input. Raises OracleError, which lists every broken rule.

    >>> eye = np.eye(3)
    >>> def best(w, x, y, loss_weight): return max(range(3), key=lambda k: w[k] * x + loss_weight * (k != y))
    >>> task = CallbackTask([1.0, -1.0], [0, 2], 3, lambda x, y: x * eye[y], lambda y, k: float(y != k), best)
    >>> check_callbacks(task).checked["wrong argmax"]
    30
    """

    def examine(examiner: Examiner) -> None:
        w = examiner.rng.normal(size=(WEIGHTS, task.dim))
        for i in examiner.rng.permutation(len(task))[:KNOWN].tolist():
            like = [j for j in range(min(len(task), MOST)) if shared and _alike(task.inputs[i], task.inputs[j])]
            with suppress(OracleError):
                _sample(examiner, task, i, [*(0.0 * w[:1]), *w, *-w], [task.outputs[j] for j in like])
        if not task.certified:
            examiner.skip("wrong argmax", "exact=False: argmax may miss the maximum")

    return examined(task, examine, OracleError, seed)


def _alike(x: Any, other: Any) -> bool:
    """Whether two inputs are of one type and one shape, or length."""
    sizes = [np.shape(own) if isinstance(own, np.ndarray) else len(own) if hasattr(own, "__len__") else 0 for own in (x, other)]
    return type(x) is type(other) and sizes[0] == sizes[1]


def _sample(examiner: Examiner, task: CallbackTask, i: int, weights: list[Floats], others: list[Any]) -> None:
    where = f"sample {i}"

    def known(output: Any) -> _Known:
        (phi, again), (loss, other) = ([examiner.ask(f, where, i, output) for _ in "12"] for f in (task.features, task.loss))
        same = loss == other and all(np.array_equal(a, b) for a, b in zip(phi, again, strict=True))
        expected = f"twice the same features and loss of {brief(output)}"
        cause = "a random number, or an array that is filled again"
        examiner.expect("nondeterminism", same, where, expected, again, cause)
        return _Known(output, phi, loss)

    outputs = [known(task.outputs[i])]
    cause = "a similarity, or a constant"
    examiner.near("the truth costs 0", outputs[0].loss, 0.0, where, "the loss of the true output", cause, 0.0)
    for other in others:
        with suppress(StructpredError):  # no output of this input: nothing is said of it
            outputs.append(_Known(other, task.features(i, other), task.loss(i, other)))
    asked = [(w, weight) for w in weights for weight in (0.0, 1.0, -1.0)]
    found = [known(examiner.ask(task.argmax, where, w, i, weight)) for w, weight in asked]
    outputs += found
    for (w, weight), own in zip(asked, found, strict=True) if task.certified else ():
        scores = [float(w[one.phi.indices] @ one.phi.values) + weight * one.loss for one in (own, *outputs)]
        best = int(np.argmax(scores))
        here = f"{where}, {'random weights' if w.any() else 'w = 0'}, loss_weight = {weight:g}"
        expected, came = f"{brief(outputs[best - 1].output)} with {scores[best]:.9g}", f"{brief(own.output)} with {scores[0]:.9g}"
        cause = "it minimises, leaves out loss_weight * loss, or misses outputs; if outputs depend on the input: shared=False"
        ok = scores[0] >= scores[best] - 1e-7 * (1.0 + float(np.abs(scores).max()))
        examiner.expect("wrong argmax", ok, here, expected, came, cause)


#: samples that are tried, and how far apart the weights are whose tangents show the slope
SAMPLES, APART = 8, 1e-3


def check_surrogate(surrogate: Surrogate, task: TaskLike, *, seed: int = 0) -> Report:
    """Check a surrogate on 8 samples of a task: at zero weights, random ones, and neighbours of these; some 200 oracle calls.

    `values` must be the violation of `term`, or its upper bound; a piece's `offset` its violation + <w, difference>; the tangents
    of a convex H_i must lie below its values elsewhere, of which neighbours show the slope; `terms`, `gradient`,
    `squared_gradients` and `term_above` must say what `term` says; H_i >= 0 unless `may_be_negative`. Raises LossError, which
    lists every broken rule.

    >>> from structpred import LabelRows, Task
    >>> from structpred.objectives.margin import MarginRescaling
    >>> from structpred.objectives.part_losses import Hamming
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> task = Task(LabelRows(np.eye(2), 2), MulticlassOracle(), [[0], [1]], [(2,)] * 2, Hamming())
    >>> check_surrogate(MarginRescaling(), task).checked["tangents"]
    50
    """
    task.require(surrogate.requires, f"surrogate {type(surrogate).__name__}")
    if (check := getattr(surrogate, "check_task", None)) is not None:
        check(task)
    if (take := getattr(task, "take", None)) is not None:
        task = take(np.random.default_rng(seed).permutation(len(task))[:SAMPLES])
    return examined(surrogate, lambda examiner: _Surrogate(examiner, surrogate, task).examine(), LossError, seed)


class _Surrogate:
    """The values and terms of some samples at some weights."""

    def __init__(self, examiner: Examiner, surrogate: Any, task: TaskLike) -> None:
        self.examiner, self.surrogate, self.task, self.rows = examiner, surrogate, task, range(min(len(task), SAMPLES))
        a, way = examiner.rng.normal(size=(2, task.dim))
        self.weights = [w.astype(task.dtype) for w in (0.0 * a, a, a + APART * way, a - APART * way)]
        # where steps towards the truths lead: there H_i are small, as at the optimum, and thresholds in them show
        rows, w = offers(task, "rows"), self.weights[0].copy()
        for k in range(4 * len(self.rows)):
            i = k % len(self.rows)
            indices, values = (surrogate.term(task, w, i) if rows else task.step(w, i, 1.0)).difference
            w[indices] += (0.3 / (1.0 + 0.1 * k) * values).astype(w.dtype)
        self.weights.append(w)
        self.steps = [[self.step(k, i) for i in self.rows] for k in range(len(self.weights))]
        found = [examiner.ask(surrogate.values, "all samples", task, w) for w in self.weights]
        self.values = [examiner.numbers(values, len(task), "all samples", "values") for values in found]

    def step(self, k: int, i: int) -> Step:
        """A copy of the term, whose arrays are only good until the next one."""
        found, where = self.examiner.ask(self.surrogate.term, f"sample {i}", self.task, self.weights[k], i), f"sample {i}"
        right = isinstance(found, Step) and isinstance(found.difference, SparseVector)
        self.examiner.insist("term", right, where, "term to give a Step", kind_of(found), "see task/steps.py")
        self.examiner.finite([found.violation, found.bound, *found.difference.values], where, "term")
        return Step(SparseVector(*map(np.array, found.difference)), *found[1:])

    def product(self, k: int, step: Step) -> float:
        return float(self.weights[k][step.difference.indices].astype(np.float64) @ step.difference.values)

    def examine(self) -> None:
        own, expect, near = getattr(self.surrogate, "certified", None), self.examiner.expect, self.examiner.near
        holds = own(self.task) if callable(own) else self.task.certified
        expect("certified", isinstance(holds, bool), "the task", "certified(task) to be True or False", holds, "another type")
        negative, linear = getattr(self.surrogate, "may_be_negative", False), self.surrogate.piecewise_linear
        for k, (steps, values) in enumerate(zip(self.steps, self.values, strict=True)):
            constants = np.zeros(len(self.rows))
            for i, step in enumerate(steps):
                where, size = f"sample {i}, weights {k}", 1.0 + abs(step.violation)
                size += float(np.abs(self.weights[k][step.difference.indices]) @ np.abs(step.difference.values))
                ok = step.violation - 1e-7 * size <= values[i] <= step.bound + 1e-7 * size
                expected, cause = (
                    f"violation <= values <= bound, {step.violation:.9g} to {step.bound:.9g}",
                    "another function than `term`",
                )
                expect("values", ok, where, expected, float(values[i]), cause)
                ok, cause = negative or values[i] >= -1e-7 * size, "a constant left out; else set may_be_negative = True"
                expect("negative", ok, where, "a value >= 0", float(values[i]), cause)
                constants[i] = step.violation + self.product(k, step)
                if linear:
                    offset = self.examiner.ask(self.surrogate.offset, where, step)
                    cause = "a factor or a constant of the piece that only one of them knows"
                    near("offset", offset, constants[i], where, "violation + <w, difference>", cause, 1e-7 * size)
                    constants[i] = offset
                self.examine_tangent(i, where, step, constants[i], size, is_convex(self.surrogate) and holds)
            self.examine_sums(k, constants)
        for i, ends in enumerate(zip(self.steps[2], self.steps[3], strict=True) if not linear else ()):
            rise, cause = 0.5 * sum(self.product(3, step) - self.product(2, step) for step in ends), "a wrong slope"
            tol = 10.0 * APART**2 * (1.0 + abs(ends[0].violation))
            near("slope", self.values[2][i] - self.values[3][i], rise, f"sample {i}", "the slope times the distance", cause, tol)

    def examine_tangent(self, i: int, where: str, step: Step, constant: float, size: float, convex: bool) -> None:
        cause = "a slope of another function, or one that is not convex (set convex = False)"
        for k, values in enumerate(self.values if convex else ()):
            low = constant - self.product(k, step)
            expected = f"a tangent below the value at weights {k}, {values[i]:.9g}"
            ok = low <= values[i] + 1e-9 * (size + abs(low) + abs(values[i]))
            self.examiner.expect("tangents", ok, where, expected, f"{low:.9g}", cause)

    def examine_sums(self, k: int, constants: Floats) -> None:
        """What the surrogate says of many samples at once."""
        surrogate, where, shares = self.surrogate, f"weights {k}", self.examiner.rng.random(len(self.rows))
        slope, squares = np.zeros((2, self.task.dim))
        for share, step in zip(shares, self.steps[k], strict=True):
            slope[step.difference.indices] += share * step.difference.values
            squares[step.difference.indices] += share * step.difference.values**2
        cause, tol = "shares left out, or other terms", 1e-7 * (1.0 + float(np.abs(slope).max(initial=0.0)))

        def same(name: str, wanted: tuple[Any, ...], *args: Any) -> None:
            if (call := getattr(surrogate, name, None)) is not None:
                found = self.examiner.ask(call, where, self.task, self.weights[k], *args)
                for own, right in zip(found if isinstance(found, tuple) else (found,), wanted, strict=False):
                    self.examiner.near(name, own, right, where, "what the terms say", cause, tol)

        same("terms", (slope, shares @ constants), np.array(self.rows), shares)
        if len(self.rows) == len(self.task):
            same("gradient", (self.values[k], -slope), shares)
            same("squared_gradients", (squares,), shares)
        latent = None if offers(self.task, "missing") else stand_in(surrogate, "latent", ("term", "values"))
        if latent is not None:
            found, known = latent().values(self.task, self.weights[k]), "another function where all outputs are known"
            self.examiner.near("latent", found, self.values[k], where, "the values", known, tol)
        if (above := getattr(surrogate, "term_above", None)) is not None:
            found, wanted = self.examiner.ask(above, where, self.task, self.weights[k], 0, None), self.steps[k][0].violation
            self.examiner.near(
                "term_above", found.violation, wanted, where, "without a threshold the term's", "another search", tol
            )


#: passes, what bounds may differ by, and who says what the optimum is at most: the first that can minimise the problem
PASSES, ROOM, REFERENCES = 3, 1e-6, ("bmrm", "lbfgs", "bcfw", "sgd")


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
                found = train(problem, kind(), RunSettings(max_iter=30, tol=ROOM))
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
            self.examiner.near("primal", primal, at_w, where, "the objective at the weights returned", cause, ROOM)
        if dual is not None:
            ok, cause = (
                dual <= self.least + ROOM * (1.0 + abs(self.least)),
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
                    near("last_objective", own, wanted, where, "what `weights` and `objective` give", "another average", ROOM)


def _cause(found: object, otherwise: str) -> str:
    return "a `return` that is missing" if found is None else otherwise
