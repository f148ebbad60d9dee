"""The score vectors that the contract checks try, and what argmax answered to them."""

from dataclasses import dataclass

import numpy as np

from structpred.contracts.engine import Space
from structpred.core.oracle import Labels, Scores
from structpred.core.types import Floats

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
        theta = rng.normal(size=space.n_parts)
        out.append((f"loss-augmented scores, lam = {lam:.3g}", theta + lam * costs))
    return out
