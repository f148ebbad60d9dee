"""The Gibbs distribution over the outputs of an oracle: entropy, probabilities, the k best outputs, samples."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels
from structpred.core.requirements import require
from structpred.core.types import ArrayLike, Floats
from structpred.errors import OracleError
from structpred.layers.record import Gold, Outputs, Scores
from structpred.runtime.settings import checked_whole

#: parts with a smaller probability, or a smaller one of being off, are taken as decided
_NEVER = 1e-12
#: the log of the odds of a part that was drawn
_CERTAIN = 40.0


class Distribution:
    """p(y) = exp(theta . mu(y)) / Z over the outputs of each instance of a batch.

    Parameters
    ----------
    batch : Scores
        Its oracle must have `marginals`; `kbest` for the k best.
    theta : float array, flat or (n, p)

    Attributes
    ----------
    log_partition : float64 array (n,)
    marginals : float64 array (size,)
        Expected part counts, flat.

    Raises
    ------
    MissingCapabilityError
        Where the oracle lacks what is asked.
    DataError
        For scores that are not finite, naming sample and part.

    Examples
    --------
    >>> from structpred.oracles.chain import ChainOracle
    >>> found = Distribution(Scores.of(ChainOracle(), [(2, 2)]), np.zeros(8))
    >>> found.entropy.round(6).tolist(), found.log_prob([[0, 1]]).round(6).tolist()  # four outputs, all alike
    ([1.386294], [-1.386294])
    >>> [len(drawn) for drawn in found.samples(3, seed=0)]
    [3]
    """

    def __init__(self, batch: Scores, theta: ArrayLike) -> None:
        require(("marginals",), batch.oracle, "Distribution")
        self.batch, self.theta = batch, batch.full(theta)
        self.log_partition, self.marginals = batch.marginals(self.theta)

    @cached_property
    def entropy(self) -> Floats:
        """(n,), in nats: log Z - theta . E[mu]."""
        return np.maximum(self.log_partition - self.batch.dots(self.theta, self.marginals), 0.0)

    def log_prob(self, outputs: Gold) -> Floats:
        """(n,) log p of one output an instance: labels, or flat part counts."""
        return self.batch.dots(self.theta, self.batch.points(outputs)) - self.log_partition

    def kbest(self, k: int) -> list[list[Labels]]:
        """The k most probable outputs of each instance, best first, fewer where there are fewer."""
        require(("kbest",), self.batch.oracle, "Distribution.kbest")
        oracle: Any = self.batch.oracle
        pairs = zip(self.batch.split(self.theta), self.batch.shapes, strict=True)
        return [oracle.kbest(own, shape, checked_whole(k, "k")) for own, shape in pairs]

    def samples(self, n: int, *, seed: int = 0) -> list[list[Labels]]:
        """n independent outputs of each instance, drawn exactly: each choice by the marginals given those before.

        Choices are the labels of positions where the oracle has a `label_grid`, else the parts that are still open: as many
        batches of marginals as the longest instance has choices. The same seed gives the same outputs. Raises OracleError where
        an oracle without label_grid has outputs in which a part counts twice.
        """
        copies, rng = self.batch.copies(checked_whole(n, "n")), np.random.default_rng(checked_whole(seed, "seed", 0))
        by_label = callable(getattr(self.batch.oracle, "label_grid", None))
        drawn = self._labels_drawn(copies, n, rng) if by_label else self._parts_drawn(copies, n, rng)
        size = len(self.batch)
        return [[drawn[k * size + i] for k in range(n)] for i in range(size)]

    def _labels_drawn(self, copies: Scores, n: int, rng: np.random.Generator) -> Sequence[Labels]:
        """An output of each copy, label after label."""
        oracle: Any = self.batch.oracle
        scores, grids = np.tile(self.theta, n), [oracle.label_grid(shape) for shape in copies.shapes]
        labels = [np.zeros(length, dtype=np.int64) for length, _ in grids]
        for t in range(max((length for length, _ in grids), default=0)):
            _, mu = copies.marginals(scores) if t else (None, np.tile(self.marginals, n))
            for start, (length, m), own in zip(copies.offsets[:-1].tolist(), grids, labels, strict=True):
                if t < length:
                    at = slice(start + t * m, start + (t + 1) * m)
                    ends = np.cumsum(mu[at])
                    own[t] = min(int(np.searchsorted(ends, rng.random() * ends[-1], side="right")), m - 1)
                    kept = scores[at][own[t]]
                    scores[at] = FORBIDDEN
                    scores[start + t * m + own[t]] = kept
        return labels

    def _parts_drawn(self, copies: Scores, n: int, rng: np.random.Generator) -> Sequence[Labels]:
        """An output of each copy, part after part: one that is off is forbidden, one that is on gets odds of e^40 or more."""
        scores, mu, decided = np.tile(self.theta, n), np.tile(self.marginals, n), np.zeros(copies.size, dtype=np.bool_)
        while len(still := np.flatnonzero(~decided & (mu > _NEVER) & (mu < 1.0 - _NEVER))):
            owners, firsts = np.unique(np.searchsorted(copies.offsets, still, side="right") - 1, return_index=True)
            at = still[firsts]
            on = rng.random(len(copies))[owners] < mu[at]
            scores[at] = np.where(on, scores[at] + _CERTAIN - np.log(mu[at]), FORBIDDEN)
            decided[at] = True
            rows, places = copies.take(owners)
            _, mu[places] = rows.marginals(scores[places])
        outputs = copies.best(np.where(mu > 0.5, 1.0, -1.0)).outputs
        if not np.array_equal(copies.points(outputs), mu > 0.5):
            raise OracleError(
                f"{type(copies.oracle).__name__}: outputs are drawn part after part, but what was drawn is no output: "
                "where parts can count twice, the oracle needs label_grid"
            )
        return outputs

    def decisions(self) -> Outputs:
        """The most probable output of each instance."""
        return self.batch.best(self.theta).outputs
