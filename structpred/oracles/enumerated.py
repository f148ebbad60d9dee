"""Structures whose outputs can be listed, up to 2^18 a shape: every capability exactly, by looking at all of them."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import checked_scores
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError, InfeasibleError, OracleError, ParameterError
from structpred.oracles.solvers._constraint_rows import checked_rows
from structpred.projections.lockstep import nearest_mixture

#: the most outputs of one shape
MAX_OUTPUTS = 1 << 18
#: the most parts that are on, in all outputs of one shape together
MAX_ENTRIES = 1 << 26
#: tables of this many shapes are kept; the one not used for longest is dropped
MAX_TABLES = 32


class Table(NamedTuple):
    """All outputs of one shape: labels, and a CSR matrix (n_outputs, n_parts) with mu(y) in its rows."""

    labels: list[Labels]
    counts: Any


class EnumeratedOracle(Oracle):
    """A structure given by a function that lists its outputs.

    outputs(shape): an iterable of 1-d int64 label arrays, each output once. parts(labels, shape): the indices of the parts that
    are on. n_parts(shape): their number. label_grid(shape): (n_positions, n_labels) if the parts begin with such a grid.
    Each call costs O(total number of parts that are on in all outputs). Ties go to the output listed first.
    Raises DataError for shapes of more than 2^18 outputs, before anything is built, and for parts that are out of range.

    >>> import numpy as np
    >>> pairs = lambda shape: (np.array([i, j]) for i in range(shape[0]) for j in range(i + 1, shape[0]))
    >>> oracle = EnumeratedOracle(pairs, lambda labels, shape: labels, lambda shape: shape[0], example_shapes=[(3,), (4,)])
    >>> [y.tolist() for y in oracle.kbest(np.array([3.0, 1.0, 2.0]), (3,), 2)]
    [[0, 2], [0, 1]]
    """

    label_grid: Callable[[Shape], tuple[int, int]]

    def __init__(
        self, outputs: Callable[[Shape], Iterable[ArrayLike]], parts: Callable[[Labels, Shape], Integers],
        n_parts: Callable[[Shape], int], *, example_shapes: Sequence[Shape],
        label_grid: Callable[[Shape], tuple[int, int]] | None = None,
    ) -> None:  # fmt: skip
        self._outputs, self._parts, self._n_parts = outputs, parts, n_parts
        self._example_shapes = list(example_shapes)
        self._tables: OrderedDict[Shape, Table] = OrderedDict()
        if label_grid is not None:
            self.label_grid = label_grid

    @classmethod
    def of(cls, oracle: Oracle) -> "EnumeratedOracle":
        """The same structure as that of an oracle with `enumerate`, by looking at all outputs: what tests compare with."""
        outputs = getattr(oracle, "enumerate", None)
        if not callable(outputs):
            raise ParameterError(f"{type(oracle).__name__} has no enumerate(shape): its outputs cannot be listed")
        shapes, grid = list(oracle.example_shapes()), getattr(oracle, "label_grid", None)
        return cls(outputs, oracle.parts, oracle.n_parts, example_shapes=shapes, label_grid=grid)

    def table(self, shape: Shape) -> Table:
        """All outputs of a shape, built once and kept (for the last 32 shapes used)."""
        if shape in self._tables:
            self._tables.move_to_end(shape)
            return self._tables[shape]
        from scipy import sparse

        # counted first: an iterator of too many outputs must not fill the memory
        n = sum(1 for _ in islice(self._outputs(shape), MAX_OUTPUTS + 1))
        if n > MAX_OUTPUTS:
            raise DataError(f"shape {shape} has more than {MAX_OUTPUTS} outputs, too many to list: use an oracle that searches")
        if n == 0:
            raise InfeasibleError(f"shape {shape} has no output at all: outputs(shape) gave none")
        labels = [np.array(y, dtype=np.int64) for y in self._outputs(shape)]
        found, size = [], 0
        for y in labels:
            found.append(np.asarray(self._parts(y, shape)))
            size += len(found[-1])
            if size > MAX_ENTRIES:
                raise DataError(f"shape {shape}: the parts of its {n} outputs would take more than {MAX_ENTRIES * 16 >> 20} MiB")
        indptr = np.cumsum([0, *map(len, found)], dtype=np.int64)
        indices, n_parts = np.concatenate(found).astype(np.int64), self.n_parts(shape)
        if len(indices) and not (indices.min() >= 0 and indices.max() < n_parts):
            raise DataError(f"shape {shape}: parts must lie in [0, {n_parts}), got {indices.min()}..{indices.max()}")
        counts = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(n, n_parts))
        counts.sum_duplicates()
        for y in labels:
            y.flags.writeable = False
        self._tables[shape] = table = Table(labels, counts)
        if len(self._tables) > MAX_TABLES:
            self._tables.popitem(last=False)
        return table

    def n_parts(self, shape: Shape) -> int:
        """As the function says."""
        return self._n_parts(shape)

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """As the function says."""
        return self._parts(labels, shape)

    def example_shapes(self) -> list[Shape]:  # type: ignore[override]  # each instance has its own
        """Those given."""
        return list(self._example_shapes)

    def enumerate(self, shape: Shape) -> list[Labels]:
        """All outputs, in the order of the function (copies)."""
        return [y.copy() for y in self.table(shape).labels]

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output."""
        labels, counts, given = self._asked(scores, shape)
        return labels[int((counts @ given).argmax())].copy()

    def argmax_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Labels | None:
        """The best output with A mu <= b; None if there is none."""
        labels, counts, given = self._asked(scores, shape)
        if (within := checked_rows(A, b, counts.shape[1])) is None:
            return None
        rows, limits = within
        allowed = np.flatnonzero((counts @ rows.T <= limits).all(axis=1))
        if not len(allowed):
            return None
        return labels[int(allowed[(counts @ given)[allowed].argmax()])].copy()

    def argmax_constrained_bound(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> tuple[Labels | None, float]:
        """argmax_constrained, and its score as the bound (-inf where there is no such output): nothing is cut short here."""
        found = EnumeratedOracle.argmax_constrained(self, scores, shape, A, b)
        if found is None:
            return None, -np.inf
        return found, float(np.asarray(scores, dtype=np.float64)[np.asarray(self.parts(found, shape), dtype=np.int64)].sum())

    def argmax_relaxed(self, scores: Scores, shape: Shape) -> Floats:
        """The best point of the convex hull of all mu(y), the tightest relaxation there is: mu of the best output."""
        _, counts, given = self._asked(scores, shape)
        return counts[[int((counts @ given).argmax())]].toarray()[0]

    def argmax_relaxed_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Floats | None:
        """The best mixture of outputs with A mu <= b, a linear program over their shares; None if there is none."""
        from scipy.optimize import linprog

        _, counts, given = self._asked(scores, shape)
        if (within := checked_rows(A, b, counts.shape[1])) is None:
            return None
        rows, limits = within
        values, ones = counts @ given, np.ones((1, counts.shape[0]))
        size = max(1.0, float(np.abs(values).max()))  # the solver's tolerances are absolute
        found = linprog(-values / size, (counts @ rows.T).T, limits, ones, [1.0], method="highs")
        if found.status == 2:
            return None
        if not found.success:
            raise OracleError(f"shape {shape}: the linear program over all outputs failed: {found.message}")
        return counts.T @ np.asarray(found.x)

    def argmax_per_loss(self, scores: Scores, costs: Floats, shape: Shape) -> tuple[Integers, Floats, list[Labels]]:
        """For each value of costs . mu (costs are whole numbers): the best score and an output that has it."""
        costs = checked_scores(costs, self.n_parts(shape), shape)
        if not np.array_equal(costs, np.rint(costs)):
            raise ParameterError("argmax_per_loss needs costs that are whole numbers: scale the loss")
        labels, counts, given = self._asked(scores, shape)
        losses, values = (counts @ costs).astype(np.int64), counts @ given
        order = np.lexsort((-values, losses))  # stable: ties to the first
        levels, first = np.unique(losses[order], return_index=True)
        winners = order[first]
        return levels, values[winners], [labels[k].copy() for k in winners]

    def argmax_product(self, scores: Scores, costs: Floats, offsets: ArrayLike, shape: Shape) -> Labels:
        """The output with the largest max(0, offsets[0] + scores . mu) * (offsets[1] + costs . mu)."""
        labels, counts, given = self._asked(scores, shape)
        costs = checked_scores(costs, len(given), shape)
        first, second = np.asarray(offsets, dtype=np.float64)
        products = np.maximum(0.0, first + counts @ given) * (second + counts @ costs)
        return labels[int(products.argmax())].copy()

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """(log of the sum of exp(score), expected part counts), stable for scores of any size."""
        _, counts, given = self._asked(scores, shape)
        values = counts @ given
        top = float(values.max())
        shares = np.exp(values - top)
        total = float(shares.sum())
        return top + float(np.log(total)), counts.T @ (shares / total)

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best outputs, best first."""
        labels, counts, given = self._asked(scores, shape)
        return [labels[j].copy() for j in np.argsort(-(counts @ given), kind="stable")[:k]]

    project = nearest_mixture

    def _asked(self, scores: Scores, shape: Shape) -> tuple[list[Labels], Any, Scores]:
        """All outputs of a shape, their counts, and the scores once they are known to be numbers for its parts."""
        labels, counts = self.table(shape)
        return labels, counts, checked_scores(scores, counts.shape[1], shape)
