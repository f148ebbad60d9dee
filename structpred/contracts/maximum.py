"""The score vectors that the contract checks try, and the rule that argmax finds their maximum.

Where it does not, explanations are tried out: what most likely went wrong.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from structpred.contracts.engine import Examiner, Space, brief, place, tolerance
from structpred.core.oracle import Labels, Scores
from structpred.core.types import Floats, Integers
from structpred.errors import OracleError
from structpred.task.task_checks import GAP, gap_advice

#: weights of the loss in loss-augmented inference: none, tiny to huge
LAMBDAS = (0.0, *np.logspace(-3, 6, 19).tolist())

RANDOM, TIES, HUGE, ZERO = "random scores", "scores with ties", "scores of size 1e6", "zero scores"
POSITIVE, NEGATIVE = "positive scores", "negative scores"
#: float32 has steps of 8 there and loses the noise, float64 has steps of 1.5e-8
OFFSET = "scores of 1e8 plus noise"


@dataclass
class Answer:
    """What argmax gave for one score vector; `kind` says in words what sort of scores they were."""

    kind: str
    theta: Scores
    labels: Labels
    counts: Floats

    @property
    def score(self) -> float:
        """theta . mu."""
        return float(self.counts @ self.theta)


@dataclass
class ShapeCase:
    """All that was learned about one shape."""

    space: Space
    answers: list[Answer]


def plain_scores(rng: np.random.Generator, n_parts: int, n_random: int) -> list[tuple[str, Scores]]:
    """Random scores, scores with many ties, scores of one sign, huge ones, a common offset, zeros."""
    few = max(3, n_random // 4)
    scores = [(RANDOM, rng.normal(size=n_parts)) for _ in range(n_random)]
    scores += [(TIES, rng.integers(-1, 2, n_parts).astype(np.float64)) for _ in range(few)]
    scores += [(POSITIVE, rng.exponential(size=n_parts)) for _ in range(few)]
    scores += [(NEGATIVE, -rng.exponential(size=n_parts)) for _ in range(few)]
    scores += [(HUGE, 1e6 * rng.normal(size=n_parts)) for _ in range(3)]
    scores += [(OFFSET, 1e8 + rng.normal(size=n_parts)) for _ in range(few)]
    return [*scores, (ZERO, np.zeros(n_parts))]


def directed_scores(rng: np.random.Generator, space: Space, n_random: int) -> list[tuple[str, Scores]]:
    """Scores that favour one output, and loss-augmented scores (the loss is zero at one output) for each of LAMBDAS."""
    out = []
    for _ in range(n_random):
        mu = space.counts[rng.integers(len(space.labels))]
        out.append(("scores that favour one output", 2.0 * mu - 1.0 + 0.1 * rng.normal(size=space.n_parts)))
    for lam in LAMBDAS:
        mu = space.counts[rng.integers(len(space.labels))]
        costs = rng.integers(0, 3, space.n_parts) * (mu == 0)
        out.append((f"loss-augmented scores, lam = {lam:.3g}", rng.normal(size=space.n_parts) + lam * costs))
    return out


#: outputs and parts that are queried one by one when a cause is sought
_MOST = 200
#: what float32 and fixed thresholds lose of large scores, beside their sizes
_DIGITS = 2.0**-20


class Verdict(NamedTuple):
    """An answer and the known outputs of its shape, which do not all score alike."""

    space: Space
    answer: Answer
    low: float
    high: float
    best: Labels
    allowed: float

    @property
    def missed(self) -> bool:
        """Whether an output scores more than the answer, by more than the oracle allows."""
        return self.answer.score + self.allowed < self.high - tolerance([self.low, self.high])

    @property
    def worst(self) -> bool:
        """Whether no output scores less than the answer."""
        return self.answer.score <= self.low + tolerance([self.low, self.high])


def examine_maximum(examiner: Examiner, cases: list[ShapeCase]) -> None:
    """Compare every answer with the best known output; where it is worse, say what explains the answers."""
    verdicts = [v for case in cases for v in _verdicts(examiner, case)]
    wrong = [v for v in verdicts if v.missed]
    minimises = wrong and sum(v.worst for v in verdicts) >= 0.9 * len(verdicts)
    if not examiner.oracle.exact and not minimises:
        del examiner.checked["wrong argmax"]
        examiner.skip("wrong argmax", "exact = False: argmax may miss the maximum")
        return
    if not wrong:
        return
    first = min(wrong, key=lambda v: v.space.n_parts)
    answer, where = first.answer, f"{place(first.space.shape)}, {first.answer.kind}"
    came, expected = f"{brief(answer.labels)} with {answer.score:.9g}", f"{brief(first.best)} with the score {first.high:.9g}"
    if minimises:
        cause = "it minimises: scores are taken for costs (negate them before a solver that minimises)"
        examiner.expect("negated scores", False, where, expected, came, cause)
        return
    examiner.expect("wrong argmax", False, where, expected, came, _cause(examiner, verdicts))
    examiner.broken["wrong argmax"].times = len(wrong)


def _verdicts(examiner: Examiner, case: ShapeCase) -> Iterator[Verdict]:
    space = case.space
    for answer in case.answers:
        if space.complete and answer.labels.tobytes() not in space.index:
            continue  # infeasible: another rule
        values = space.scores(answer.theta)
        low, high = float(values.min()), float(values.max())
        examiner.checked["wrong argmax"] += 1
        if high - low > tolerance([low, high]):
            allowed = examiner.oracle.tolerance * (1.0 + abs(answer.score))
            yield Verdict(space, answer, low, high, space.labels[int(values.argmax())], allowed)


def _cause(examiner: Examiner, verdicts: list[Verdict]) -> str:
    """The first explanation that fits all answers."""
    for explain in (_constant, _gap, _few_digits, _renumbered, _unknown_parts, _never_found, _left_out, _one_sign):
        with suppress(OracleError):
            if text := explain(examiner, verdicts):
                return text
    return "a greedy or otherwise heuristic search, which errs for some scores only (then set exact = False)"


def _gap(examiner: Examiner, verdicts: list[Verdict]) -> str | None:
    """Whether every miss is small beside the score, and digits that are lost where scores are large do not explain it."""
    wrong = [(v.high - v.answer.score) / (1.0 + abs(v.answer.score)) for v in verdicts if v.missed]
    if max(wrong) > GAP or not (_at_usual_sizes(verdicts) or max(wrong) > _DIGITS):
        return None
    return gap_advice(max(wrong))


def _at_usual_sizes(verdicts: list[Verdict]) -> bool:
    """Whether some miss is at scores that are not so large that digits are lost."""
    return any(v.missed and np.abs(v.answer.theta).max() < 1e4 for v in verdicts)


def _few_digits(examiner: Examiner, verdicts: list[Verdict]) -> str | None:
    """Whether the answers are best once the scores are rounded, to float32 or to whole numbers."""
    wrong = [v for v in verdicts if v.missed]
    for rounded in (np.trunc, np.rint, np.floor):
        if _at_usual_sizes(verdicts) and _explained(verdicts, rounded):
            return "scores are turned into whole numbers (astype(int), //): keep float64, or scale them first"
    lost = [float(np.abs(v.answer.theta) @ (v.answer.counts + v.space.counts.max(axis=0))) for v in wrong]
    small = all(v.high - v.answer.score <= _DIGITS * size for v, size in zip(wrong, lost, strict=True))
    if small and all(np.abs(v.answer.theta).max() >= 1e4 for v in wrong):
        return (
            "digits are lost where scores are large: a cast to float32, or a fixed threshold such as 1e-6 (keep float64); or a "
            "solver that stops at a gap (let it search on: mip_rel_gap=0; or declare tolerance = its gap)"
        )
    return None


def _renumbered(examiner: Examiner, verdicts: list[Verdict]) -> str | None:
    """Whether the answers are best under the scores of other parts: transposed, reversed or shifted."""
    case = _widest(verdicts)
    space, grid = case[0].space, None
    if "label_grid" in examiner.has:
        n_positions, n_labels = examiner.call("label_grid", place(space.shape), space.shape)
        grid = n_positions * n_labels
    for how, order in _orders(space.n_parts, grid):
        if _explained(case, lambda theta, order=order: theta[order]):  # type: ignore[misc]
            return f"argmax and parts number the parts differently: the answers are best where the scores are {how}"
    return None


def _orders(n: int, grid: int | None) -> Iterator[tuple[str, Integers]]:
    """Rearrangements of n parts in words, of the whole, and of what is in and behind the label grid."""
    blocks = [(0, n, "")]
    if grid and grid < n:
        blocks += [(0, grid, " in the label grid"), (grid, n, " behind the label grid")]
    for start, stop, where in blocks:
        size, inner = stop - start, np.arange(stop - start)
        changes = [
            (f"transposed ({size // a} x {a} for {a} x {size // a})", inner.reshape(-1, a).T.ravel())
            for a in range(2, size // 2 + 1)
            if size % a == 0
        ]
        changes += [
            ("in reverse order", inner[::-1]),
            ("shifted by one", np.roll(inner, 1)),
            ("shifted by one", np.roll(inner, -1)),
        ]
        for how, change in changes:
            order = np.arange(n)
            order[start:stop] = start + change
            yield how + where, order


def _constant(examiner: Examiner, verdicts: list[Verdict]) -> str | None:
    """Whether all answers for a shape are the same."""
    if len({v.answer.labels.tobytes() for v in _widest(verdicts)}) > 1:
        return None
    return "the same answer whatever the scores: they are not used, or answers are kept in a cache whose key leaves them out"


def _unknown_parts(examiner: Examiner, verdicts: list[Verdict]) -> str | None:
    """Whether there are parts whose scores count though no output has them."""
    space = _widest(verdicts)[0].space
    unused = np.flatnonzero(space.counts.max(axis=0) == 0)[:_MOST]
    foreign = [j for j in unused.tolist() if space.complete and all(_moved(examiner, space, j) for _ in range(4))]
    if foreign:
        return f"argmax uses the scores of the parts {brief(foreign)}, which parts() gives for no output"
    return None


def _left_out(examiner: Examiner, verdicts: list[Verdict]) -> str | None:
    """Whether there are parts whose scores change nothing, which explains the answers."""
    case = _widest(verdicts)
    space = case[0].space
    varied = np.flatnonzero(np.ptp(space.counts, axis=0))[:_MOST]
    ignored = [j for j in varied.tolist() if not any(_moved(examiner, space, j) for _ in range(4))]
    if ignored and _explained(case, lambda theta: np.where(np.isin(np.arange(len(theta)), ignored), 0.0, theta)):
        return f"argmax leaves out the scores of the parts {brief(ignored)}: a loop that ends too early, or a block forgotten"
    return None


def _moved(examiner: Examiner, space: Space, j: int) -> bool:
    """Whether a large change of the score of part j changes the answer."""
    theta, bump = 0.01 * examiner.rng.normal(size=space.n_parts), 100.0 * np.eye(space.n_parts)[j]
    first, second = (_asked(examiner, space, theta + sign * bump) for sign in (1, -1))
    return not np.array_equal(first.labels, second.labels)


def _never_found(examiner: Examiner, verdicts: list[Verdict]) -> str | None:
    """Whether there are outputs that argmax does not give even where they are far better than all others."""
    space = _of_first(verdicts, lambda own: own[0].space.n_parts)[0].space
    never = []
    for k in range(min(len(space.labels), _MOST)):
        mu = space.counts[k]
        asked = [theta for theta in (2.0 * mu - 1.0, mu - 1.0, 1.0 * mu) if _only_best(space, theta, k)]
        if asked and all(_asked(examiner, space, theta).counts.tobytes() != mu.tobytes() for theta in asked):
            never.append(space.labels[k].tolist())
    if never:
        return f"a search that misses outputs: {brief(never)} are never returned, even where they are by far the best"
    return None


def _one_sign(examiner: Examiner, verdicts: list[Verdict]) -> str | None:
    """Whether all answers are right for scores of one sign."""
    if _right_where(examiner, verdicts, -1.0):
        return (
            "the sign of scores: it is right for scores <= 0 and wrong where some are > 0; a search that needs costs >= 0, "
            "such as Dijkstra's (use one that takes costs of both signs)"
        )
    if _right_where(examiner, verdicts, 1.0):
        return (
            "the sign of scores: it is right for scores >= 0 and wrong where some are < 0; a best score that starts at 0 instead "
            "of -inf, or outputs that are left out once they cost something"
        )
    return None


def _right_where(examiner: Examiner, verdicts: list[Verdict], sign: float) -> bool:
    """Whether no answer to scores of that sign is wrong, nor any of some more."""
    if any(v.missed for v in verdicts if (sign * v.answer.theta).min() >= 0):
        return False
    space = _widest(verdicts)[0].space
    more = [_asked(examiner, space, sign * examiner.rng.exponential(size=space.n_parts)) for _ in range(40)]
    return not any(v.missed for v in _verdicts(examiner, ShapeCase(space, more)))


def _explained(verdicts: list[Verdict], change: Callable[[Scores], Scores]) -> bool:
    """Whether every answer is best under the changed scores."""
    for v in verdicts:
        theta = change(v.answer.theta)
        values = v.space.scores(theta)
        if float(v.answer.counts @ theta) < values.max() - tolerance(values):
            return False
    return True


def _asked(examiner: Examiner, space: Space, theta: Scores) -> Answer:
    """One more answer of argmax."""
    where = f"{place(space.shape)}, when a cause was looked for"
    labels = examiner.labels(examiner.call("argmax", where, theta, space.shape), where, "argmax").copy()
    return Answer(where, theta, labels, examiner.parts(labels, space.shape, space.n_parts, twice=False))


def _only_best(space: Space, theta: Scores, k: int) -> bool:
    values = space.scores(theta)
    return bool(values[k] > np.delete(values, k).max(initial=-np.inf) + 0.5)


def _widest(verdicts: list[Verdict]) -> list[Verdict]:
    """The verdicts of the shape with the most errors: few explanations fit it by chance."""
    return _of_first(verdicts, lambda own: -sum(v.missed for v in own))


def _of_first(verdicts: list[Verdict], key: Callable[[list[Verdict]], int]) -> list[Verdict]:
    """The verdicts of one shape with errors, that of the least key."""
    spaces = {id(v.space): v.space for v in verdicts if v.missed}
    return min(([v for v in verdicts if v.space is space] for space in spaces.values()), key=key)
