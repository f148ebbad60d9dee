"""What a part loss answers, and the answers of a whole training set: asked once per instance, checked, and kept.

A loss splits over parts: loss(y_i, y) = constant + costs . mu(y). It has one method, `costs`, and one of two answers.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.own_code import raised
from structpred.core.types import Flags, Floats, Integers
from structpred.errors import LossError, ParameterError, StructpredError
from structpred.runtime.ranges import ends_of

#: dense part costs of all instances are kept if they take at most this number of bytes, else they are computed again at each call
KEPT_BYTES = 1 << 28
#: one grid of label costs for many instances: where the positions of each begin, its number of labels, true labels, and of each
#: position the row of its costs and their weight, and the table of costs. Empty table: every label but the true one costs one
FlatGrid = tuple[Integers, Integers, Integers, Integers, Floats, Floats]
#: names that earlier losses had; a loss that still has one would be misunderstood
_RETIRED = ("part_costs", "label_costs", "uniform_cost")


class GridCosts(NamedTuple):
    """Costs on the oracle's label grid: cost[k, l] at each position whose true label is k and whose label is l.

    cost is a number (what every wrong label costs) or an (n_labels, n_labels) array, finite, >= 0, with a zero diagonal. The
    task weighs each position by its token weight.
    """

    cost: float | Floats

    def table(self, n_labels: int) -> Floats:
        """The costs as a matrix: row k for the true label k."""
        if np.ndim(self.cost) == 0:
            return float(self.cost) * (1.0 - np.eye(n_labels))
        return np.asarray(self.cost, dtype=np.float64)


class PartCosts(NamedTuple):
    """loss = constant + costs . mu(y); costs has one number per part, n_parts(shape) in all."""

    constant: float
    costs: Floats


@runtime_checkable
class Cost(Protocol):
    """A loss that splits over parts. Two rules: the truth costs nothing, and no output costs less.

    Losses in structpred/objectives go by their attribute `name`, where they have one; a class elsewhere needs none.
    """

    def costs(self, labels: Labels, shape: Shape, oracle: Oracle) -> GridCosts | PartCosts:
        """What each output costs where `labels` are the truth; asked once for each instance of a training set."""
        ...


@runtime_checkable
class InstanceCosts(Protocol):
    """A part loss of its own for each instance, for losses that depend on more of it than labels and shape (`Regret`)."""

    def loss_of(self, i: int) -> Cost:
        """The loss of instance i."""
        ...

    def take(self, rows: Integers) -> "InstanceCosts":
        """Those of these instances, in this order."""
        ...


def each_loss(loss: Cost | InstanceCosts) -> Callable[[int], Cost]:
    """The loss of each instance, by its number. Whether an object has a protocol is asked once: that takes long."""
    return loss.loss_of if isinstance(loss, InstanceCosts) else lambda i: loss


def losses_of(loss: Cost | InstanceCosts, rows: Integers) -> Cost | InstanceCosts:
    """The loss of these instances."""
    return loss.take(rows) if isinstance(loss, InstanceCosts) else loss


def missing_method(loss: object) -> str | None:
    """Why an object cannot serve as a part loss; None if it can."""
    if isinstance(loss, type) or not callable(getattr(loss, "costs", None)):
        return f"expected an object with costs(labels, shape, oracle) -> GridCosts | PartCosts, got {loss!r}"
    for name in _RETIRED:
        if hasattr(loss, name):
            return f"{type(loss).__name__} has {name}, which is never called: move what it does to costs(labels, shape, oracle)"
    return None


class TaskCosts:
    """The losses of all instances. Raises LossError, naming the sample, for an answer that breaks the rules of losses.

    parts[i] are the parts of the true output of instance i, n_parts[i] is the number of all its parts. given: the costs of
    instances for which the loss is not asked, token weights included.
    """

    def __init__(
        self, loss: Cost | InstanceCosts, oracle: Oracle, labels: Sequence[Labels], shapes: Sequence[Shape],
        parts: Sequence[Integers], n_parts: Sequence[int], token_weights: Sequence[Floats] | None,
        given: Mapping[int, PartCosts] | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(loss, InstanceCosts) and (reason := missing_method(loss)) is not None:
            raise LossError(f"loss: {reason}")
        self._oracle, self._labels, self._shapes, self._token_weights = oracle, labels, shapes, token_weights
        self._name = type(loss).__name__
        #: by how much an output may cost less than the truth of an instance, which a solver that stops at a gap found
        self._missed: Floats | None = getattr(loss, "missed", None)
        self._sizes = list(n_parts)
        self._offsets = np.concatenate(([0], np.cumsum(self._sizes, dtype=np.int64)))
        self._answers: list[GridCosts | _Sparse] = []
        self._known: dict[Any, GridCosts] = {}
        self._units = np.zeros(len(labels), dtype=np.int64)
        self._dense: list[Floats] | None = None
        #: of each instance the row of its label costs at each position; None: that of the true label
        self.rows: list[Integers] | None = None
        loss_of = each_loss(loss)
        for i in range(len(labels)):
            known = None if given is None else given.get(i)
            self._answers.append(self._checked(i, self._ask(loss_of, i), parts[i]) if known is None else _Sparse.of(known))

    def _ask(self, loss_of: Callable[[int], Cost], i: int) -> object:
        try:
            return loss_of(i).costs(self._labels[i], self._shapes[i], self._oracle)
        except (StructpredError, MemoryError):
            raise
        except Exception as error:
            raise LossError(f"sample {i}: {self._name}.costs raised {raised(error)}") from error

    def _checked(self, i: int, answer: object, truth: Integers) -> "GridCosts | _Sparse":
        if isinstance(answer, GridCosts):
            return self._checked_grid(i, answer)
        if not isinstance(answer, PartCosts):
            raise LossError(f"sample {i}: {self._name}.costs must return GridCosts or PartCosts, got {type(answer).__name__}")
        if self._token_weights is not None:
            raise ParameterError(
                f"token weights need positions, and {self._name} gives costs of parts for {type(self._oracle).__name__} "
                "instead of a grid of label costs"
            )
        size = self._sizes[i]
        try:
            constant, costs = float(answer.constant), np.asarray(answer.costs, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise LossError(f"sample {i}: {self._name}: constant and costs must be numbers: {error}") from error
        if costs.shape != (size,):
            raise LossError(
                f"sample {i}: {self._name}: expected {size} part costs, one per part of shape {self._shapes[i]}, got an array of "
                f"shape {costs.shape}"
            )
        if not (np.isfinite(constant) and np.isfinite(costs).all()):
            raise LossError(f"sample {i}: {self._name}: part costs must be finite, found NaN or infinity")
        own = costs[truth]
        at_truth = constant + float(own.sum())
        if abs(at_truth) > _rounding(constant, own):
            raise LossError(
                f"sample {i}: {self._name}: the true output costs {at_truth:.6g}, but must cost 0 (constant + costs . mu(y_i) = "
                f"{constant:.6g} + {own.sum():.6g}); is it a similarity (larger is better)?"
            )
        return _Sparse.of(PartCosts(constant, costs))

    def _checked_grid(self, i: int, answer: GridCosts) -> GridCosts:
        if type(answer.cost) is float and (same := self._known.get(answer.cost)) is not None:
            return same  # one number for all instances, as most losses answer: nothing is left to check
        grid = getattr(self._oracle, "label_grid", None)
        if grid is None:
            raise ParameterError(
                f"{self._name}: a grid of label costs needs positions and labels, and {type(self._oracle).__name__} has no "
                "label_grid(shape); add it, or give a loss whose costs(...) returns PartCosts"
            )
        n_labels = self._n_labels(i)
        key = float(answer.cost) if np.ndim(answer.cost) == 0 else np.shape(answer.cost)
        known = self._known.get(key)
        fits = np.ndim(answer.cost) == 0 or np.shape(answer.cost) == (n_labels, n_labels)
        if known is not None and fits and (known.cost is answer.cost or np.array_equal(known.cost, answer.cost)):
            return known
        try:
            # a copy, unless no one can change it: then the next instance's answer is known without comparing numbers
            constant = isinstance(answer.cost, np.ndarray) and not answer.cost.flags.writeable
            cost = np.asarray(answer.cost, dtype=np.float64) if constant else np.array(answer.cost, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise LossError(f"sample {i}: {self._name}: label costs must be numbers, got {answer.cost!r}") from error
        if cost.ndim and cost.shape != (n_labels, n_labels):
            raise LossError(f"sample {i}: {self._name}: label costs are {cost.shape}, but there are {n_labels} labels")
        if not np.isfinite(cost).all() or (cost < 0).any():
            raise LossError(f"sample {i}: {self._name}: label costs must be finite and >= 0; is it a score (larger is better)?")
        if cost.ndim and np.diag(cost).any():
            raise LossError(f"sample {i}: {self._name}: label costs must be zero on the diagonal: the truth costs nothing")
        self._known[key] = kept = GridCosts(float(cost)) if cost.ndim == 0 else GridCosts(cost)
        return kept

    def may_be_negative(self, i: int) -> bool:
        """Whether only the outputs of instance i can show that none costs less than the truth."""
        answer = self._answers[i]
        return isinstance(answer, _Sparse) and (answer.constant < 0.0 or bool((answer.costs < 0.0).any()))

    def refuse_negative(self, i: int, loss: float, constant: float, found: Floats) -> None:
        """LossError if an output with the part costs `found` costs less than nothing."""
        if loss < -_rounding(constant, found) - (0.0 if self._missed is None else float(self._missed[i])):
            raise LossError(
                f"sample {i}: {self._name}: an output costs {loss:.6g}, less than the true one, which costs 0; "
                "is it a similarity (larger is better)? Where a part can occur twice in an output, as transitions can, "
                "Hamming is not a valid loss: take loss='extra_parts'"
            )

    @property
    def shared_grid(self) -> GridCosts | None:
        """The grid of label costs that all instances share; None where there is no such grid. Compiled steps ask for it."""
        first = self._answers[0] if self._answers else None
        if not isinstance(first, GridCosts) or any(answer is not first for answer in self._answers):
            return None
        return first

    def flat_grid(self) -> FlatGrid | None:
        """That grid as kernels take it, token weights included."""
        if (grid := self.shared_grid) is None:
            return None
        gold = np.concatenate([*self._labels, np.empty(0, np.int64)])
        weights = np.ones(len(gold)) if self._token_weights is None else np.concatenate([*self._token_weights, np.empty(0)])
        widths = np.array([self._n_labels(i) for i in range(len(self._labels))], dtype=np.int64)
        starts = ends_of(np.array([len(own) for own in self._labels], dtype=np.int64))
        if np.ndim(grid.cost) == 0:
            return starts, widths, gold, gold, float(grid.cost) * weights, np.empty((0, 0))
        rows = gold if self.rows is None else np.concatenate([*self.rows, np.empty(0, np.int64)])
        return starts, widths, gold, rows, weights, np.ascontiguousarray(grid.cost, dtype=np.float64)

    def of(self, i: int) -> tuple[float, Floats]:
        """(constant, one cost per part) of instance i, token weights included; not to be changed."""
        if self._dense is None and 8 * int(self._offsets[-1]) <= KEPT_BYTES:
            buffer = np.zeros(int(self._offsets[-1]))  # of which the dense costs are read-only views
            for k in range(len(self._answers)):
                self._write(k, buffer[self._offsets[k] : self._offsets[k + 1]])
            buffer.flags.writeable = False
            self._dense = np.split(buffer, self._offsets[1:-1])
        return self.alone(i) if self._dense is None else (self._constant(i), self._dense[i])

    def kept(self) -> tuple[Floats, Floats] | None:
        """(constants, part costs, flat) of all instances, not to be changed; None where these are too many to be kept."""
        if self._answers:
            self.of(0)  # writes them all
        flat = self._dense[0].base if self._dense else None  # of which all are views
        return None if flat is None else (np.array([self._constant(i) for i in range(len(self._answers))]), flat)

    def alone(self, i: int) -> tuple[float, Floats]:
        """As `of`, for a few instances: written for this call."""
        costs = np.zeros(self._sizes[i])
        self._write(i, costs)
        return self._constant(i), costs

    def _constant(self, i: int) -> float:
        answer = self._answers[i]
        return answer.constant if isinstance(answer, _Sparse) else 0.0

    def block(self, first: int, last: int) -> tuple[Floats, Floats]:
        """(constants, part costs, flat) of instances first..last-1."""
        found = [self.of(i) for i in range(first, last)]
        return np.array([constant for constant, _ in found]), np.concatenate([costs for _, costs in found])

    def _write(self, i: int, out: Floats) -> None:
        """Write the costs of instance i over zeros."""
        answer = self._answers[i]
        if isinstance(answer, _Sparse):
            out[answer.at] = answer.costs
            return
        n_positions, n_labels = self._oracle.label_grid(self._shapes[i])  # type: ignore[attr-defined]
        on_grid, labels = out[: n_positions * n_labels].reshape(n_positions, n_labels), self._labels[i]
        if np.ndim(answer.cost) == 0:
            on_grid[:] = answer.cost
            on_grid[np.arange(n_positions), labels] = 0.0
        else:
            on_grid[:] = np.asarray(answer.cost)[labels if self.rows is None else self.rows[i]]
        if self._token_weights is not None:
            on_grid *= self._token_weights[i][:, None]

    def take(
        self, rows: Integers, labels: Sequence[Labels], shapes: Sequence[Shape], weights: Sequence[Floats] | None
    ) -> "TaskCosts":
        """The losses of these instances, whose labels, shapes and token weights are given: nothing is asked again."""
        new = object.__new__(TaskCosts)
        new.__dict__.update(self.__dict__)
        new._labels, new._shapes, new._token_weights, new._dense = labels, shapes, weights, None
        new._answers = [self._answers[i] for i in rows.tolist()]
        new.rows = None if self.rows is None else [self.rows[i] for i in rows.tolist()]
        new._sizes = [self._sizes[i] for i in rows.tolist()]
        new._offsets, new._units = ends_of(np.array(new._sizes)), self._units[rows]
        return new

    def relabelled(self, labels: Sequence[Labels]) -> "TaskCosts":
        """The same costs where other outputs are the true ones, which differ only where nothing costs anything."""
        new = object.__new__(TaskCosts)
        new.__dict__.update(self.__dict__, _labels=labels)
        return new

    def with_choices(self, choices: Mapping[int, Flags]) -> "TaskCosts":
        """The same losses where some positions may have several labels: there a label costs the least of what it costs beside
        any of these. choices: of some instances with label grids, (n_positions, n_labels), which labels each position may have.

        Each such set of labels is a row behind those of the true labels, so that compiled steps go on looking up one row.
        """
        new = self.relabelled(self._labels)
        new.rows, new._answers, new._dense = list(self._labels), list(self._answers), None
        sets: dict[int, Flags] = {}
        for width in {own.shape[1] for own in choices.values()}:
            at = [i for i, own in choices.items() if own.shape[1] == width]
            masks = np.concatenate([choices[i] for i in at])
            several = np.count_nonzero(masks, axis=1) > 1
            rows = masks.argmax(axis=1)
            sets[width], kinds = np.unique(masks[several], axis=0, return_inverse=True)
            rows[several] = width + kinds.ravel()
            for i, own in zip(at, np.split(rows, np.cumsum([len(choices[i]) for i in at])[:-1]), strict=True):
                new.rows[i] = own
        wider: dict[tuple[int, int], GridCosts] = {}
        for i, answer in enumerate(self._answers):
            if isinstance(answer, GridCosts) and (width := self._n_labels(i)) in sets:
                if (id(answer), width) not in wider:
                    # a further row for each set: the least of the rows of its labels
                    table = answer.table(width)
                    wider[id(answer), width] = GridCosts(np.vstack((table, *(table[own].min(axis=0) for own in sets[width]))))
                new._answers[i] = wider[id(answer), width]
        return new

    def _n_labels(self, i: int) -> int:
        return int(self._oracle.label_grid(self._shapes[i])[1])  # type: ignore[attr-defined]

    def n_parts(self, i: int) -> int:
        """The number of part costs, and of part scores, of instance i."""
        return self._sizes[i]

    def unit(self, i: int) -> int:
        """The largest whole number of which all part costs of instance i are multiples; 0 if they are not whole numbers."""
        if self._units[i] == 0:
            costs = self.of(i)[1]
            whole = np.array_equal(costs, np.rint(costs))
            self._units[i] = max(int(np.gcd.reduce(costs.astype(np.int64))), 1) if whole and len(costs) else 1 if whole else -1
        return max(int(self._units[i]), 0)

    def digest(self) -> bytes:
        """Of all that the losses say: equal digests mean equal costs."""
        digest, seen = hashlib.sha256(), 0
        for i, answer in enumerate(self._answers):
            if isinstance(answer, _Sparse):
                digest.update(repr((i, answer.constant, len(answer.at))).encode())
                digest.update(answer.at.tobytes() + answer.costs.tobytes())
            elif answer is not self._answers[seen] or i == 0:
                digest.update(repr((i, np.shape(answer.cost))).encode())
                digest.update(np.asarray(answer.cost, dtype=np.float64).tobytes())
                seen = i
        for rows in self.rows or ():
            digest.update(rows.tobytes())
        return digest.digest()

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be written again."""
        return {**self.__dict__, "_dense": None}


class _Sparse(NamedTuple):
    """Checked part costs, without their zeros."""

    constant: float
    at: Integers
    costs: Floats

    @classmethod
    def of(cls, answer: PartCosts) -> "_Sparse":
        """The same costs, without their zeros."""
        at = np.flatnonzero(answer.costs)
        return cls(answer.constant, at, answer.costs[at])


def _rounding(constant: float, costs: Floats) -> float:
    """How far constant + sum(costs) may be from its exact value."""
    return 1e-9 * (1.0 + abs(constant) + float(np.abs(costs).sum()))
