"""Small pairwise MRFs by looking at all outputs, compiled: every capability exactly."""

from collections.abc import Sequence

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_scores, kept_for_shapes, runs_of
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError
from structpred.oracles.mrf import NOTHING_LEFT, PairwiseOracle, graph_of, pairwise_batch, pairwise_scores, refuse
from structpred.oracles.solvers._constraint_rows import checked_rows
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

#: the most outputs K^n of one shape
MAX_OUTPUTS = 1 << 18

_kernels = later("structpred.oracles.fields._mrf_enumeration_kernels")


@kept_for_shapes
def enumeration_plan(shape: Shape) -> Integers:
    """What the kernels need to know of a shape, as their file says. With one state per node there is one output: one node."""
    graph = graph_of(shape)
    n, k = graph.n, graph.n_states
    if n * np.log2(k) > 18.5 or k**n > MAX_OUTPUTS:
        count = f"{k**n:,}" if n * np.log2(k) < 60 else f"about 10^{n * np.log10(k):.0f}"
        raise DataError(
            f"{n} nodes with {k} states have {count} outputs, too many to enumerate ({MAX_OUTPUTS:,} at most); use TreeMRF for "
            "graphs without cycles, else an oracle that searches"
        )
    if k == 1:
        return np.array([1, 1, 0, 0, 1, 1, 8, 8])
    n_high, n_middle = 3 * n // 8, (n - 3 * n // 8) // 3
    rows: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for e, (i, j) in enumerate(graph.edges.tolist()):
        rows[i].append((j, n * k + e * k * k))
    starts = 6 + n + 1 + 2 * np.cumsum([0, *map(len, rows)])
    flat = [number for row in rows for pair in sorted(row, reverse=True) for number in pair]
    return np.array([n, k, n_high, n_middle, n - n_high - n_middle, graph.n_parts, *starts.tolist(), *flat], dtype=np.int64)


class EnumerationMRF(PairwiseOracle):
    """Pairwise MRFs with up to 2^18 outputs (18 nodes with two states, 11 with three), each looked at.

    A call costs O(K^n) additions, some nanoseconds for four outputs. Ties go to the output that `enumerate` lists first.
    Raises DataError for larger shapes and for scores that are not finite, InfeasibleError where every output is forbidden.

    >>> import numpy as np
    >>> from structpred.oracles.mrf import graph_shape
    >>> scores = np.array([1.0, 0.0, 0.0, 0.5] + [0.0, -2.0, -2.0, 0.0])  # two nodes that rather agree
    >>> EnumerationMRF().argmax(scores, graph_shape(2, 2, [(0, 1)])).tolist()
    [0, 0]
    """

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output."""
        given, plan, labels = _given(scores, shape), enumeration_plan(shape), np.zeros(shape[0], np.int64)
        if status := _kernels().best_output(given, plan, labels):
            refuse(status, shape)
        return labels

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best output of each instance; neighbours of one shape are done in one compiled call."""
        scores, offsets = pairwise_batch(scores, offsets, shapes)
        ends = np.cumsum([0, *(shape[0] for shape in shapes)], dtype=np.int64)
        out = np.zeros(int(ends[-1]), np.int64)
        for shape, first, last in runs_of(shapes):
            if shape[1] == 1:  # the only output, unless it is forbidden
                for i in range(first, last):
                    self.argmax(scores[offsets[i] : offsets[i + 1]], shape)
                continue
            rows = out[ends[first] : ends[last]].reshape(-1, shape[0])
            status, i = _kernels().best_outputs(scores, offsets[first : last + 1], enumeration_plan(shape), rows)
            if status:
                refuse(status, shape, f"instance {first + i} of the batch: ")
        return out, ends

    def argmax_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Labels | None:
        """The best output with A mu <= b, None if there is none; A is (rows, n_parts), finite."""
        given, plan, rows = _given(scores, shape), enumeration_plan(shape), checked_rows(A, b, self.n_parts(shape))
        if rows is None:
            return None
        table, labels = rows[0] if shape[1] > 1 else rows[0].sum(axis=1, keepdims=True), np.zeros(shape[0], np.int64)
        status = _kernels().best_within(given, table, rows[1], plan, labels)
        if status == NOTHING_LEFT:
            return None
        if status:
            refuse(status, shape)
        return labels

    def argmax_product(self, scores: Scores, costs: Floats, offsets: Sequence[float] | Floats, shape: Shape) -> Labels:
        """The output with the largest max(0, offsets[0] + scores . mu) * (offsets[1] + costs . mu)."""
        first, second = offsets
        given, costs = _given(scores, shape), _given(costs, shape)
        plan, labels = enumeration_plan(shape), np.zeros(shape[0], np.int64)
        if status := _kernels().best_product(given, costs, float(first), float(second), plan, labels):
            refuse(status, shape)
        return labels

    def argmax_per_loss(self, scores: Scores, costs: Floats, shape: Shape) -> tuple[Floats, Floats, list[Labels]]:
        """For each value of costs . mu (costs are whole numbers): the best score and an output that has it."""
        costs = pairwise_scores(costs, shape)
        if not np.array_equal(costs, np.rint(costs)):
            raise DataError("argmax_per_loss needs part costs that are whole numbers")
        values, losses = _all_scores(scores, shape), _all_scores(costs, shape)
        low, high = int(losses.min()), int(losses.max())
        check_fits(16 * (high - low + 1), f"losses from {low} to {high}")
        best, codes = np.empty(high - low + 1), np.zeros(high - low + 1, np.int64)
        _kernels().best_of_each(values, losses, low, best, codes)
        levels = np.flatnonzero(best > 0.5 * FORBIDDEN)
        return (levels + low).astype(np.float64), best[levels], list(_states(codes[levels], shape))

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """(log of the sum of exp(score), expected part counts), stable for scores of any size."""
        values, plan = _all_scores(scores, shape), enumeration_plan(shape)
        top = float(values.max())
        if not top > 0.5 * FORBIDDEN:
            refuse(NOTHING_LEFT, shape)
        mu = np.zeros(int(plan[5]))
        log_z = float(_kernels().part_marginals(values, top, plan, mu))
        return log_z, mu if shape[1] > 1 else np.ones(len(scores))

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best outputs, best first."""
        values = _all_scores(scores, shape)
        # equal ones of the k-th stay in, so that a stable order decides which of them is taken
        worst = np.partition(values, -k)[-k] if k < len(values) else values.min()
        codes = np.flatnonzero((values >= worst) & (values > 0.5 * FORBIDDEN))
        return list(_states(codes[np.argsort(-values[codes], kind="stable")[:k]], shape))


def _given(scores: Scores, shape: Shape) -> Scores:
    """What the kernels take, checked: with one state per node all parts are on, and only their sum counts."""
    flat = pairwise_scores(scores, shape)
    return flat if shape[1] > 1 else checked_scores(flat.sum(keepdims=True), 1, (1,))


def _all_scores(scores: Scores, shape: Shape) -> Floats:
    given, plan = _given(scores, shape), enumeration_plan(shape)
    out = np.empty(shape[1] ** shape[0])
    _kernels().all_scores(given, plan, out)
    return out


def _states(codes: Integers, shape: tuple[int, ...]) -> Integers:
    """The states (len(codes), n) of the outputs with these places in the list."""
    n, k = shape[:2]
    if k == 1:
        return np.zeros((len(codes), n), np.int64)
    return codes[:, None] // k ** np.arange(n - 1, -1, -1) % k
