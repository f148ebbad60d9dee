"""Formulas of logic over parts that are on or off."""

import numpy as np

from structpred.core.oracle import Labels
from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.oracles.decisions.truths import TruthOracle, best_count

FORMULAS = ("or", "xor", "at_most_one", "not_all", "iff", "implies", "and")


class Logic(TruthOracle):
    """shape = (n,); labels[j] is 1 when part j is on. The rows of 0 and 1 for which a formula is true.

    "or": at least one part is on. "xor": exactly one. "at_most_one": one or none. "not_all": at least one is off.
    "iff": all are on or all are off. "implies": where all parts but the last are on, the last one is, too.
    "and": the last one is on if and only if all others are; its score is then one of others that are on together.

    >>> Logic("implies").argmax(np.array([3.0, -1.0]), (2,)).tolist()
    [1, 1]
    """

    def __init__(self, formula: str) -> None:
        if formula not in FORMULAS:
            raise ParameterError(f"expected a formula of {', '.join(FORMULAS)}, got {formula!r}")
        self.formula = formula

    def __repr__(self) -> str:
        return f"Logic({self.formula!r})"

    def best(self, scores: Floats) -> Labels:
        """The best rows: by counting, or by what is cheapest to change where the signs of the scores are excluded."""
        n = scores.shape[1]
        if limits := {"or": (1, n), "xor": (1, 1), "at_most_one": (0, 1), "not_all": (0, n - 1)}.get(self.formula):
            return best_count(scores, *limits)
        if self.formula == "implies":
            best = (scores > 0).astype(np.int64)
            excluded = np.flatnonzero(best[:, :-1].all(axis=1) & (best[:, -1] == 0))
            best[excluded, np.abs(scores[excluded]).argmin(axis=1)] ^= 1
            return best
        off = np.zeros_like(scores, dtype=np.int64)
        if self.formula == "and":
            off[:, :-1] = best_count(scores[:, :-1], 0, n - 2)
        gain = ((1 - off) * scores).sum(axis=1, keepdims=True)
        return np.where((gain > 0) | (n == 1 and self.formula == "and"), 1, off)
