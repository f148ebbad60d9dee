"""Projections of a batch onto the hulls of all outputs of an oracle, in lockstep: one call of its batched argmax a cycle."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.core.oracle import Oracle, Scores, Shape
from structpred.core.packing import argmax_batch, check_finite, parts_batch
from structpred.core.scores import checked_scores
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import ConvergenceError, DataError, OracleError, ParameterError
from structpred.projections.active_pools import ActivePools
from structpred.runtime.threads import checked_jobs, run_ranges, split_evenly


class _Read(str):
    """A shape as text, of active sets that were read: shapes of any kind need not be in a file."""


class ActiveSets:
    """Active vertices of many instances under their ids, kept from one call of `nearest_in_hulls` to the next.

    Points that moved little then take few oracle calls: a new call begins with the vertices and weights of the last one, and
    tries those that were active before it asks the oracle. Results agree with those of a cold start to the gap, not to the
    last bit.

    Parameters
    ----------
    max_bytes : int
        What is kept, at most, once a call has ended; the ids that were used least recently are forgotten first. 1 GiB by default.

    Raises
    ------
    ParameterError
        For fewer than 0 bytes.
    """

    def __init__(self, max_bytes: int = 1 << 30) -> None:
        if max_bytes < 0:
            raise ParameterError(f"max_bytes must be at least 0, got {max_bytes!r}")
        self.max_bytes = max_bytes
        self._pools = ActivePools()
        self._slots: dict[Hashable, int] = {}
        self._shapes: dict[Hashable, Shape] = {}

    def __len__(self) -> int:
        """How many instances are kept."""
        return len(self._slots)

    def saved(self) -> dict[str, Any]:
        """All that is kept, as arrays and texts, for whole numbers as ids; a run that takes it up again has the same bits."""
        shapes = [self._shapes[name] for name in self._slots]
        texts = [str(known) if isinstance(known, _Read) else repr(known) for known in shapes]
        numbers = {"ids": list(self._slots), "slots": list(self._slots.values())}
        arrays = {name: np.array(own, dtype=np.int64) for name, own in numbers.items()}
        return {**arrays, "shapes": texts, **self._pools.saved()}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Keep what `saved` gave, and nothing else. Raises DataError for what does not fit together."""
        pools, ids, slots = ActivePools.restored(saved), np.asarray(saved.get("ids")), np.asarray(saved.get("slots"))
        shapes = saved.get("shapes", ())
        n, kinds = len(shapes), (ids.dtype.kind, slots.dtype.kind)
        if not (kinds == ("i", "i") and ids.shape == slots.shape == (n,) and len(set(ids.tolist())) == n):
            raise DataError(f"saved active sets: expected {n} different ids with a slot each, one for each shape")
        if n and not (slots.min() >= 0 and slots.max() < pools.n_slots and len(np.unique(slots)) == n):
            raise DataError("saved active sets: expected a slot of its own for each id")
        self._pools = pools
        self._slots = dict(zip(ids.tolist(), slots.tolist(), strict=True))
        self._shapes = {name: _Read(text) for name, text in zip(self._slots, shapes, strict=True)}

    def _is_of(self, key: Hashable, slot: int, shape: Shape, n_parts: int) -> bool:
        """Whether the slot's vertices are outputs of the shape."""
        known = self._shapes[key]
        if isinstance(known, _Read):
            return known == repr(shape) and self._pools.within(slot, n_parts)
        return bool(known == shape)

    def claim(self, ids: Sequence[Hashable], shapes: Sequence[Shape], sizes: Integers) -> tuple[ActivePools, Integers]:
        """The pools and a slot for each id, empty for a new id or another shape. Raises DataError for ids twice.

        sizes: the number of parts of each shape.
        """
        if len(ids) != len(shapes) or len(set(ids)) != len(ids):
            raise DataError(
                f"expected {len(shapes)} different ids, one an instance, got {len(ids)} of which {len(set(ids))} differ"
            )
        if self._pools.n_bytes > self.max_bytes:
            # keep what was used last, up to half of the bytes; in pools of its own, so that earlier results keep theirs
            names, used = list(self._slots), np.array(list(self._slots.values()), dtype=np.int64)
            kept = np.cumsum(self._pools.bytes_of(used)[::-1])[::-1] <= self.max_bytes // 2
            self._pools = self._pools.only(used[kept])
            names = [name for name, keep in zip(names, kept.tolist(), strict=True) if keep]
            self._slots = {name: slot for slot, name in enumerate(names)}
            self._shapes = {name: self._shapes[name] for name in names}
        slots = np.empty(len(ids), dtype=np.int64)
        for i, (key, shape) in enumerate(zip(ids, shapes, strict=True)):
            slot = self._slots.pop(key, -1)
            if slot >= 0 and not self._is_of(key, slot, shape, int(sizes[i])):
                self._pools.clear(slot)
            slots[i] = slot if slot >= 0 else self._pools.new_slot()
            self._slots[key] = int(slots[i])  # the last in the dictionary is the last that was used
            self._shapes[key] = shape
        return self._pools, slots


@dataclass(frozen=True, eq=False)
class HullPoints:
    """The nearest points of a batch, and what differentiating them takes.

    mu: the points, flat. gaps: <residual, v - mu> for the best vertex v, for each instance, so that (mu - mu*)^T D (mu - mu*) <=
    gap. n_calls: oracle calls of each instance.
    """

    mu: Floats
    gaps: Floats
    n_calls: Integers
    _pools: ActivePools
    _batch: tuple[Any, ...]
    _versions: Integers
    _jobs: int

    def pull_back(self, given: ArrayLike) -> Floats:
        """J^T g for g = `given`, flat, where J = d mu / d points, which is symmetric; one-sided where an active weight is zero.

        J = V M V^T: on the active vertices V, M the inverse of V^T D V among changes of the weights that sum to zero. Raises
        DataError for numbers that are not finite or do not fit, and where the instances have been solved for again since.
        """
        from structpred.projections import _lockstep_kernels as kernels

        given = np.ascontiguousarray(given, dtype=np.float64)
        slots, offsets = self._batch[:2]
        if given.shape != self.mu.shape:
            raise DataError(f"expected {self.mu.size} numbers to pull back, one a part, got shape {given.shape}")
        check_finite(given, offsets)
        if not np.array_equal(self._pools.versions[slots], self._versions):
            raise DataError(
                "these instances have been solved for again since, under the same ids: their active vertices are gone"
            )
        found = np.empty_like(given)
        sets = self._pools.arrays
        run_ranges(
            lambda a, b: kernels.pull_back(sets, self._batch, given, found, a, b),
            split_evenly(np.diff(offsets), self._jobs),
            self._jobs,
        )
        return found


def nearest_in_hulls(
    oracle: Oracle, points: ArrayLike, offsets: ArrayLike, shapes: Sequence[Shape], *, metric: ArrayLike | None = None,
    tol: float = 1e-13, max_iter: int = 10_000, sets: ActiveSets | None = None, ids: Sequence[Hashable] | None = None,
    n_jobs: int | None = None,
) -> HullPoints:  # fmt: skip
    """max_mu points . mu - 1/2 sum_p metric_p mu_p^2 over the hull of all outputs, for each instance of a batch.

    With metric 1, the default, mu is the nearest point of the hull. Wolfe's method (1976), which is the active set method of
    SparseMAP (Niculae et al. 2018), for all unfinished instances together: mu is optimal over the affine hull of few active
    vertices. A major cycle asks the oracle once, for the whole batch, for the best outputs at points - metric * mu, which become
    active. Minor cycles, in one compiled call, move to the new optimum; where the way leaves the hull they stop, and drop what
    has weight zero. No active set comes twice, so it is finite. The oracle needs nothing but its three methods.

    Parameters
    ----------
    oracle, points, offsets, shapes
        As `argmax_batch` takes them: the point of instance i is points[offsets[i]:offsets[i + 1]], one number a part.
    metric : array, optional
        d >= 0, a number a part, flat as the points.
    tol, max_iter
        An instance is done when its gap is at most tol * max(1, <|residual|, v + mu>), the size of the terms that cancel in it.
        More than max_iter oracle calls for an instance are an error.
    sets, ids
        Where to keep active vertices, and the name of each instance there.
    n_jobs : int, optional
        Threads of the compiled steps; results do not depend on them.

    Raises
    ------
    ConvergenceError
        Naming the instances that did not reach `tol`.
    DataError
        For points or a metric that do not fit or are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> found = nearest_in_hulls(MulticlassOracle(), [0.75, 0.25, -9.0, 0.1, 0.3], [0, 3, 5], [(3,), (2,)])
    >>> found.mu.round(6).tolist()
    [0.75, 0.25, 0.0, 0.4, 0.6]
    >>> found.pull_back([1.0, 0.0, 0.0, 0.0, 1.0]).round(6).tolist()
    [0.5, -0.5, 0.0, -0.5, 0.5]
    """
    if not (tol >= 0 and max_iter >= 2):
        raise ParameterError(f"expected tol >= 0 and max_iter >= 2, got {tol!r} and {max_iter!r}")
    found, ends = np.ascontiguousarray(points, dtype=np.float64), np.ascontiguousarray(offsets, dtype=np.int64)
    sizes = [oracle.n_parts(shape) for shape in shapes]
    if found.ndim != 1 or not np.array_equal(ends, np.cumsum([0, *sizes])) or ends[-1] != len(found):
        raise DataError(
            f"expected the {sum(sizes)} parts of {len(sizes)} shapes one behind the other, got points of shape {found.shape} and "
            f"offsets {ends[:3]}..{ends[-1:]}"
        )
    check_finite(found, ends)
    metrics = np.ones(len(found)) if metric is None else np.ascontiguousarray(metric, dtype=np.float64)
    if metrics.shape != found.shape or not (np.isfinite(metrics) & (metrics >= 0)).all():
        raise DataError(f"expected a metric of {len(found)} finite numbers >= 0, got shape {metrics.shape}")
    jobs = checked_jobs(n_jobs)
    if sets is None:
        sets, ids = ActiveSets(), range(len(shapes))
    pools, slots = sets.claim(range(len(shapes)) if ids is None else ids, shapes, np.diff(ends))
    pools.versions[slots] += 1
    batch = (slots, ends, found, metrics, np.zeros(len(found)))
    try:
        gaps, n_calls = _solve(oracle, pools, batch, shapes, tol, max_iter, jobs)
    except BaseException:
        for slot in slots.tolist():  # half of a cycle is no start for the next one
            pools.clear(slot)
        raise
    return HullPoints(batch[4], gaps, n_calls, pools, batch, pools.versions[slots], jobs)


def nearest_mixture(self: Oracle, point: Scores, shape: Shape) -> Floats:
    """The nearest mixture of outputs to a point, as `nearest_in_hulls` finds it; a call of argmax a step.

    The method `project` of oracles that have no faster one: ``project = nearest_mixture`` in the class.
    """
    point = checked_scores(point, self.n_parts(shape), shape)
    return nearest_in_hulls(self, point, [0, len(point)], [shape]).mu


def _solve(
    oracle: Oracle, pools: ActivePools, batch: tuple[Any, ...], shapes: Sequence[Shape], tol: float, max_iter: int, jobs: int
) -> tuple[Floats, Integers]:
    """Major cycles until every instance is done: (gaps, oracle calls)."""
    from structpred.projections import _lockstep_kernels as kernels

    slots, offsets = batch[:2]
    n, sizes = len(shapes), np.diff(offsets)
    gaps, scales, states = np.full(n, np.inf), np.ones(n), np.zeros(n, dtype=np.int64)
    stuck, n_calls = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    alive, scores, places, kept = np.arange(n), np.empty(int(offsets[-1])), offsets, list(shapes)

    def step(kernel: Any, vertices: Integers, ends: Integers) -> None:
        run = (alive, vertices, ends, scores, places, gaps, scales, states, stuck, tol)
        arrays = pools.arrays
        run_ranges(lambda a, b: kernel(arrays, batch, run, a, b), split_evenly(sizes[alive], jobs), jobs)

    step(kernels.resume, none, none)
    while len(alive):
        labels, label_ends = argmax_batch(oracle, scores[: places[-1]], places, kept)
        vertices, ends = parts_batch(oracle, labels, label_ends, kept)
        most = np.repeat(sizes[alive], np.diff(ends))
        if (wrong := (vertices < 0) | (vertices >= most)).any():  # kernels would write beside their arrays
            k = int(wrong.argmax())
            i = alive[np.searchsorted(ends, k, side="right") - 1]
            raise OracleError(f"sample {i}: expected parts in [0, {most[k]}), got {vertices[k]}; run check_oracle on the oracle")
        n_calls[alive] += 1
        pools.reserve(slots[alive], np.diff(ends))
        step(kernels.advance, vertices, ends)
        if (states[alive] == kernels.STUCK).any() or (n_calls[alive] >= max_iter)[states[alive] == kernels.RUNNING].any():
            goals = tol * scales
            open_ones = alive[states[alive] != kernels.DONE]
            worst = int(open_ones[np.argmax(gaps[open_ones] / goals[open_ones])])
            rounding = bool((states[open_ones] == kernels.STUCK).any())
            some = f"{open_ones[:5].tolist()}{' ...' if len(open_ones) > 5 else ''}"
            raise ConvergenceError(
                f"{len(open_ones)} of the projections are not done, samples {some}: sample {worst} reached a gap of "
                f"{gaps[worst]:.3g} after {int(n_calls[worst])} oracle calls, expected at most {goals[worst]:.3g}: "
                + ("rounding keeps it there, so tol is too small" if rounding else f"raise max_iter (now {max_iter})")
            )
        running = np.flatnonzero(states[alive] == kernels.RUNNING)
        if len(running) < len(alive):
            alive, old = alive[running], places
            places = np.concatenate(([0], np.cumsum(sizes[alive])))
            kernels.compact(scores, old, running, places)
            kept = [shapes[i] for i in alive.tolist()]
    return gaps, n_calls
