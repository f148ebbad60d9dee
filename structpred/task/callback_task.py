"""The three-callback task: joint features, a loss and an argmax as plain functions, for losses that do not split over parts."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from structpred.core.group_scales import GroupScales, Scale, scaled, scaled_dot
from structpred.core.own_code import raised
from structpred.core.sparse import SparseVector, coalesced
from structpred.core.types import ArrayLike, DTypeLike, Floats
from structpred.core.weights import Vector
from structpred.errors import DataError, MissingCapabilityError, OracleError, ParameterError
from structpred.task.steps import Step, Terms, summed
from structpred.task.task_checks import checked_weights

#: samples of which argmax is asked before training
PROBED = 10


class CallbackTask:
    """A training set given by three functions of one input x and outputs y; x and y may be anything.

    Inference is a black box here: relaxations, constraints, marginals and searches over part scores are not available. A step
    costs O(dim), since w is passed as a whole.

    Parameters
    ----------
    inputs, outputs : sequences
        The inputs, and the true output of each.
    dim : int
        The length of the joint feature vector.
    joint_feature : callable
        joint_feature(x, y) gives phi(x, y): a 1-d array, a SciPy sparse row, or a pair (indices, values).
    loss : callable
        loss(y_true, y) gives a number >= 0, zero for y = y_true.
    argmax : callable
        argmax(w, x, y_true, loss_weight) gives the y with the largest <w, phi(x, y)> + loss_weight * loss(y_true, y). w is
        float64 and read-only.
    exact : bool
        False: argmax may miss the maximum, and no certificate is called a proof.
    sample_weight : array, optional
        One number >= 0 per sample.

    Raises
    ------
    DataError
        If inputs and outputs differ in number.
    OracleError
        Naming the sample, if a function raises or returns something invalid; before training, if an exact argmax gives, for the
        largest loss at zero weights, an output that costs less than others that it gives.
    MissingCapabilityError
        If the trainer or surrogate needs more than argmax.

    Examples
    --------
    >>> import numpy as np
    >>> eye = np.eye(3)
    >>> def best(w, x, y, loss_weight): return max(range(3), key=lambda k: w[k] * x + loss_weight * (k != y))
    >>> task = CallbackTask([1.0, -1.0], [0, 2], 3, lambda x, y: x * eye[y], lambda y, k: float(y != k), best)
    >>> task.step(np.zeros(3), 0, 1.0).violation
    1.0
    """

    #: a step takes much more time than scoring, as far as anyone knows
    expensive = True

    def __init__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], dim: int, joint_feature: Callable[[Any, Any], Any],
        loss: Callable[[Any, Any], float], argmax: Callable[[Floats, Any, Any, float], Any], *, exact: bool = True,
        sample_weight: ArrayLike | None = None, dtype: DTypeLike = np.float64,
    ) -> None:  # fmt: skip
        if len(inputs) != len(outputs):
            raise DataError(f"{len(inputs)} inputs but {len(outputs)} outputs: give one output for each input")
        if not len(inputs):
            raise DataError("no samples: expected at least one input")
        if isinstance(dim, bool) or not isinstance(dim, int | np.integer) or dim < 1:
            raise ParameterError(f"dim, the length of the joint feature vector, must be a whole number >= 1, got {dim!r}")
        self.inputs, self.outputs, self.dim, self.dtype = inputs, outputs, int(dim), np.dtype(dtype)
        self._joint_feature, self._loss, self._argmax = joint_feature, loss, argmax
        self.groups, self.group_names = np.array([0, self.dim], dtype=np.int64), ["features"]
        self.certified = bool(exact)
        self.sample_weight = checked_weights(sample_weight, len(inputs))
        for i in range(len(self)):
            self.features(i, outputs[i])
            self.loss(i, outputs[i])
        if self.certified:
            self._probe()

    def __len__(self) -> int:
        """The number of samples."""
        return len(self.inputs)

    def require(self, needs: Sequence[str | tuple[str, ...]], who: str) -> None:
        """Raise MissingCapabilityError unless "argmax" is enough."""
        for need in needs:
            alternatives = (need,) if isinstance(need, str) else need
            if "argmax" not in alternatives:
                raise MissingCapabilityError(
                    f"{who} needs {' or '.join(alternatives)}, but a three-callback task offers argmax alone: whatever "
                    "works on part scores, such as relaxations and constraints, is not available. If the loss splits over parts, "
                    "write an Oracle with that method and use Task"
                )

    def features(self, i: int, output: Any) -> SparseVector:
        """phi(x_i, output), sorted and unique. Raises OracleError where the user's function gives something else."""
        found = self._call("joint_feature", i, self._joint_feature, self.inputs[i], output)
        indices, values = _pairs(found)
        if indices is None or indices.ndim != 1 or indices.shape != values.shape or indices.dtype.kind not in "iu":
            raise OracleError(
                f"sample {i}: joint_feature must return a 1-d array of length {self.dim}, a sparse row of that length, or a pair "
                f"(indices, values), got {_kind(found)}"
            )
        size = None if isinstance(found, tuple) else int(found.shape[-1])
        if size not in (None, self.dim) or (len(indices) and not (indices.min() >= 0 and indices.max() < self.dim)):
            came = f"length {size}" if size is not None else f"indices {indices.min()}..{indices.max()}"
            raise OracleError(f"sample {i}: joint_feature must give vectors of length dim = {self.dim}, got {came}")
        if values.dtype.kind not in "fiub" or not np.isfinite(values).all():
            raise OracleError(f"sample {i}: joint_feature must give finite numbers, found NaN, infinity or {values.dtype}")
        return coalesced(indices, values)

    def loss(self, i: int, output: Any) -> float:
        """loss(y_i, output). Raises OracleError where it is not a finite number >= 0, or not zero for the truth itself."""
        found = self._call("loss", i, self._loss, self.outputs[i], output)
        try:
            value = float(found)
        except (TypeError, ValueError) as error:
            raise OracleError(f"sample {i}: loss must return a number, got {_kind(found)}") from error
        if not (np.isfinite(value) and value >= 0.0):
            raise OracleError(f"sample {i}: loss must be finite and >= 0, got {value}; is it a score (larger is better)?")
        if output is self.outputs[i] and value != 0.0:
            raise OracleError(f"sample {i}: the loss of the true output must be 0, got {value}")
        return value

    def argmax(self, w: Vector, i: int, loss_weight: float = 0.0, scale: Scale = 1.0) -> Any:
        """The output of sample i with the largest score plus loss_weight times loss, at the weights scale * w."""
        dense = scaled(w, scale)
        dense.flags.writeable = False
        return self._call("argmax", i, self._argmax, dense, self.inputs[i], self.outputs[i], loss_weight)

    def step(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """Loss-augmented inference for sample i at the weights scale * w.

        Raises OracleError where an exact argmax answers with less than the true output has.
        """
        output = self.argmax(w, i, loss_weight, scale)
        loss, truth, other = self.loss(i, output), self.features(i, self.outputs[i]), self.features(i, output)
        values = np.concatenate((truth.values, -other.values))
        difference = coalesced(np.concatenate((truth.indices, other.indices)), values)
        violation = loss_weight * loss - scaled_dot(w, difference, scale)
        # rounding grows with the sizes of the terms, not with that of their sum
        factor = scale.of(difference.indices) if isinstance(scale, GroupScales) else scale
        size = loss_weight * loss + float(np.abs(factor * w[difference.indices]) @ np.abs(difference.values))
        if self.certified and violation < -1e-7 * (1.0 + size):
            raise OracleError(
                f"sample {i}: argmax gave an output whose score plus loss is lower than the true output's, by {-violation:.6g}; "
                f"does it minimise, or leave out loss_weight * loss (here {loss_weight:g} * {loss:g})? "
                "If it is a heuristic, pass exact=False"
            )
        return Step(difference, loss, violation, violation)

    def violations(self, w: Vector, loss_weight: float) -> Floats:
        """The violation of each sample."""
        return np.array([self.step(w, i, loss_weight).bound for i in range(len(self))])

    def terms(self, w: Vector, rows: ArrayLike, shares: ArrayLike | None = None, *, loss_weight: float = 1.0) -> Terms:
        """The steps of these rows summed up, weighed by `shares` (ones if not given), and the numbers of each row."""
        size = len(self), self.dim
        return summed(size, rows, shares, lambda i: self.step(w, i, loss_weight), lambda step: loss_weight * step.loss)

    def sample_with_priors(self) -> None:
        """There are no fixed scores."""
        return None

    def fingerprint(self) -> str:
        """A digest of the true outputs' features and of what the functions give for the first samples at zero weights."""
        names = [getattr(f, "__qualname__", type(f).__qualname__) for f in (self._joint_feature, self._loss, self._argmax)]
        digest = hashlib.sha256(repr((names, self.dim, str(self.dtype), self.certified)).encode())
        digest.update(np.ascontiguousarray(self.sample_weight).data)
        steps = [self.step(np.zeros(self.dim), i, 1.0) for i in range(min(len(self), 3))]
        digest.update(repr([step.loss for step in steps]).encode())
        for phi in (*(self.features(i, y) for i, y in enumerate(self.outputs)), *(step.difference for step in steps)):
            digest.update(repr(len(phi.indices)).encode())
            digest.update(phi.indices.tobytes() + phi.values.tobytes())
        return digest.hexdigest()

    def _probe(self) -> None:
        """Ask for the costliest output at w = 0: none costs more that argmax itself gives at other weights and loss weights.

        An argmax that minimises, leaves out the loss or returns the truth would make the truth look like the optimum in training.
        """
        n, costly, moved = min(len(self), PROBED), False, False
        for i in range(n):
            found, given = self.loss(i, self.argmax(np.zeros(self.dim), i, 1.0)), 0.0
            others = [(0.0, self.outputs[(i + k) % len(self)]) for k in (1, 2, 3)]
            for loss_weight, output in [(-1.0, self.outputs[i]), *others]:
                with suppress(OracleError):  # it may be no output of sample i, and training asks for no loss weight below 0
                    costly |= self.loss(i, output) > 0.0
                    given = max(given, self.loss(i, self.argmax(self._towards(i, output), i, loss_weight)))
            moved |= max(found, given) > 0.0
            if given > found + 1e-7 * (1.0 + given):
                raise OracleError(
                    f"sample {i}: at zero weights and loss_weight = 1 argmax gave an output that costs {found:.6g}, but at other "
                    f"weights, or loss_weight = -1, one that costs {given:.6g}: does it minimise, or leave out "
                    "loss_weight * loss? If it is a heuristic, pass exact=False"
                )
        if costly and not moved:
            raise OracleError(
                f"argmax gave the true output of all of the first {n} samples whatever it was asked, though others cost more: "
                "does it return y_true? If it is a heuristic, pass exact=False"
            )

    def _towards(self, i: int, output: Any) -> Floats:
        """Weights at which this output scores more than the true one, the difference of their features; zeros for that one."""
        w = np.zeros(self.dim)
        for sign, phi in ((1.0, self.features(i, output)), (-1.0, self.features(i, self.outputs[i]))):
            w[phi.indices] += sign * phi.values
        return w

    def _call(self, name: str, i: int, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            raise OracleError(f"sample {i}: {name} raised {raised(error)}") from error


def _pairs(found: Any) -> tuple[Any, Any]:
    """(indices, values) of a vector in any of the three forms; (None, None) if it is in none of them."""
    from scipy import sparse

    vector: Any = found
    if isinstance(found, tuple) and len(found) == 2:
        indices, values = np.asarray(found[0]), np.asarray(found[1])
        return (indices.astype(np.int64) if not indices.size else indices), values
    if sparse.issparse(found) and (vector.ndim == 1 or vector.shape[0] == 1):
        row = vector.tocoo()
        return np.asarray(row.coords[-1]), row.data
    if isinstance(found, np.ndarray) and found.ndim == 1:
        return np.flatnonzero(found), found[found != 0]
    return None, None


def _kind(found: Any) -> str:
    shape = getattr(found, "shape", None)
    return type(found).__name__ if shape is None else f"{type(found).__name__} of shape {shape}"
