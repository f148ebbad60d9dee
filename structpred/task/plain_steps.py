"""Steps by the plain calls of features and oracle, one by one: what a step is. Faster kinds of steps are subclasses.

`PartSteps` asks for whole blocks of instances; those of `fused/` are written for one kind of feature map and oracle. They replace
the methods that they have something faster for, and give the same bits, but for some sums whose last bits are their own:

- `ChainSteps.violations` and `TreeSteps.violations`: from scores, where steps take the difference of features;
- steps at a scale of kernels other than one: it multiplies each term of their product, not the sum;
- `SequenceSteps.log_losses`: the gradient is added up token by token, not sequence by sequence;
- the gradient by a map's own `add_spread`, as of trees: from dense part counts, not from sorted features;
- corners of sequences (`features/_sequence_corner_kernels.py`): products are read off the corners, not off part scores.
"""

from collections.abc import Sequence
from math import inf, isfinite
from typing import NoReturn

import numpy as np

from structpred.core.costs import TaskCosts
from structpred.core.group_scales import Scale
from structpred.core.oracle import Labels, Scores
from structpred.core.own_code import asked_parts, blamed, own_code
from structpred.core.sparse import SparseVector
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError, OracleError
from structpred.task.inference import Inference
from structpred.task.score_consistency import FREE, checked_product, kernels
from structpred.task.steps import CompiledUpdates, Step, Terms, running_sum, summed, summed_squares
from structpred.task.task_checks import checked_bound, doubtful, refuse_contradiction, refuse_marginals


class PlainSteps:
    """The steps of instances whose true outputs have these parts, under these costs."""

    def __init__(self, inference: Inference, parts: Sequence[Integers], costs: TaskCosts) -> None:
        self.inference, self.parts, self.costs = inference, parts, costs
        self.features, self.oracle = inference.features, inference.oracle
        self._found: dict[object, Integers] | None = {} if own_code(self.oracle) else None

    def one(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """Loss-augmented inference for instance i at the weights scale * w. The arrays are only good until the next call."""
        augmented = self.inference.augmented(w, i, scale, self.costs.of(i)[1], loss_weight)
        return self.towards(self.inference.best(augmented, i), augmented, w, i, loss_weight, scale)

    def towards(
        self, answer: tuple[Labels, float | None], augmented: Scores, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0
    ) -> Step:
        """The step of instance i towards what the oracle found at the scores `augmented`."""
        (labels, bound), (constant, ell) = answer, self.costs.of(i)
        found = asked_parts(self.oracle, i, labels, self.inference.shapes[i])
        fits, loss, gap, size, at, counts = kernels().compare(self.parts[i], found, constant, ell, augmented)
        if not fits:
            self.refuse_parts(i)
        if loss < 0.0:
            self.costs.refuse_negative(i, loss, constant, ell[found])
        difference = self.adjoint(i, at, counts)
        # from the difference, not from the scores: so compiled and plain steps agree to the last bit
        margin = loss_weight * loss
        scored = gap + margin, size + abs(margin) + abs(loss_weight) * FREE * (1.0 + abs(constant))
        violation = margin - checked_product(self.features, i, (at, counts), scored, difference, w, scale)
        if not isfinite(violation):
            raise DataError(f"sample {i}: the features of the output found, or the weights, are not finite numbers")
        if violation < doubtful(margin):
            refuse_contradiction(self.oracle, i, augmented, self.parts[i], found, bound)
        most = violation
        if bound is not None:
            truth = float(augmented[self.parts[i]].sum())  # its loss is zero: costs . mu(truth) = -constant, which cancels
            if not violation <= bound - truth < inf:  # False for NaN
                checked_bound(self.oracle, "argmax_bound", i, bound, augmented[found])
            most = max(violation, bound - truth)
        self.recall(i, augmented, found, bound)
        return Step(difference, loss, violation, most)

    def recall(self, i: int, scores: Scores, found: Integers, bound: float | None) -> None:
        """OracleError where outputs that an oracle from outside found before, at other scores, are better than what it found now.

        So a solver shows itself that stops early without saying so: no true output has to beat its answer.
        """
        if self._found is None:
            return
        shape = self.inference.shapes[i]
        for key in ((i, shape), (-1, shape)):  # its own last one, and that of its shape
            if (before := self._found.get(key)) is not None:
                refuse_contradiction(self.oracle, i, scores, before, found, bound, "an output that it found before")
            self._found[key] = found.copy()

    def last_parts(self, i: int) -> Integers | None:
        """The parts of the output that the last step, which was about instance i, found; None where they are not kept."""
        return None

    def compiled_updates(self) -> CompiledUpdates | None:
        """`one` and the update of an online trainer for many instances in one call; None without such code."""
        return None

    def terms(self, w: Vector, rows: ArrayLike, shares: ArrayLike | None, loss_weight: float) -> Terms:
        """The steps of these rows summed up, weighed by `shares`, and the numbers of each row."""
        size = len(self.inference), self.features.dim
        return summed(size, rows, shares, lambda i: self.one(w, i, loss_weight), lambda step: loss_weight * step.loss)

    def violations(self, w: Vector, loss_weight: float) -> Floats:
        """The bound on the violation of each instance."""
        return np.array([self.one(w, i, loss_weight).bound for i in range(len(self.inference))])

    def confirmed(self, w: Vector, loss_weight: float, losses: Floats, violations: Floats) -> Floats:
        """The violations that compiled code gave: plain calls look at the worst one, where it seems to contradict itself."""
        excess = violations - doubtful(loss_weight * losses)
        if len(excess) and excess.min() < 0.0:
            PlainSteps.one(self, w, int(excess.argmin()), loss_weight)  # what seems so may be rounding
        return violations

    def soft(self, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """phi(x_i, y_i) - E[phi(x_i, y)], and -log p(y_i | x_i), at the weights scale * w."""
        theta, own = self.inference.scores(w, i, scale), self.parts[i]
        log_z, mu = self.inference.log_partition(theta, i)
        refuse_marginals(self.oracle, i, log_z, theta[own])
        error = -mu
        np.add.at(error, own, 1.0)
        value = max(log_z - running_sum(theta[own]), 0.0)
        at = np.flatnonzero(error)
        counts = at, error[at]
        difference, scored = self.adjoint(i, *counts), kernels().weigh(np.ascontiguousarray(theta, np.float64), *counts)
        checked_product(self.features, i, counts, scored, difference, w, scale)
        return Step(difference, 0.0, value, value)

    def log_losses(self, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """-log p(y_i | x_i) of every instance, and the dense gradient of their sum weighed by `shares`."""
        values, gradient = np.empty(len(shares)), np.zeros(self.features.dim)
        for i, share in enumerate(shares):
            found = self.soft(w, i)
            values[i] = found.violation
            gradient[found.difference.indices] -= share * found.difference.values
        return values, gradient

    def squared_gradients(self, w: Vector, shares: Floats) -> Floats:
        """sum_i shares_i g_i^2, g_i the gradient of -log p(y_i | x_i), squared weight by weight: dense, float64."""
        return summed_squares(self.features.dim, shares, lambda i: self.soft(w, i))

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """Psi_i^T mu for the sparse mu that has `counts` at `parts`."""
        try:
            return self.features.adjoint(i, parts, counts)
        except Exception as error:
            raise blamed(error, i, self.features, "adjoint") from error

    def refuse_parts(self, i: int) -> NoReturn:
        """OracleError: what argmax returned has parts that there are not."""
        raise OracleError(
            f"sample {i}: {type(self.oracle).__name__}.parts gave a part outside [0, {self.costs.n_parts(i)}) for what "
            "its argmax returned; run check_oracle on it"
        )
