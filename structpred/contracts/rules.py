"""The rules that every oracle must keep: shapes, outputs, parts, ties, batches, the label grid; invalid labels are refused."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from structpred.contracts.engine import Examiner, Space, brief, enumerated, place, pooled
from structpred.contracts.maximum import HUGE, TIES, ZERO, Answer, ShapeCase, directed_scores, plain_scores
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import AnyArray, Floats, Integers
from structpred.errors import OracleError

#: instances of a batch whose marginals and projections are compared
_SUMMED = 24
_ASKED_AGAIN = (TIES, HUGE, ZERO)
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


def examine_shape(examiner: Examiner, shape: Shape, n_random: int) -> ShapeCase | None:
    """Run the rules for one shape; None where it broke off before anything could be compared."""
    with suppress(OracleError):
        where = place(shape)
        found = examiner.call("n_parts", where, shape)
        whole = isinstance(found, int | np.integer) and not isinstance(found, bool)
        cause = "a division with / (use //), or a missing return"
        examiner.insist("n_parts", whole and found >= 0, where, "n_parts to give a whole number >= 0", f"{found!r}", cause)
        again = examiner.call("n_parts", where, shape)
        examiner.insist("n_parts", again == found, where, f"twice the same n_parts: {found}", again, "state kept between calls")
        n_parts = int(found)
        space = enumerated(examiner, shape, n_parts)
        answers = [
            a for kind, theta in plain_scores(examiner.rng, n_parts, n_random) if (a := _answer(examiner, kind, theta, shape))
        ]
        seeds = space or pooled(shape, n_parts, [(a.labels, a.counts) for a in answers])
        if not seeds.labels:
            return None
        for kind, theta in directed_scores(examiner.rng, seeds, n_random):
            if answer := _answer(examiner, kind, theta, shape):
                answers.append(answer)
        case = ShapeCase(space or pooled(shape, n_parts, [(a.labels, a.counts) for a in answers]), answers)
        _feasible(examiner, case)
        if examiner.max_calls is None:
            examine_labels(examiner, case)
        _read_only(examiner, case)
        _label_grid(examiner, case)
        return case
    return None


def _answer(examiner: Examiner, kind: str, theta: Scores, shape: Shape) -> Answer | None:
    """argmax, twice, with its labels and parts checked; None if that broke off."""
    where = f"{place(shape)}, {kind}"
    with suppress(OracleError):
        labels = examiner.labels(examiner.call("argmax", where, theta, shape), where, "argmax").copy()
        again = examiner.call("argmax", where, theta, shape)
        cause = "random tie-breaking, the order of a set, or state (a buffer, a cache) kept between calls"
        same = np.array_equal(labels, again)
        examiner.expect("nondeterminism", same, where, f"twice the same answer: {brief(labels)}", again, cause)
        return Answer(kind, theta, labels, examiner.parts(labels, shape, len(theta), given_by="argmax"))
    return None


def _feasible(examiner: Examiner, case: ShapeCase) -> None:
    space = case.space
    if not space.complete:
        examiner.skip(
            "infeasible output",
            "no usable enumerate(shape), so an infeasible output could only be recognised where parts() refuses it; "
            "and 'wrong argmax' compares only with the outputs that argmax gave for other scores",
        )
        return
    for answer in case.answers:
        known = answer.labels.tobytes() in space.index
        cause = "a constraint that the search forgets, or an enumerate that misses outputs"
        where = f"{place(space.shape)}, {answer.kind}"
        examiner.expect("infeasible output", known, where, "an output that enumerate lists", answer.labels, cause)


def _read_only(examiner: Examiner, case: ShapeCase) -> None:
    """Read-only scores must do: only asked where the oracle does not change its input anyway."""
    if "mutated input" in examiner.broken or not case.answers:
        return
    answer, shape = case.answers[0], case.space.shape
    theta = answer.theta.copy()
    theta.flags.writeable = False
    cause = "scores are changed and changed back, or a compiled signature without read-only arrays"
    try:
        found: object = examiner.oracle.argmax(theta, shape)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    same = isinstance(found, np.ndarray) and np.array_equal(found, answer.labels)
    examiner.expect("read-only input", same, place(shape), f"the same answer, {brief(answer.labels)}", found, cause)


def _label_grid(examiner: Examiner, case: ShapeCase) -> None:
    space = case.space
    if "label_grid" not in examiner.has:
        examiner.skip(
            "label grid", "no label_grid(shape): Hamming counts missed parts; label costs and token weights are not offered"
        )
        return
    found = examiner.call("label_grid", place(space.shape), space.shape)
    pair = isinstance(found, tuple) and len(found) == 2 and all(isinstance(k, int | np.integer) for k in found)
    fits = pair and found[0] * found[1] <= space.n_parts
    cause = "positions and labels swapped, or other parts come before the grid"
    examiner.insist("label grid", fits, place(space.shape), f"(positions, labels), at most {space.n_parts} in all", found, cause)
    n_positions, n_labels = found
    for labels, mu in zip(space.labels[:500], space.counts, strict=False):
        wanted = np.zeros((n_positions, n_labels))
        in_range = len(labels) == n_positions and (not len(labels) or (labels.min() >= 0 and labels.max() < n_labels))
        if in_range:
            wanted[np.arange(n_positions), labels] = 1.0
        ok = in_range and np.array_equal(mu[: n_positions * n_labels], wanted.ravel())
        expected = f"the first {n_positions * n_labels} parts to say which label each position has, for labels {brief(labels)}"
        examiner.expect("label grid", ok, place(space.shape), expected, np.flatnonzero(mu), cause)


def examine_memory(examiner: Examiner, cases: list[ShapeCase]) -> None:
    """Ask again at the end, in another order: earlier calls must have left no trace."""
    asked = [(case.space.shape, answer) for case in cases for answer in case.answers if answer.kind.split(",")[0] in _ASKED_AGAIN]
    for k in examiner.rng.permutation(len(asked)):
        shape, answer = asked[k]
        with suppress(OracleError):
            where = f"{place(shape)}, {answer.kind}, asked again after others"
            again = examiner.call("argmax", where, answer.theta, shape)
            same = np.array_equal(again, answer.labels)
            cause = "state kept between calls: a cache with too short a key, a counter, a random number"
            examiner.expect("nondeterminism", same, where, f"the answer of before: {brief(answer.labels)}", again, cause)


def examine_batch(examiner: Examiner, cases: list[ShapeCase]) -> None:
    """argmax_batch equals the loop, element by element: on mixed shapes, on equal shapes, on none."""
    if "argmax_batch" not in examiner.has:
        examiner.skip("batch different from loop", "no argmax_batch: batches are looped over")
        return
    pairs = [(case.space.shape, answer) for case in cases for answer in case.answers]
    mixed = [pairs[k] for k in examiner.rng.permutation(len(pairs))]
    equal = [[(case.space.shape, answer) for answer in case.answers] for case in cases]
    for name, batch in [("mixed shapes", mixed), ("no instance", []), *(("equal shapes", b) for b in equal)]:
        with suppress(OracleError):
            where = f"a batch of {len(batch)}, {name}"
            scores, offsets = _flat((a.theta for _, a in batch), float), _ends(a.theta for _, a in batch)
            rule, cause = "batch different from loop", "another rule for ties, or offsets that are off by one or by one instance"
            shapes = [shape for shape, _ in batch]
            found = examiner.pair(rule, "argmax_batch", where, scores, offsets, shapes, gives="(labels, label_offsets)")
            labels, ends = (examiner.labels(x, where, "argmax_batch") for x in found)
            wanted = _ends(a.labels for _, a in batch)
            examiner.insist(rule, np.array_equal(ends, wanted), where, f"label_offsets {brief(wanted)}", ends, cause)
            examiner.insist(rule, len(labels) == wanted[-1], where, f"{wanted[-1]} labels", len(labels), cause)
            for k, (shape, answer) in enumerate(batch):
                piece = labels[wanted[k] : wanted[k + 1]]
                here = f"element {k} of {where}: {place(shape)}, {answer.kind}"
                examiner.expect(
                    rule, np.array_equal(piece, answer.labels), here, f"argmax's {brief(answer.labels)}", piece, cause
                )


def examine_other_batches(examiner: Examiner, cases: list[ShapeCase]) -> None:
    """Calls for batches equal their loops to the last bit: on mixed shapes, on neighbours of one shape and on none."""
    for name, (plain, rule, packed) in _BATCHES.items():
        if name not in examiner.has or not callable(getattr(examiner.oracle, plain, None)):
            examiner.skip(rule, f"no {name}: batches are looped over")
            continue
        pairs = [(case.space.shape, answer) for case in cases for answer in case.answers]
        if plain in ("marginals", "project"):
            pairs = [(shape, a) for shape, a in pairs if np.abs(a.theta).max(initial=0.0) < 1e3]
        mixed = [pairs[k] for k in examiner.rng.permutation(len(pairs))]
        most = _SUMMED if plain in ("marginals", "project") else len(pairs)
        for batch in (mixed[:most], pairs[-most:], []):
            with suppress(OracleError):
                where, shapes = f"a batch of {len(batch)}", [shape for shape, _ in batch]
                given = [a.labels if plain == "parts" else a.theta for _, a in batch]
                wanted = packed([examiner.call(plain, where, x, shape) for x, shape in zip(given, shapes, strict=True)])
                flat = _flat(given, np.int64 if plain == "parts" else np.float64)
                found = examiner.call(name, where, flat, _ends(given), shapes)
                found = found if isinstance(found, tuple) else (found,)
                expected = f"{name} to give {len(wanted)} arrays"
                examiner.insist(rule, len(found) == len(wanted), where, expected, found, "see the method's signature")
                for answer, right in zip(found, wanted, strict=True):
                    same = np.array_equal(answer, right) and np.asarray(answer).dtype == right.dtype
                    examiner.expect(rule, same, where, f"{brief(right)}, one by one", answer, "offsets, or scratch kept")


def _ends(pieces: Iterable[Any]) -> Integers:
    return np.cumsum([0, *map(len, pieces)], dtype=np.int64)


def _flat(pieces: Iterable[Any], kind: type) -> AnyArray:
    return np.concatenate([*pieces, np.empty(0, kind)])


def _column(found: list[Any], k: int) -> list[Any]:
    return [one[k] for one in found]


_BATCHES: dict[str, tuple[str, str, Callable[[list[Any]], tuple[AnyArray, ...]]]] = {
    "parts_batch": ("parts", "parts of a batch different from loop", lambda found: (_flat(found, np.int64), _ends(found))),
    "argmax_bound_batch": (
        "argmax_bound",
        "bounds of a batch different from loop",
        lambda found: (_flat(_column(found, 0), np.int64), _ends(_column(found, 0)), np.array(_column(found, 1), np.float64)),
    ),
    "marginals_batch": (
        "marginals",
        "marginals of a batch different from loop",
        lambda found: (np.array(_column(found, 0), np.float64), _flat(_column(found, 1), np.float64)),
    ),
    "project_batch": ("project", "project of a batch different from loop", lambda found: (_flat(found, np.float64),)),
}
