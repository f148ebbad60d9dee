"""A task joins features, an oracle and a part loss over a training set. It is all that a trainer sees.

With theta = Psi_i w and the loss c_i + ell_i . mu(y), loss-augmented inference is one call of the oracle:
argmax(theta + loss_weight * ell). (Margin rescaling: loss_weight = 1. Perceptron: 0. Lambda-oracles: any.)
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from structpred.core.features import FeatureMap
from structpred.core.oracle import Labels, Oracle, Scores, Shape, capabilities
from structpred.core.packing import check_finite, checked_labels
from structpred.core.sparse import SparseVector, coalesced, sparse_dot
from structpred.core.weights import Vector
from structpred.errors import DataError, OracleError, ParameterError


class Step(NamedTuple):
    """What one instance says at the present weights, for the output y that inference found.

    difference: phi(x_i, y_i) - phi(x_i, y). loss: loss(y_i, y). violation: loss_weight * loss - <w, difference>, by
    how much y (with its weighted loss) scores above the truth. bound: no output's violation exceeds it (equal to
    `violation` for an exact oracle; meaningless if the task is not `certified`).
    """

    difference: SparseVector
    loss: float
    violation: float
    bound: float


class PartLoss(Protocol):
    """A loss that decomposes over parts: loss(y_i, y) = constant + costs . mu(y)."""

    def part_costs(
        self, labels: Labels, shape: Shape, oracle: Oracle, token_weights: npt.NDArray[np.float64] | None
    ) -> tuple[float, npt.NDArray[np.float64]]:
        """(constant, costs) for the true output `labels`; costs has one entry a part."""
        ...

    def label_costs(self, n_labels: int) -> npt.NDArray[np.float64]:
        """The cost of each label (column) where the truth is another (row), for oracles with a label grid; diagonal zero."""
        ...


class Fused(Protocol):
    """Compiled scoring, inference and difference in one call, as `Oracle.fuse` returns it.

    n_jobs threads work on sweeps; the results do not depend on their number.
    """

    n_jobs: int

    def buffer_size(self) -> int:
        """The largest number of pairs that step_into writes."""
        ...

    def step_into(
        self, w: Vector, scale: float, i: int, loss_weight: float, idx: npt.NDArray[np.int64], val: npt.NDArray[np.float64]
    ) -> tuple[int, float, float]:
        """Write the difference of instance i, sorted and unique; returns (number of pairs, loss, <w, difference> unscaled)."""
        ...

    def sweep(
        self, w: Vector, scale: float, start: int, stop: int, loss_weight: float
    ) -> tuple[Labels, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """(flat labels, losses, violations) of instances start..stop-1."""
        ...


class TaskLike(Protocol):
    """What trainers and surrogates use: kept by Task and by CallbackTask."""

    dim: int
    dtype: np.dtype[Any]
    certified: bool
    sample_weight: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """The number of instances."""
        ...

    def require(self, needs: Sequence[str | tuple[str, ...]], who: str) -> None:
        """Raise MissingCapabilityError unless the task can do all of `needs`."""
        ...

    def step(self, w: Vector, i: int, loss_weight: float, scale: float = 1.0) -> Step:
        """Loss-augmented inference for instance i at the weights scale * w. The arrays are only good until the next call."""
        ...

    def violations(self, w: Vector, loss_weight: float) -> npt.NDArray[np.float64]:
        """The bound on the violation of each instance."""
        ...

    def fingerprint(self) -> str:
        """A digest of data, loss and structure: two tasks with the same one train alike."""
        ...


class SoftTask(TaskLike, Protocol):
    """A task whose oracle has `marginals`: what trainers of conditional random fields use."""

    features: FeatureMap
    parts: list[npt.NDArray[np.int64]]

    def costs(self, i: int) -> tuple[float, npt.NDArray[np.float64]]:
        """(constant, part costs) of the loss of instance i."""
        ...

    def soft_step(self, w: Vector, i: int, scale: float = 1.0) -> Step:
        """phi(x_i, y_i) - E[phi(x_i, y)], and -log p(y_i | x_i), at the weights scale * w."""
        ...

    def scores(self, w: Vector, i: int, scale: float = 1.0) -> Scores:
        """Part scores of instance i."""
        ...

    def marginals(self, scores: Scores, i: int) -> tuple[float, npt.NDArray[np.float64]]:
        """(log partition function, expected part counts) at given part scores."""
        ...

    def log_losses(self, w: Vector, shares: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """-log p(y_i | x_i) of every instance, and the dense gradient of their sum weighed by `shares`."""
        ...


class Task:
    """Features, oracle and loss over n instances.

    labels[i] is the true output as the oracle returns it, shapes[i] its shape. token_weights[i], if given, weighs the
    positions in the loss; sample_weight weighs instances. `compiled=False` keeps to the plain calls even where the oracle
    offers compiled steps; the result is the same to the last bit. n_jobs threads serve compiled sweeps over all instances.
    Raises DataError, naming the sample, where labels, shapes and features do not fit each other.
    """

    def __init__(
        self,
        features: FeatureMap,
        oracle: Oracle,
        labels: Sequence[npt.ArrayLike],
        shapes: Sequence[Shape],
        loss: PartLoss,
        *,
        token_weights: Sequence[npt.ArrayLike] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        compiled: bool = True,
        n_jobs: int = 1,
    ) -> None:
        n = len(features)
        if not n == len(labels) == len(shapes):
            raise DataError(f"{n} samples with features but {len(labels)} labellings and {len(shapes)} shapes")
        self.features, self.oracle, self.loss, self.shapes = features, oracle, loss, list(shapes)
        self.dim, self.dtype = features.dim, features.dtype
        self.certified = oracle.exact or "argmax_bound" in capabilities(oracle)
        self.sample_weight, self.n_jobs = checked_weights(sample_weight, n), n_jobs
        self.token_weights = None if token_weights is None else self._checked_token_weights(token_weights)
        self.labels = [np.ascontiguousarray(y, dtype=np.int64) for y in labels]
        self.parts = [self._checked_parts(i) for i in range(n)]
        self._fused = self._fuse() if compiled else None
        size = self._fused.buffer_size() if self._fused else 0
        self._idx, self._val = np.empty(size, np.int64), np.empty(size)

    def __len__(self) -> int:
        """The number of instances."""
        return len(self.labels)

    def _checked_token_weights(self, given: Sequence[npt.ArrayLike]) -> list[npt.NDArray[np.float64]]:
        weights, grid = [np.asarray(t, dtype=np.float64) for t in given], getattr(self.oracle, "label_grid", None)
        if len(weights) != len(self.shapes):
            raise DataError(f"{len(self.shapes)} samples but token weights for {len(weights)}")
        for i, t in enumerate(weights):
            n = t.size if grid is None else grid(self.shapes[i])[0]
            if t.shape != (n,):
                raise DataError(f"sample {i}: expected {n} token weights, one a position, got an array of shape {t.shape}")
            if not np.isfinite(t).all() or (t < 0).any():
                raise DataError(f"sample {i}: token weights must be finite and >= 0")
        return weights

    def _checked_parts(self, i: int) -> npt.NDArray[np.int64]:
        n_parts = self.oracle.n_parts(self.shapes[i])
        if n_parts != self.features.n_parts(i):
            raise DataError(
                f"sample {i}: shape {self.shapes[i]} has {n_parts} parts, but the features have {self.features.n_parts(i)} rows"
            )
        try:
            parts = np.asarray(self.oracle.parts(self.labels[i], self.shapes[i]))
        except (IndexError, ValueError, TypeError) as error:
            raise DataError(f"sample {i}: the true labels do not fit the shape {self.shapes[i]}: {error}") from error
        if parts.size and not (parts.min() >= 0 and parts.max() < n_parts):
            raise DataError(f"sample {i}: the true labels have parts outside [0, {n_parts}); is a label out of range?")
        return parts.astype(np.int64)

    def _fuse(self) -> Fused | None:
        fuse = getattr(self.oracle, "fuse", None)
        if fuse is None or not self.shapes:
            return None
        fused: Fused | None = fuse(self.features, self.labels, self.loss, self.token_weights)
        if fused is not None:
            fused.n_jobs = self.n_jobs
        return fused

    def require(self, needs: Sequence[str | tuple[str, ...]], who: str) -> None:
        """Raise MissingCapabilityError unless the oracle has every method of `needs`."""
        from structpred.core.requirements import require

        require(needs, self.oracle, who)

    def costs(self, i: int) -> tuple[float, npt.NDArray[np.float64]]:
        """(constant, part costs) of the loss of instance i."""
        weights = None if self.token_weights is None else self.token_weights[i]
        return self.loss.part_costs(self.labels[i], self.shapes[i], self.oracle, weights)

    def scores(self, w: Vector, i: int, scale: float = 1.0) -> Scores:
        """Part scores of instance i at the weights scale * w; raises DataError if one is not finite."""
        theta = self.features.scores(w, i)
        if scale != 1.0:
            theta = scale * theta
        if (fixed := self.features.fixed_scores(i)) is not None:
            theta += fixed
        if not np.isfinite(theta).all():
            check_finite(theta, np.array([0, len(theta)]))
        return theta

    def argmax(self, w: Vector, i: int, loss_weight: float = 0.0, scale: float = 1.0) -> Labels:
        """The output of instance i with the largest score plus loss_weight times loss."""
        return self._infer(self.scores(w, i, scale) + loss_weight * self.costs(i)[1], i)[0]

    def _infer(self, scores: Scores, i: int) -> tuple[Labels, float | None]:
        if callable(bounded := getattr(self.oracle, "argmax_bound", None)):
            labels, bound = bounded(scores, self.shapes[i])
            return checked_labels(labels, self.oracle), float(bound)
        return checked_labels(self.oracle.argmax(scores, self.shapes[i]), self.oracle), None

    def parts_found(self, i: int, labels: Labels) -> npt.NDArray[np.int64]:
        """The parts of an output that the oracle itself returned: what is wrong with them is the oracle's fault."""
        try:
            parts = np.asarray(self.oracle.parts(labels, self.shapes[i]))
        except (IndexError, ValueError, TypeError) as error:
            raise OracleError(
                f"sample {i}: {type(self.oracle).__name__}.argmax returned an output that its own parts() refuses: {error}; "
                "run check_oracle on it"
            ) from error
        if parts.size and not (parts.min() >= 0 and parts.max() < self.features.n_parts(i)):
            raise OracleError(
                f"sample {i}: {type(self.oracle).__name__}.parts gave a part outside [0, {self.features.n_parts(i)}) for what "
                "its argmax returned; run check_oracle on it"
            )
        return parts

    def difference(self, i: int, labels: Labels) -> SparseVector:
        """phi(x_i, y_i) - phi(x_i, labels), sorted and unique."""
        other = self.parts_found(i, labels)
        truth = self.parts[i]
        signs = np.concatenate((np.ones(len(truth)), -np.ones(len(other))))
        delta = coalesced(np.concatenate((truth, other)), signs)
        return self.features.adjoint(i, delta.indices, delta.values)

    def step(self, w: Vector, i: int, loss_weight: float, scale: float = 1.0) -> Step:
        """Loss-augmented inference for instance i at the weights scale * w."""
        if self._fused is not None:
            idx, val = self._idx, self._val
            n, loss, product = self._fused.step_into(w, scale, i, loss_weight, idx, val)
            violation = loss_weight * loss - scale * product
            return Step(SparseVector(idx[:n], val[:n]), loss, violation, violation)
        constant, ell = self.costs(i)
        augmented = self.scores(w, i, scale) + loss_weight * ell
        labels, bound = self._infer(augmented, i)
        loss = constant + running_sum(ell[self.parts_found(i, labels)])
        difference = self.difference(i, labels)
        # from the difference, not from the scores: so compiled and plain steps agree to the last bit
        violation = loss_weight * loss - scale * sparse_dot(w, difference)
        if bound is None:
            return Step(difference, loss, violation, violation)
        truth = float(augmented[self.parts[i]].sum())  # its loss is zero: costs . mu(truth) = -constant, which cancels
        return Step(difference, loss, violation, max(violation, bound - truth))

    def soft_step(self, w: Vector, i: int, scale: float = 1.0) -> Step:
        """phi(x_i, y_i) - E[phi(x_i, y)], and -log p(y_i | x_i), at the weights scale * w (needs `marginals`)."""
        theta = self.scores(w, i, scale)
        log_z, mu = self.marginals(theta, i)
        value = max(log_z - running_sum(theta[self.parts[i]]), 0.0)
        error = -mu
        np.add.at(error, self.parts[i], 1.0)
        at = np.flatnonzero(error)
        return Step(self.features.adjoint(i, at, error[at]), 0.0, value, value)

    def marginals(self, scores: Scores, i: int) -> tuple[float, npt.NDArray[np.float64]]:
        """(log partition function, expected part counts) of instance i at given part scores."""
        log_z, mu = self.oracle.marginals(scores, self.shapes[i])  # type: ignore[attr-defined]
        return float(log_z), mu

    def log_losses(self, w: Vector, shares: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """-log p(y_i | x_i) of every instance, and the dense gradient of their sum weighed by `shares`."""
        if self._fused is not None and hasattr(self._fused, "log_losses"):
            found: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] = self._fused.log_losses(w, shares)
            return found
        values, gradient = np.empty(len(self)), np.zeros(self.dim)
        for i in range(len(self)):
            step = self.soft_step(w, i)
            values[i] = step.violation
            gradient[step.difference.indices] -= shares[i] * step.difference.values
        return values, gradient

    def violations(self, w: Vector, loss_weight: float) -> npt.NDArray[np.float64]:
        """The bound on the violation of each instance."""
        if self._fused is not None:
            return self._fused.sweep(w, 1.0, 0, len(self), loss_weight)[2]
        return np.array([self.step(w, i, loss_weight).bound for i in range(len(self))])

    def fingerprint(self) -> str:
        """A digest of the data, the labels, the loss, the oracle's class and its plain settings."""
        digest = hashlib.sha256(type(self.oracle).__qualname__.encode())
        plain = {name: x for name, x in getattr(self.oracle, "__dict__", {}).items() if isinstance(x, bool | int | float | str)}
        digest.update(repr(sorted(plain.items())).encode())
        digest.update(repr((self.shapes, self.dim, np.dtype(self.dtype).str)).encode())
        for array in (*self.features.arrays(), self.sample_weight, *self.labels, *(self.token_weights or ())):
            digest.update(np.ascontiguousarray(array).data)
        grid = getattr(self.oracle, "label_grid", None)
        if callable(grid) and self.shapes and hasattr(self.loss, "label_costs"):
            digest.update(np.ascontiguousarray(self.loss.label_costs(grid(self.shapes[0])[1])).data)
        else:
            for i in range(len(self)):
                digest.update(self.costs(i)[1].data)
        return digest.hexdigest()


def checked_weights(sample_weight: npt.ArrayLike | None, n: int) -> npt.NDArray[np.float64]:
    """n finite weights >= 0 with a positive sum (ones if there are none given), else ParameterError."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n,):
        raise ParameterError(f"sample_weight must have one number a sample, shape ({n},), got shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.sum() > 0:
        raise ParameterError("sample_weight must be finite and >= 0 with a positive sum")
    return weights


def running_sum(values: npt.NDArray[np.float64]) -> float:
    """The sum in order, one after the other, as compiled loops add it (numpy adds pairwise)."""
    return float(np.add.accumulate(values)[-1]) if len(values) else 0.0
