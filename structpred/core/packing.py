"""Batches of instances in one flat buffer: plain oracles get views, compiled ones the whole buffer."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.own_code import asked_parts, blamed, raised
from structpred.core.scores import all_finite
from structpred.core.stand_ins import stand_in
from structpred.core.types import AnyArray, Integers
from structpred.errors import DataError, OracleError, StructpredError
from structpred.runtime.ranges import ends_of, packed
from structpred.runtime.threads import run_ranges, split_evenly

_WHOLE = np.dtype(np.int64)


def argmax_batch(
    oracle: Oracle, scores: Scores, offsets: Integers, shapes: Sequence[Shape], n_jobs: int = 1
) -> tuple[Labels, Integers]:
    """The best output of each instance of a batch: (labels, label_offsets), both flat int64 arrays of the caller's own.

    Instance i has the scores ``scores[offsets[i]:offsets[i+1]]`` and the shape ``shapes[i]``. This is the only caller of
    an oracle's own `argmax_batch`, which n_jobs threads ask; where there is none, or a subclass has changed `argmax` since, it
    loops. Raises DataError for scores that are not finite and OracleError for labels that are not a 1-d int64 array, and for an
    exception of the oracle's own, naming the sample.
    """
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if len(offsets) != len(shapes) + 1 or offsets[-1] != len(scores):
        raise DataError(
            f"batch of {len(shapes)} shapes and {len(scores)} scores does not fit offsets {offsets[:3]}..{offsets[-1:]}"
        )
    check_finite(scores, offsets)
    if (batch := stand_in(oracle, "argmax_batch", ("argmax", "n_parts"))) is not None:

        def ask(*piece: Any) -> tuple[AnyArray, ...]:
            labels, ends = _checked_batch(_asked(batch, oracle, "argmax_batch", *piece), oracle, len(piece[2]), "argmax_batch")
            return labels.copy(), np.diff(ends)

        labels, lengths = _on_threads(ask, scores, offsets, shapes, n_jobs)
        return labels, ends_of(lengths)
    found = []
    for i, shape in enumerate(shapes):
        try:
            labels = oracle.argmax(scores[offsets[i] : offsets[i + 1]], shape)
        except Exception as error:
            raise blamed(error, i, oracle, "argmax") from error
        # a copy: an oracle may return the same buffer again, filled with the next answer
        found.append(checked_labels(labels, oracle, f"sample {i}: ").copy())
    return packed(found)


def _asked(batch: Callable[..., Any], oracle: Oracle, method: str, *arguments: Any) -> Any:
    try:
        return batch(*arguments)
    except (StructpredError, MemoryError):
        raise
    except Exception as error:
        name = f"{type(oracle).__name__}.{method}"
        raise OracleError(f"a batch of {len(arguments[-1])} samples: {name} raised {raised(error)}") from error


def _on_threads(
    ask: Callable[..., tuple[AnyArray, ...]], scores: Scores, offsets: Integers, shapes: Sequence[Shape],
    n_jobs: int,
) -> list[AnyArray]:  # fmt: skip
    """The arrays that `ask` gives for neighbours, on up to n_jobs threads, joined in the order of the instances."""
    if n_jobs == 1 or len(shapes) <= 1:
        return list(ask(scores, offsets, shapes))
    ranges = split_evenly(np.diff(offsets), n_jobs)
    found: dict[int, tuple[AnyArray, ...]] = {}

    def run(a: int, b: int) -> None:
        found[a] = ask(scores[offsets[a] : offsets[b]], offsets[a : b + 1] - offsets[a], shapes[a:b])

    run_ranges(run, ranges, n_jobs)
    return [np.concatenate(pieces) for pieces in zip(*(found[a] for a, _ in ranges), strict=True)]


def argmax_bound_batch(
    oracle: Any, scores: Scores, offsets: Integers, shapes: Sequence[Shape], n_jobs: int = 1
) -> tuple[Labels, Integers, Scores]:
    """(labels, label_offsets, bounds) of a batch, from an oracle that has `argmax_bound_batch`; this is its only caller.

    Raises OracleError for answers of another kind or size.
    """
    name = "argmax_bound_batch"

    def ask(*piece: Any) -> tuple[AnyArray, ...]:
        found = _asked(oracle.argmax_bound_batch, oracle, name, *piece)
        labels, ends, bounds = _checked_bounds(found, oracle, name, len(piece[2]), "(labels, label_offsets, bounds)")
        return labels, np.diff(ends), bounds

    labels, lengths, bounds = _on_threads(ask, scores, offsets, shapes, n_jobs)
    return labels, ends_of(lengths), bounds


def argmax_bound_from(
    oracle: Any, scores: Scores, offsets: Integers, shapes: Sequence[Shape], starts: Sequence[Scores | None]
) -> tuple[Labels, Integers, Scores, list[Scores]]:
    """(labels, label_offsets, bounds, states) of a batch, as `argmax_bound_batch` gives the first three."""
    name = "argmax_bound_from"
    found = _asked(oracle.argmax_bound_from, oracle, name, scores, offsets, shapes, starts)
    bounds = _checked_bounds(found, oracle, name, len(shapes), "(labels, label_offsets, bounds, states)")
    return *bounds, [_checked_flat(state, oracle, name, np.size(state)) for _, state in zip(shapes, found[3], strict=True)]


def parts_batch(
    oracle: Oracle, labels: Labels, ends: Integers, shapes: Sequence[Shape], first: int = 0
) -> tuple[Integers, Integers]:
    """The parts of each output of a batch: (parts, part offsets), both flat, for labels as `argmax_batch` gives them.

    This is the only caller of an oracle's own `parts_batch`; where there is none, or a subclass has changed `parts` since, it
    loops. Raises OracleError for an answer of another kind, and for an exception of `parts`; samples count from `first`.
    """
    if (batch := stand_in(oracle, "parts_batch", ("parts", "n_parts"))) is not None:
        return _checked_batch(_asked(batch, oracle, "parts_batch", labels, ends, shapes), oracle, len(shapes), "parts_batch")
    pieces = zip(pairwise(ends.tolist()), shapes, strict=True)
    found = [asked_parts(oracle, first + i, labels[a:b], shape) for i, ((a, b), shape) in enumerate(pieces)]
    return packed(found)


def has_points(oracle: object) -> bool:
    """Whether outputs are points, with amounts of parts (`Oracle.point`), and not sets of parts."""
    return callable(getattr(oracle, "point", None))


def points_batch(oracle: Any, labels: Labels, ends: Integers, shapes: Sequence[Shape], sizes: Integers) -> Scores:
    """The points that the labels of a batch stand for, flat, for an oracle that has `point`; sizes: their numbers of parts.

    Raises DataError, naming the sample, for labels that stand for none, and OracleError for an answer of another kind.
    """
    found = np.empty(int(sizes.sum()))
    pieces = zip(pairwise(ends.tolist()), pairwise(ends_of(sizes).tolist()), shapes, strict=True)
    for i, ((a, b), (first, last), shape) in enumerate(pieces):
        try:
            point = oracle.point(labels[a:b], shape)
        except ValueError as error:
            raise DataError(f"sample {i}: {error}") from error
        except Exception as error:
            raise blamed(error, i, oracle, "point") from error
        found[first:last] = _checked_flat(point, oracle, "point", last - first)
    return found


def marginals_batch(oracle: Any, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Scores, Scores]:
    """(log partition functions, expected part counts), flat as the scores are: what `marginals` gives one by one.

    This is the only caller of an oracle's own `marginals_batch`; where there is none, or a subclass has changed `marginals`
    since, it loops. Raises OracleError for answers of another size, and for an exception of the method itself.
    """
    if (batch := stand_in(oracle, "marginals_batch", ("marginals", "n_parts"))) is not None:
        answer = _asked(batch, oracle, "marginals_batch", scores, offsets, shapes)
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise OracleError(f"{type(oracle).__name__}.marginals_batch must return (log_zs, mu), got {type(answer).__name__}")
        log_zs = _checked_flat(answer[0], oracle, "marginals_batch", len(shapes))
        return log_zs, _checked_flat(answer[1], oracle, "marginals_batch", len(scores))
    found = [oracle.marginals(scores[a:b], shape) for (a, b), shape in zip(pairwise(offsets.tolist()), shapes, strict=True)]
    return np.array([log_z for log_z, _ in found], dtype=np.float64), np.concatenate([*(mu for _, mu in found), np.empty(0)])


def project_batch(oracle: Any, points: Scores, offsets: Integers, shapes: Sequence[Shape]) -> Scores:
    """The nearest point of each instance's hull of outputs, flat as the points are: what `project` gives one by one.

    This is the only caller of an oracle's own `project_batch`; where there is none, or a subclass has changed `project` or
    `argmax` since, it loops. Raises OracleError for an answer of another size.
    """
    if (batch := stand_in(oracle, "project_batch", ("project", "argmax", "n_parts"))) is not None:
        return _checked_flat(batch(points, offsets, shapes), oracle, "project_batch", len(points))
    found = (oracle.project(points[a:b], shape) for (a, b), shape in zip(pairwise(offsets.tolist()), shapes, strict=True))
    return np.concatenate([*found, np.empty(0)])


def _checked_flat(found: object, oracle: object, method: str, size: int) -> Scores:
    numbers = np.asarray(found, dtype=np.float64)
    if numbers.shape != (size,):
        raise OracleError(
            f"{type(oracle).__name__}.{method}: expected {size} numbers in a flat array, got shape {numbers.shape}; "
            "run check_oracle on it"
        )
    return numbers


def _checked_bounds(found: Any, oracle: Oracle, name: str, n: int, form: str) -> tuple[Labels, Integers, Scores]:
    if not (isinstance(found, tuple) and len(found) == 1 + form.count(",")):
        raise OracleError(f"{type(oracle).__name__}.{name} must return {form}, got {type(found).__name__}; run check_oracle")
    return *_checked_batch(found[:2], oracle, n, name), _checked_flat(found[2], oracle, name, n)


def _checked_batch(found: object, oracle: Oracle, n: int, method: str) -> tuple[Labels, Integers]:
    """(labels, label_offsets), or parts, with n + 1 ascending offsets from 0 to their number, else OracleError."""
    if isinstance(found, tuple) and len(found) == 2:
        labels, ends = found
        fits = _is_flat(labels) and _is_flat(ends) and len(ends) == n + 1 and ends[0] == 0 and ends[-1] == len(labels)
        if fits and not np.count_nonzero(ends[1:] < ends[:-1]):
            return labels, ends
    name, what = f"{type(oracle).__name__}.{method}", method.rpartition("_")[0].removesuffix("_bound").replace("argmax", "labels")
    if not (isinstance(found, tuple) and len(found) == 2):
        raise OracleError(
            f"{name} must return ({what}, {what.rstrip('s')}_offsets), got {type(found).__name__}; run check_oracle on it"
        )
    labels, ends = (checked_labels(x, oracle, method=method, what=what) for x in found)
    raise OracleError(
        f"{name} must return {n + 1} ascending {what.rstrip('s')}_offsets from 0 to {len(labels)}, the number of {what}, got "
        f"{len(ends)}: {ends[:3].tolist()}..{ends[-1:].tolist()}; run check_oracle on it"
    )


def _is_flat(labels: object) -> bool:
    return isinstance(labels, np.ndarray) and labels.dtype == _WHOLE and labels.ndim == 1


def checked_labels(labels: object, oracle: Oracle, where: str = "", *, method: str = "argmax", what: str = "labels") -> Labels:
    """The labels as they are if they are a 1-d int64 array, else an OracleError that says what came, and `where`."""
    if _is_flat(labels):
        return cast(Labels, labels)
    came = f"{labels.ndim}-d array of {labels.dtype}" if isinstance(labels, np.ndarray) else f"{type(labels).__name__}"
    raise OracleError(f"{where}{type(oracle).__name__}.{method} must return a 1-d int64 array of {what}, got a {came}")


def check_finite(scores: Scores, offsets: Integers, first: int = 0) -> None:
    """Raise DataError, naming the instance (numbered from `first`), if a score is NaN or infinite."""
    if all_finite(scores):
        return
    at = int(np.flatnonzero(~np.isfinite(scores))[0])
    i = int(np.searchsorted(offsets, at, side="right") - 1)
    raise DataError(
        f"sample {first + i}: part {at - int(offsets[i])} has the score {scores[at]}; scores must be finite "
        "(features or weights are too large, or not numbers)"
    )
