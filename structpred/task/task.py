"""A task joins features, an oracle and a part loss over a training set. It is all that a trainer sees.

With theta = Psi_i w and the loss c_i + ell_i . mu(y), loss-augmented inference is one call of the oracle:
argmax(theta + loss_weight * ell). (Margin rescaling: loss_weight = 1. Perceptron: 0. Lambda-oracles: any.)
"""

import hashlib
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from structpred.core.costs import Cost, GridCosts, InstanceCosts, TaskCosts, losses_of
from structpred.core.feature_map import FeatureMap, names_of_groups
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.group_scales import Scale
from structpred.core.oracle import Labels, Oracle, Scores, Shape, capabilities
from structpred.core.own_code import asked_parts, own_code
from structpred.core.requirements import require
from structpred.core.sparse import SparseVector
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.runtime.ranges import packed
from structpred.task.fast.part_steps import steps_of
from structpred.task.inference import Inference
from structpred.task.instance_subset import AddedScores, checked_rows
from structpred.task.score_consistency import kernels
from structpred.task.steps import CompiledUpdates, Step, Terms, running_sum
from structpred.task.task_checks import check_outputs, checked_token_weights, checked_weights, refuse_contradiction, true_parts

#: instances for which an oracle from outside the package is asked for the cheapest output before training
PROBED = 10


class Task:
    """A training set: features, oracle and loss over n instances, which is all that a trainer sees.

    Parameters
    ----------
    labels, shapes: the true output of each instance, as the oracle returns it, and its shape.
    loss: what a wrong output costs, for all or one each; token_weights, if given, weigh its positions. sample_weight: instances.
    compiled: False uses plain calls even where compiled steps (`fused`) exist; the bits are the same. n_jobs: threads of sweeps.

    Raises DataError, naming the sample, where labels, shapes and features do not fit each other.
    """

    capabilities: ClassVar[frozenset[str]] = frozenset({"parts"})

    def __init__(
        self, features: FeatureMap, oracle: Oracle, labels: Sequence[npt.ArrayLike], shapes: Sequence[Shape],
        loss: Cost | InstanceCosts, *, token_weights: Sequence[npt.ArrayLike] | None = None,
        sample_weight: npt.ArrayLike | None = None, compiled: bool = True, n_jobs: int = 1,
    ) -> None:  # fmt: skip
        n = len(features)
        if not n == len(labels) == len(shapes):
            raise DataError(f"{n} samples with features but {len(labels)} labellings and {len(shapes)} shapes")
        inference = Inference(features, oracle, shapes, n_jobs=n_jobs, compiled=compiled)
        inference.check_shapes()
        self.loss, self.sample_weight, self.n_jobs = loss, checked_weights(sample_weight, n), n_jobs
        self._look_at(inference)
        self.token_weights = None if token_weights is None else checked_token_weights(token_weights, oracle, self.shapes)
        self._set_labels(labels)

    def over(self, inference: Inference) -> "Task":
        """The same outputs and losses, of which `inference` has other features."""
        new = self._sibling()
        new._look_at(inference)
        new._make_steps()
        return new

    def _look_at(self, inference: Inference) -> None:
        self.inference, self.shapes = inference, inference.shapes
        self.features, self.oracle = inference.features, inference.oracle
        self.dim, self.dtype, self.expensive = self.features.dim, self.features.dtype, self.oracle.expensive
        self.certified = self.oracle.exact or "argmax_bound" in capabilities(self.oracle)

    def _set_labels(self, labels: Sequence[npt.ArrayLike]) -> None:
        """Check the labels, ask the loss for their costs, and make the steps."""
        self.labels = [np.ascontiguousarray(y, dtype=np.int64) for y in labels]
        self.parts = true_parts(self.oracle, self.labels, self.shapes, self.inference.sizes)
        check_outputs(self.oracle, self.labels, self.shapes, self.parts, self.infer)
        self._costs = self._asked_costs(self.inference.sizes.tolist())
        self._make_steps()
        probed = PROBED if own_code(self.oracle) else 0
        for i in range(len(self)):
            if i < probed or self._costs.may_be_negative(i):
                self._probe(i)

    def _asked_costs(self, sizes: list[int]) -> TaskCosts:
        return TaskCosts(self.loss, self.oracle, self.labels, self.shapes, self.parts, sizes, self.token_weights)

    def _sibling(self) -> "Task":
        """Another task with the same attributes, for now."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def take(self, rows: npt.ArrayLike) -> "Task":
        """The task of these instances, in this order; repeats are allowed. Features are copied for these rows alone.

        It gives the bits of a new task of these rows, without checks of labels. Raises DataError for rows that are no instances.
        """
        at, new = checked_rows(rows, len(self)), self._sibling()
        new.loss, new.sample_weight = losses_of(self.loss, at), checked_weights(self.sample_weight[at], len(at))
        new._look_at(self.inference.take(at))
        new.labels, new.parts = ([given[i] for i in at.tolist()] for given in (self.labels, self.parts))
        new.token_weights = None if self.token_weights is None else [self.token_weights[i] for i in at.tolist()]
        new._costs = self._costs.take(at, new.labels, new.shapes, new.token_weights)
        new._make_steps()
        return new

    def with_labels(self, labels: Sequence[npt.ArrayLike]) -> "Task":
        """The same inputs, weights and loss with other true outputs, for labels that are guessed again; features are shared.

        Raises DataError, naming the sample, for labels that do not fit the shapes.
        """
        if len(labels) != len(self):
            raise DataError(f"{len(self)} samples but {len(labels)} labellings")
        new = self._sibling()
        new._set_labels(labels)
        return new

    def complete(self, w: Vector, fixed: Sequence[npt.NDArray[np.float64] | None]) -> list[Labels]:
        """The best output of every instance with `fixed` scores added, one per part, None for none: -1e30 forbids a part.

        So partial labels are completed: forbid what they rule out. Raises InfeasibleError, naming the sample, where nothing is
        left, and DataError for scores that do not fit.
        """
        added = AddedScores(self.features, [None if own is None else np.asarray(own, dtype=np.float64) for own in fixed])
        return Inference(added, self.oracle, self.shapes, n_jobs=self.n_jobs, compiled=self.inference.compiled).outputs(w)

    def __getstate__(self) -> dict[str, Any]:
        """Without working memory, which is made again."""
        kept = {k: value for k, value in self.__dict__.items() if k not in ("steps", "parts")}
        return {**kept, "_parts": packed(self.parts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the working memory again."""
        flat, ends = state.pop("_parts")
        self.__dict__.update(state, parts=[flat[a:b] for a, b in pairwise(ends.tolist())])
        self._make_steps()

    def _make_steps(self) -> None:
        self.steps = steps_of(self.inference, self.parts, self._costs)

    @property
    def groups(self) -> npt.NDArray[np.int64]:
        """Group k of the weights is groups[k]:groups[k+1]."""
        return self.features.groups

    @property
    def group_names(self) -> Sequence[str]:
        """What the features call them."""
        return names_of_groups(self.features)

    def __len__(self) -> int:
        """The number of instances."""
        return len(self.shapes)

    def _probe(self, i: int) -> None:
        """Ask for the output that costs least. None costs less than the truth, which costs nothing, or the loss is wrong.

        An oracle that minimises answers with the output that costs most. It has to be asked: in training it would find the truth,
        which then looks like the optimum.
        """
        constant, ell = self._costs.alone(i)
        labels, bound = self.infer(-ell, i)
        found = self.parts_found(i, labels)
        self._costs.refuse_negative(i, constant + running_sum(ell[found]), constant, ell[found])
        self.refuse_contradiction(i, -ell, found, bound)

    def require(self, needs: Sequence[str | tuple[str, ...]], who: str) -> None:
        """Raise MissingCapabilityError unless the oracle, or the features, offer everything in `needs`.

        Any argmax is enough for projections (`projections/lockstep.py`).
        """
        offered = capabilities(self.oracle) | getattr(self.features, "capabilities", frozenset()) | {"project"}
        require(needs, self.oracle, who, offered)

    def costs(self, i: int) -> tuple[float, npt.NDArray[np.float64]]:
        """(constant, part costs) of the loss of instance i, token weights included; the array is not to be changed."""
        return self._costs.of(i)

    @property
    def cost_grid(self) -> GridCosts | None:
        """The costs of all labels, where one table of them holds for all instances."""
        return None if self._costs.rows is not None else self._costs.shared_grid

    def cost_unit(self, i: int) -> int:
        """The largest whole number of which all part costs of instance i are multiples; 0 if they are not whole numbers."""
        return self._costs.unit(i)

    def scores(self, w: Vector, i: int, scale: Scale = 1.0) -> Scores:
        """Part scores of instance i at the weights scale * w; raises DataError if one is not finite."""
        return self.inference.scores(w, i, scale)

    def argmax(self, w: Vector, i: int, loss_weight: float = 0.0, scale: Scale = 1.0) -> Labels:
        """The output of instance i with the largest score plus loss_weight times loss."""
        return self.infer(self.scores(w, i, scale) + loss_weight * self.costs(i)[1], i)[0]

    def infer(self, scores: Scores, i: int) -> tuple[Labels, float | None]:
        """The oracle's best output of instance i at given part scores; and its bound, where the oracle gives bounds."""
        return self.inference.best(scores, i)

    def parts_found(self, i: int, labels: Labels) -> npt.NDArray[np.int64]:
        """The parts of an output that the oracle itself returned: what is wrong with them is the oracle's fault."""
        parts = asked_parts(self.oracle, i, labels, self.shapes[i])
        if parts.size and not (parts.min() >= 0 and parts.max() < self._costs.n_parts(i)):
            self.steps.refuse_parts(i)
        return parts

    def difference(self, i: int, labels: Labels) -> SparseVector:
        """phi(x_i, y_i) - phi(x_i, labels), sorted and unique."""
        ell = self._costs.of(i)[1]
        return self.adjoint(i, *kernels().compare(self.parts[i], self.parts_found(i, labels), 0.0, ell, ell)[4:])

    def adjoint(self, i: int, parts: npt.NDArray[np.int64], counts: npt.NDArray[np.float64]) -> SparseVector:
        """Psi_i^T mu for the sparse mu that has `counts` at `parts`."""
        return self.steps.adjoint(i, parts, counts)

    def step(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """Loss-augmented inference for instance i at the weights scale * w.

        Raises OracleError, naming the sample, where an exact oracle's answer scores below the true output.
        """
        return self.steps.one(w, i, loss_weight, scale)

    def compiled_updates(self) -> CompiledUpdates | None:
        """`step` and the update of an online trainer for many instances in one call; None without such code."""
        return self.steps.compiled_updates()

    def refuse_contradiction(self, i: int, scores: Scores, found: npt.NDArray[np.int64], bound: float | None = None) -> None:
        """OracleError where the parts `found`, or `bound`, are said to be best at `scores`, but the true output is better."""
        refuse_contradiction(self.oracle, i, scores, self.parts[i], found, bound)

    def refuse_negative(self, i: int, loss: float, found: npt.NDArray[np.int64]) -> None:
        """LossError where an output with the parts `found` costs less than the truth, which costs nothing."""
        constant, ell = self.costs(i)
        self._costs.refuse_negative(i, loss, constant, ell[found])

    def soft_step(self, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """phi(x_i, y_i) - E[phi(x_i, y)], and -log p(y_i | x_i), at the weights scale * w (needs `marginals`)."""
        return self.steps.soft(w, i, scale)

    def marginals(self, scores: Scores, i: int) -> tuple[float, npt.NDArray[np.float64]]:
        """(log partition function, expected part counts) of instance i at given part scores."""
        return self.inference.log_partition(scores, i)

    def log_losses(self, w: Vector, shares: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """-log p(y_i | x_i) of every instance, and the dense gradient of their sum weighed by `shares`."""
        return self.steps.log_losses(w, shares)

    def squared_gradients(self, w: Vector, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """sum_i shares_i g_i^2, g_i the gradient of -log p(y_i | x_i), squared weight by weight: dense, float64."""
        return self.steps.squared_gradients(w, shares)

    def terms(self, w: Vector, rows: npt.ArrayLike, shares: npt.ArrayLike | None = None, *, loss_weight: float = 1.0) -> Terms:
        """The steps of these rows summed up, weighed by `shares` (ones if not given), and the numbers of each row."""
        return self.steps.terms(w, rows, shares, loss_weight)

    def violations(self, w: Vector, loss_weight: float) -> npt.NDArray[np.float64]:
        """The bound on the violation of each instance."""
        return self.steps.violations(w, loss_weight)

    def sample_with_priors(self) -> int | None:
        """The first instance with fixed scores that do more than forbid; None where there is none."""
        for i in range(len(self)):
            fixed = self.features.fixed_scores(i)
            if fixed is not None and ((fixed != 0.0) & (fixed > 0.5 * FORBIDDEN)).any():
                return i
        return None

    def fingerprint(self) -> str:
        """A digest of the data, the labels, the loss, the oracle's class and its plain settings."""
        digest = hashlib.sha256(type(self.oracle).__qualname__.encode())
        plain = {name: x for name, x in getattr(self.oracle, "__dict__", {}).items() if isinstance(x, bool | int | float | str)}
        digest.update(repr(sorted(plain.items())).encode())
        digest.update(repr((self.shapes, self.dim, np.dtype(self.dtype).str)).encode())
        for array in (*self.features.arrays(), self.sample_weight, *self.labels, *(self.token_weights or ())):
            digest.update(np.ascontiguousarray(array).data)
        digest.update(self._costs.digest())
        return digest.hexdigest()
