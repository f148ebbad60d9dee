"""Batches of instances in one flat buffer: plain oracles get views, compiled ones the whole buffer."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.errors import DataError, OracleError


def argmax_batch(
    oracle: Oracle, scores: Scores, offsets: npt.NDArray[np.int64], shapes: Sequence[Shape]
) -> tuple[Labels, npt.NDArray[np.int64]]:
    """The best output of each instance of a batch: (labels, label_offsets), both flat int64.

    Instance i has the scores ``scores[offsets[i]:offsets[i+1]]`` and the shape ``shapes[i]``. This is the only caller of
    an oracle's own `argmax_batch`; where there is none it loops. Raises DataError for scores that are not finite and
    OracleError for labels that are not a 1-d int64 array.
    """
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    offsets = np.ascontiguousarray(offsets, dtype=np.int64)
    if len(offsets) != len(shapes) + 1 or offsets[-1] != len(scores):
        raise DataError(
            f"batch of {len(shapes)} shapes and {len(scores)} scores does not fit offsets {offsets[:3]}..{offsets[-1:]}"
        )
    check_finite(scores, offsets)
    if callable(batch := getattr(oracle, "argmax_batch", None)):
        labels, label_offsets = batch(scores, offsets, shapes)
        return labels, label_offsets
    found = [checked_labels(oracle.argmax(scores[offsets[i] : offsets[i + 1]], s), oracle) for i, s in enumerate(shapes)]
    lengths = np.array([0, *map(len, found)], dtype=np.int64)
    return np.concatenate([*found, np.empty(0, np.int64)]), np.cumsum(lengths)


def checked_labels(labels: object, oracle: Oracle) -> Labels:
    """The labels as they are if they are a 1-d int64 array, else an OracleError that says what came."""
    if isinstance(labels, np.ndarray) and labels.dtype == np.int64 and labels.ndim == 1:
        return labels
    came = f"{labels.ndim}-d array of {labels.dtype}" if isinstance(labels, np.ndarray) else f"{type(labels).__name__}"
    raise OracleError(f"{type(oracle).__name__}.argmax must return a 1-d int64 array of labels, got a {came}")


def check_finite(scores: Scores, offsets: npt.NDArray[np.int64], first: int = 0) -> None:
    """Raise DataError, naming the instance (numbered from `first`), if a score is NaN or infinite."""
    if np.isfinite(scores).all():
        return
    at = int(np.flatnonzero(~np.isfinite(scores))[0])
    i = int(np.searchsorted(offsets, at, side="right") - 1)
    raise DataError(
        f"sample {first + i}: part {at - int(offsets[i])} has the score {scores[at]}; scores must be finite "
        "(features or weights are too large, or not numbers)"
    )
