"""The rule that `parts` refuses invalid labels: what is tried, and what cannot be checked without `enumerate`."""

from collections.abc import Iterator

import numpy as np

from structpred.contracts.engine import Examiner, Space, brief, place
from structpred.contracts.scores import ShapeCase
from structpred.core.oracle import Labels
from structpred.core.types import Floats

RULE = "invalid labels"
#: outputs of a shape that are bent, and random labels that are tried
N_BENT = 12
#: with this number of different outputs, what they all have in common (length, no repeats) is taken for a rule of theirs
ENOUGH = 10


def examine_labels(examiner: Examiner, case: ShapeCase) -> None:
    """Give `parts` labels that are not an output: out of range, of another length, repeated, entries changed or exchanged."""
    space = case.space
    outputs = {*space.index, *(answer.labels.tobytes() for answer in case.answers)}
    if not space.complete:
        examiner.skip(
            "some invalid labels",
            "no usable enumerate(shape), so only labels were tried that cannot be outputs (out of range; of another length, or "
            "repeated, where no known output is so); parts() may accept others",
        )
    sorted_outputs = {(np.sort(y).tobytes(), mu.tobytes()) for y, mu in zip(space.labels, space.counts, strict=True)}
    for why, labels in (_bent if space.complete else _impossible)(examiner.rng, space):
        if labels.tobytes() in outputs:
            continue
        mu = _accepted(examiner, space, labels)
        if mu is None:
            examiner.checked[RULE] += 1
            continue
        if (np.sort(labels).tobytes(), mu.tobytes()) in sorted_outputs:
            continue  # an output with its labels in another order, taken for that output
        cause = "a check that is missing: wrong labels would be trained as the truth (raise ValueError for them)"
        expected = f"parts to refuse labels {why}: {brief(labels)}"
        examiner.expect(RULE, False, place(space.shape), expected, f"the parts {brief(np.flatnonzero(mu))}", cause)


def _accepted(examiner: Examiner, space: Space, labels: Labels) -> Floats | None:
    """The part counts that `parts` gives for the labels; None where it raises, or answers what training refuses anyway."""
    try:
        found = np.asarray(examiner.oracle.parts(labels.copy(), space.shape))
    except Exception:
        return None
    if found.dtype.kind not in "iu" or found.ndim != 1 or (found.size and not 0 <= found.min() <= found.max() < space.n_parts):
        return None
    return np.bincount(found, minlength=space.n_parts).astype(np.float64)


def _bent(rng: np.random.Generator, space: Space) -> Iterator[tuple[str, Labels]]:
    """Outputs with something changed, and random labels; some of them are outputs."""
    values = np.unique(np.concatenate(space.labels))
    yield from _impossible(rng, space)
    for k in rng.integers(len(space.labels), size=N_BENT):
        y = space.labels[k]
        yield from _of_other_length(y)
        if not len(y):
            continue
        at, other = (int(j) for j in rng.integers(len(y), size=2))
        yield "with one entry changed", _with(y, at, int(rng.choice(values)))
        yield "with two entries exchanged", _with(_with(y, at, int(y[other])), other, int(y[at]))
        yield "with an entry that repeats another", _with(y, at, int(y[other]))
        yield "that are random", rng.choice(values, size=len(y)).astype(np.int64)


def _impossible(rng: np.random.Generator, space: Space) -> Iterator[tuple[str, Labels]]:
    """Labels that cannot be outputs, judging by the known outputs."""
    top, low = (int(f([int(f(y)) for y in space.labels if len(y)] or [0])) for f in (max, min))
    lengths = {len(y) for y in space.labels}
    repeats = any(len(np.unique(y)) < len(y) for y in space.labels)
    for k in rng.integers(len(space.labels), size=N_BENT):
        y = space.labels[k]
        if not len(y):
            continue
        at = int(rng.integers(len(y)))
        yield "out of range", _with(y, at, top + 1_000_000)
        if low >= 0:
            yield "out of range", _with(y, at, -1)
        if len(space.labels) < ENOUGH:
            continue
        if len(lengths) == 1:
            yield from _of_other_length(y)
        if not repeats and len(y) >= 3:
            yield "with an entry that repeats another", _with(y, at, int(y[at - 1]))


def _of_other_length(y: Labels) -> Iterator[tuple[str, Labels]]:
    if len(y):
        yield "of another length", y[:-1].copy()
        yield "of another length", np.append(y, y[-1])
    yield "of another length", np.append(y, 0)


def _with(y: Labels, at: int, value: int) -> Labels:
    out = y.copy()
    out[at] = value
    return out
