"""Contract check for surrogates: values, pieces, tangents and gradients belong to one function."""

from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.contracts.engine import Examiner, Report, examined, kind_of
from structpred.core.sparse import SparseVector
from structpred.core.stand_ins import stand_in
from structpred.core.types import Floats
from structpred.errors import LossError
from structpred.task.steps import Step, TaskLike, offers
from structpred.trainers.problem import Surrogate, is_convex

#: samples that are tried, and how far apart the weights are whose tangents show the slope
SAMPLES, NEAR = 8, 1e-3


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
    return examined(surrogate, lambda examiner: _Case(examiner, surrogate, task).examine(), LossError, seed)


class _Case:
    """The values and terms of some samples at some weights."""

    def __init__(self, examiner: Examiner, surrogate: Any, task: TaskLike) -> None:
        self.examiner, self.surrogate, self.task, self.rows = examiner, surrogate, task, range(min(len(task), SAMPLES))
        a, way = examiner.rng.normal(size=(2, task.dim))
        self.weights = [w.astype(task.dtype) for w in (0.0 * a, a, a + NEAR * way, a - NEAR * way)]
        self.weights.append(self.after_steps(self.weights[0]))
        self.steps = [[self.step(k, i) for i in self.rows] for k in range(len(self.weights))]
        found = [examiner.ask(surrogate.values, "all samples", task, w) for w in self.weights]
        self.values = [examiner.numbers(values, len(task), "all samples", "values") for values in found]

    def after_steps(self, w: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Where steps towards the truths lead: there H_i are small, as at the optimum, and thresholds in them show."""
        rows, w = offers(self.task, "rows"), w.copy()
        for k in range(4 * len(self.rows)):
            i = k % len(self.rows)
            indices, values = (self.surrogate.term(self.task, w, i) if rows else self.task.step(w, i, 1.0)).difference
            w[indices] += (0.3 / (1.0 + 0.1 * k) * values).astype(w.dtype)
        return w

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
            tol = 10.0 * NEAR**2 * (1.0 + abs(ends[0].violation))
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
