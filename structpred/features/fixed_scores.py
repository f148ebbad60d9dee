"""Scores added to what the weights give: hard constraints (-1e30 forbids) and priors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from structpred.core.types import AnyArray, Floats, Integers, Integers32
from structpred.runtime.ranges import ends_of


@dataclass(frozen=True)
class FixedScores:
    """Scores added to the parts of sequences with n_labels labels.

    rows: (M, n_labels) float64, a few distinct rows. row_of: int32, one row number per token. edges: (n_labels, n_labels),
    label before, label after.
    """

    rows: Floats
    row_of: Integers32
    edges: Floats

    @staticmethod
    def none(n_tokens: int, n_labels: int) -> "FixedScores":
        """Nothing added: one row of zeros for all."""
        return FixedScores(np.zeros((1, n_labels)), np.zeros(n_tokens, np.int32), np.zeros((n_labels, n_labels)))

    def of(self, first: int, last: int, *, edges: bool = True) -> Floats:
        """Those of the sequence of tokens first..last-1, flat; edges: with those of transitions."""
        rows = self.rows[self.row_of[first:last]].ravel()
        return np.concatenate((rows, self.edges.ravel())) if edges else rows

    def arrays(self) -> tuple[AnyArray, ...]:
        """All of them."""
        return self.rows, self.row_of, self.edges


@dataclass(frozen=True)
class FixedParts:
    """Scores added to the parts of each instance, flat, one a part; None for an instance without any, or for all of them."""

    rows: Sequence[Floats | None] | None = None

    def of(self, i: int) -> Floats | None:
        """Those of instance i."""
        return None if self.rows is None else self.rows[i]

    def add(self, start: int, stop: int, places: Integers, out: Floats) -> None:
        """Add those of the instances start..stop-1 to out[places[i - start]:]."""
        for i in range(start, stop) if self.rows is not None else ():
            if (fixed := self.of(i)) is not None:
                out[places[i - start] : places[i - start + 1]] += fixed

    def flat(self, n: int) -> tuple[Integers, Floats]:
        """(where those of each of n instances begin, -1 for none; all of them, flat): what instances share comes once."""
        rows = self.rows or [None] * n
        known = {id(row): row for row in rows if row is not None}
        places = dict(zip(known, ends_of(np.array([len(row) for row in known.values()], dtype=np.int64)).tolist(), strict=False))
        begins = np.array([-1 if row is None else places[id(row)] for row in rows], dtype=np.int64)
        return begins, np.concatenate([*known.values(), np.empty(0)])

    def take(self, rows: Integers) -> "FixedParts":
        """Those of these instances, in this order."""
        return self if self.rows is None else FixedParts([self.rows[i] for i in rows.tolist()])

    def arrays(self) -> Iterable[Floats]:
        """All of them; what instances share comes once."""
        return {id(row): row for row in self.rows or () if row is not None}.values()
