"""Formulas of logic over parts that are on or off."""

from collections.abc import Callable

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.oracles.decisions._truths import TruthOracle, best_count

#: what each formula says of a row of 0 and 1
FORMULAS: dict[str, Callable[[Labels], bool]] = {
    "or": lambda on: on.sum() >= 1,
    "xor": lambda on: on.sum() == 1,
    "at_most_one": lambda on: on.sum() <= 1,
    "not_all": lambda on: on.sum() < len(on),
    "iff": lambda on: on.sum() in (0, len(on)),
    "implies": lambda on: on[-1] >= on[:-1].all(),
    "and": lambda on: on[-1] == on[:-1].all(),
}


class Logic(TruthOracle):
    """shape = (n,); labels[j] is 1 when part j is on. The rows of 0 and 1 for which a formula is true.

    "or": at least one part is on. "xor": exactly one. "at_most_one": one or none. "not_all": at least one is off.
    "iff": all are on or all are off. "implies": where all parts but the last are on, the last one is, too.
    "and": the last one is on if and only if all others are; its score is then one of others that are on together.

    Martins et al., AD3: Alternating directions dual decomposition for MAP inference in graphical models, JMLR 2015, section 5.

    >>> Logic("implies").argmax(np.array([3.0, -1.0]), (2,)).tolist()
    [1, 1]
    >>> Logic("and").argmax(np.array([3.0, -1.0, -1.0]), (3,)).tolist()
    [1, 0, 0]
    """

    output = "row of 0 and 1"

    def __init__(self, formula: str) -> None:
        if formula not in FORMULAS:
            raise ParameterError(f"expected a formula of {', '.join(FORMULAS)}, got {formula!r}")
        self.formula = formula

    def __repr__(self) -> str:
        return f"Logic({self.formula!r})"

    def holds(self, labels: Labels) -> bool:
        """Whether the formula is true."""
        return bool(FORMULAS[self.formula](labels))

    def _best(self, scores: Floats) -> Labels:
        n = scores.shape[1]
        limits = {"or": (1, n), "xor": (1, 1), "at_most_one": (0, 1), "not_all": (0, n - 1)}
        if self.formula in limits:
            return best_count(scores, *limits[self.formula])
        if self.formula == "iff":
            return np.repeat(scores.sum(axis=1, keepdims=True) > 0, n, axis=1).astype(np.int64)
        if self.formula == "implies":  # one row is excluded: its nearest neighbour changes the cheapest part
            best = (scores > 0).astype(np.int64)
            wrong = np.flatnonzero(best[:, :-1].all(axis=1) & (best[:, -1] == 0))
            best[wrong, np.abs(scores[wrong]).argmin(axis=1)] ^= 1
            return best
        off = np.pad(best_count(scores[:, :-1], 0, n - 2), ((0, 0), (0, 1)))
        all_on = (scores.sum(axis=1) > (off * scores).sum(axis=1)) | (n == 1)
        return np.where(all_on[:, None], 1, off)
